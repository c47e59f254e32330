"""How does work grow with its input? Measured in one process, so that its speed says nothing."""

import gc
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, TypeVar

_T = TypeVar("_T")
# A little over twice; work that is not linear comes near four times.
_GROWTH_MAX: Final = 2.5
_ROUNDS_MAX: Final = 12
_SPAN_S: Final = 0.004


def assert_linear(work: Callable[[_T], object], half: _T, whole: _T) -> None:
    """Work on `whole`, which is twice `half`, takes at most 2.5 times the processor time.

    Of several rounds the quickest count, and there are as few as show it: what else the machine
    does can only make a round slower.
    """
    with _undisturbed():
        count, least = _measurable(work, half)
        twice = _seconds(work, whole, count)
        for _ in range(_ROUNDS_MAX):
            if twice <= _GROWTH_MAX * least:
                return
            least = min(least, _seconds(work, half, count))
            twice = min(twice, _seconds(work, whole, count))
    raise AssertionError(f"{twice:.6f} s for twice of what takes {least:.6f} s")


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
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()
