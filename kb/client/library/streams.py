"""What is told piece by piece: between two pieces no call runs, so that the home can be closed."""

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final, TypeVar

from kb.client.library.calls import HomeCalls
from kb.errors import HomeClosed

if TYPE_CHECKING:
    from kb.operations.events import Event, Following

T = TypeVar("T")
_LOOK_S: Final = 0.25


def flat(calls: HomeCalls, batches: Iterator[list[T]]) -> Iterator[T]:
    """What is in batches, each read when it is needed. Raises HomeClosed after the end."""
    while True:
        with calls.call():
            batch = next(batches, None)
        if batch is None:
            return
        yield from batch


def followed(calls: HomeCalls, following: "Following", end_s: float | None) -> "Iterator[Event]":
    """What is followed, as it changes, until all is over, the home is closed, or `end_s` is."""
    while True:
        try:
            with calls.call():
                news = following.changes()
        except HomeClosed:
            return
        yield from news
        left_s = _LOOK_S if end_s is None else min(_LOOK_S, end_s - time.monotonic())
        if following.is_over or left_s <= 0:
            return
        calls.wait(left_s)
