"""Histories by real commands: some are killed on their way, some run three at a time."""

import os
import random
from collections.abc import Iterator
from typing import Final

import pytest
from histories import PLACES, Add, Compact, OnHome, Op, Work, drawn
from histories_commands import KILLABLE, ByCommand

STEPS: Final = int(os.environ.get("KB_HISTORY_COMMANDS", "2000"))
FIRST: Final = int(os.environ.get("KB_HISTORY_SEED", "0"))
STEPS_PER_HISTORY: Final = 50
KILLED_SHARE: Final = 0.3
AT_ONCE_SHARE: Final = 0.08


def three(rng: random.Random) -> list[OnHome]:
    """Two writers of files of their own, and a third."""
    one, two, three = rng.sample(PLACES, 3)
    third = rng.choice((Add(three, "public"), Compact(0), Work()))
    return [Add(one, "public"), Add(two, "shared"), third]


def one_step(home: ByCommand, rng: random.Random, ops: Iterator[Op]) -> tuple[int, str]:
    """Do one step, or three at once; returns how many, and what."""
    if rng.random() < AT_ONCE_SHARE:
        writers, killed = three(rng), rng.random() < 0.5
        home.do_at_once(writers, killed=killed)
        return 3, f"at once, killed={killed}: {writers}"
    op = next(ops)
    if isinstance(op, KILLABLE) and rng.random() < KILLED_SHARE:
        home.do_killed(op)
        return 1, f"killed: {op}"
    home.step(op)
    return 1, str(op)


def history(seed: int, steps: int) -> int:
    """A history in a home of its own; returns how many steps it had."""
    rng = random.Random(seed)
    home = ByCommand(rng)
    ops = drawn(rng)
    done: list[str] = []
    count = 0
    try:
        while count < steps:
            state = rng.getstate()
            try:
                number, said = one_step(home, rng, ops)
            except AssertionError as error:
                rng.setstate(state)
                pytest.fail(f"history {seed}, step {count}: {error}\nafter\n" + "\n".join(done))
            count += number
            done.append(said)
    finally:
        home.close()
    return count


@pytest.mark.timeout(300)
def test_a_history_by_commands() -> None:
    """A few steps of it, so that what drives it runs."""
    assert history(1, 8) >= 8


@pytest.mark.slow
@pytest.mark.timeout(14_400)
def test_histories_with_kills(capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever is killed: done again, the home holds what it must. Says how many steps it did."""
    count, seed = 0, FIRST
    while count < STEPS:
        count += history(seed, STEPS_PER_HISTORY)
        seed += 1
    with capsys.disabled():
        print(f"\n{count:,} steps by real commands without a finding")
    assert count >= STEPS
