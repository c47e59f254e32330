"""Signals are kept, bounded, and closed by a person."""

import pytest
from fakes import FakeClock

from kb.errors import AmbiguousId, NoSignal, UsageError
from kb.knowledge.guide import signals
from kb.model.doc import Scope
from kb.model.signal import Signal, SignalKind
from kb.store.memory import MemoryEnvironment
from kb.store.store import Store

ADA = Scope(user="ada")
BOB = Scope(user="bob")


@pytest.fixture
def store() -> Store:
    return Store(MemoryEnvironment(), FakeClock())


def listed(store: Store, *, with_done: bool = False) -> list[Signal]:
    with store.read() as txn:
        return signals.listed(txn, with_done=with_done)


def leave(store: Store, kind: SignalKind = "stuck", scope: Scope = ADA, reason: str = "r") -> str:
    return signals.leave(store, kind, reason, "", scope).signal_id


def test_a_signal_is_listed_until_it_is_closed(store: Store) -> None:
    """The oldest first, with who left it; closed ones are there when asked for."""
    first = signals.leave(store, "stuck", "no way on", "tried twice", ADA)
    store.clock.advance(5)  # type: ignore[attr-defined]
    second = signals.leave(store, "escalate", "who decides?", "", Scope(user=None))
    assert listed(store) == [first, second]
    assert (first.user, first.context, second.user) == ("ada", "tried twice", None)
    assert first.added_ms + 5 == second.added_ms

    closed = signals.close(store, first.signal_id[:6])
    assert closed.done_ms == second.added_ms
    assert signals.close(store, first.signal_id) == closed
    assert listed(store) == [second]
    assert listed(store, with_done=True) == [closed, second]


def test_what_cannot_be_closed_is_named(store: Store) -> None:
    """An unknown id, one too short, and none at all; nothing is closed."""
    ids = [leave(store, reason=str(number)) for number in range(40)]
    for wrong in ("gffff-not", ids[0][:3], ""):
        with pytest.raises(NoSignal):
            signals.close(store, wrong)
    assert listed(store, with_done=True) == listed(store)


def test_a_start_of_several_is_refused(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Both are named, and none is closed."""
    numbers = iter(("aaaa1", "aaaa2"))
    monkeypatch.setattr(signals, "sha256_hex", lambda _: next(numbers))
    one, other = leave(store), leave(store)
    with pytest.raises(AmbiguousId) as said:
        signals.close(store, "gaaaa")
    assert f"{one}, {other}" in str(said.value)
    assert len(listed(store)) == 2


def test_no_caller_fills_the_store(store: Store) -> None:
    """A hundred open signals, ten of them checkpoints; another caller has room of his own."""
    for _ in range(signals.CHECKPOINTS_OPEN_MAX):
        leave(store, "checkpoint")
    with pytest.raises(UsageError, match="10 checkpoints"):
        leave(store, "checkpoint")
    for _ in range(signals.OPEN_MAX - signals.CHECKPOINTS_OPEN_MAX):
        last = leave(store)
    with pytest.raises(UsageError, match="100 signals"):
        leave(store)
    leave(store, scope=BOB)
    signals.close(store, last)
    leave(store)
    assert len(listed(store)) == signals.OPEN_MAX + 1


@pytest.mark.parametrize(("reason", "context"), [(" ", ""), ("r" * 1_001, ""), ("r", "c" * 16_385)])
def test_too_much_or_nothing_is_refused(store: Store, reason: str, context: str) -> None:
    """Nothing of it is kept."""
    with pytest.raises(UsageError):
        signals.leave(store, "stuck", reason, context, ADA)
    assert listed(store) == []


def test_old_closed_signals_go(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the closed ones the newest are kept; open ones stay whatever their age."""
    monkeypatch.setattr(signals, "_DONE_MAX", 2)
    kept = leave(store)
    closed = []
    for _ in range(4):
        store.clock.advance(1)  # type: ignore[attr-defined]
        closed.append(leave(store))
        signals.close(store, closed[-1])
    left = [signal.signal_id for signal in listed(store, with_done=True)]
    assert left == [kept, *closed[2:]]
