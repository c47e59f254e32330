"""The product, driven by what people do, against a dictionary of what it must hold."""

import itertools
import os
import random
from collections.abc import Iterable, Iterator
from typing import Any, ClassVar, Final

import pytest
from histories import PLACES, RULES, THEN, OnFiles, Op, at
from histories_home import InProcess
from histories_postgres import OnPostgres
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule
from hypothesis.stateful import run_state_machine_as_test as run_machine
from postgres_server import PostgresServer

STEPS_PER_HISTORY: Final = 75
FEW: Final = 600
FEW_ON_POSTGRES: Final = 150
# The long campaign; `make histories STEPS=...`.
STEPS: Final = int(os.environ.get("KB_HISTORY_STEPS", "30000"))


class Histories(RuleBasedStateMachine):
    """A history in a home of its own; after each step the home is held against the dictionary.

    The whole check runs at every tenth step.
    """

    steps: ClassVar[int] = 0
    make_home: ClassVar[type[InProcess]] = InProcess

    def __init__(self) -> None:
        super().__init__()
        self.home = self.make_home()
        self.last = PLACES[0]

    def do(self, op: Op, then: Iterable[Op] = ()) -> None:
        """Do it, and what comes of it, and look after each step."""
        op, self.last = at(op, self.last)
        for one in (op, *then):
            Histories.steps += 1
            self.home.step(one)

    def teardown(self) -> None:
        self.home.close()


def _rule(make: Any, fields: dict[str, tuple[Any, ...]]) -> Any:
    def act(self: Histories, then: Iterable[Op] = (), **said: Any) -> None:
        self.do(make(**said), then)

    act.__name__ = make.__name__.lower()
    drawn = {name: st.sampled_from(values) for name, values in fields.items()}
    if issubclass(make, OnFiles):
        drawn["then"] = st.sampled_from(THEN)
    return rule(**drawn)(act)


# One rule to each kind of operation, as often as it is wanted.
for _weight, _make, _fields in RULES:
    for _number in range(_weight):
        setattr(Histories, f"{_make.__name__.lower()}_{_number}", _rule(_make, _fields))


class HistoriesOnPostgres(Histories):
    """As `Histories`, in a home in a database."""

    make_home = OnPostgres


def run(steps: int, numbers: Iterator[int], machine: type[Histories] = Histories) -> int:
    """Do at least this many steps, each round by the next number; returns how many."""
    Histories.steps = 0
    while Histories.steps < steps:
        left = steps - Histories.steps
        run_machine(
            seed(next(numbers))(machine),
            settings=settings(
                max_examples=-(-left // STEPS_PER_HISTORY),
                stateful_step_count=STEPS_PER_HISTORY,
                deadline=None,
                database=None,
                print_blob=True,
                phases=(Phase.generate, Phase.shrink),
                suppress_health_check=list(HealthCheck),
            ),
        )
    return Histories.steps


@pytest.mark.timeout(600)
def test_some_histories() -> None:
    """Whatever is done, what the home must hold is found, and nothing else is."""
    assert run(FEW, itertools.count()) >= FEW


@pytest.mark.slow
@pytest.mark.timeout(7_200)
def test_many_histories(capsys: pytest.CaptureFixture[str]) -> None:
    """As above, of many steps; says how many it did."""
    first = random.randrange(1 << 32)
    done = run(STEPS, itertools.count(first))
    with capsys.disabled():
        print(f"\n{done:,} steps without a finding")
    assert done >= STEPS


@pytest.fixture
def on_postgres(postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server of the homes; their caches lie where each of them says."""
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    OnPostgres.server = postgres


@pytest.mark.timeout(600)
@pytest.mark.usefixtures("on_postgres")
def test_some_histories_on_postgres() -> None:
    """As in a folder."""
    assert run(FEW_ON_POSTGRES, itertools.count(), HistoriesOnPostgres) >= FEW_ON_POSTGRES


@pytest.mark.slow
@pytest.mark.timeout(14_400)
@pytest.mark.usefixtures("on_postgres")
def test_many_histories_on_postgres(capsys: pytest.CaptureFixture[str]) -> None:
    """As above, of many steps; says how many it did."""
    done = run(STEPS, itertools.count(random.randrange(1 << 32)), HistoriesOnPostgres)
    with capsys.disabled():
        print(f"\n{done:,} steps on PostgreSQL without a finding")
    assert done >= STEPS
