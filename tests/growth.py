"""How does work grow with its input? Measured in one process, so that its speed says nothing."""

import gc
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, TypeVar

_T = TypeVar("_T")
# A little over twice; work that is not linear comes near four times.
_GROWTH_MAX: Final = 2.5
_ROUNDS_MAX: Final = 15
_SPAN_S: Final = 0.004


def assert_linear(work: Callable[[_T], object], half: _T, whole: _T) -> None:
    """Work on `whole`, which is twice `half`, takes at most 2.5 times the processor time.

    Of several rounds the quickest count, or those in the middle, and there are as few as show it:
    what else the machine does makes rounds slower, some more than others.
    """
    with _undisturbed():
        count, first = _measurable(work, half)
        rounds = [(first, _seconds(work, whole, count))]
        while _growth(rounds) > _GROWTH_MAX and len(rounds) <= _ROUNDS_MAX:
            rounds.append((_seconds(work, half, count), _seconds(work, whole, count)))
    assert _growth(rounds) <= _GROWTH_MAX, f"seconds for a text, and for twice of it: {rounds}"


def _growth(rounds: list[tuple[float, float]]) -> float:
    """Of the quickest halves and wholes, or of a half and a whole that were done together."""
    quickest = min(whole for _, whole in rounds) / min(half for half, _ in rounds)
    return min(quickest, statistics.median(whole / half for half, whole in rounds))


def _measurable(work: Callable[[_T], object], one: _T) -> tuple[int, float]:
    """How often it must be done to be measured, and the seconds that each time takes."""
    count = 1
    while (took := _seconds(work, one, count)) * count < _SPAN_S:
        count *= 4
    return count, took


def _seconds(work: Callable[[_T], object], one: _T, count: int) -> float:
    start = time.thread_time()
    for _ in range(count):
        work(one)
    return (time.thread_time() - start) / count


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Without the collector, whose full rounds come when they like."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
