"""A deadline shared by all steps of a call."""

import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

from kb.model.clock import Clock

_T = TypeVar("_T")


class Deadline:
    """A deadline `total_s` seconds after its creation, by the monotonic clock."""

    def __init__(self, clock: Clock, total_s: float) -> None:
        self.total_s = total_s
        self._clock = clock
        self._end_ms = clock.lease_ms() + total_s * 1000

    @property
    def is_over(self) -> bool:
        """Whether no time is left."""
        return self._clock.lease_ms() >= self._end_ms

    def left_s(self) -> float:
        """Seconds left. Raises TimeoutError if none are left."""
        left = (self._end_ms - self._clock.lease_ms()) / 1000
        if left <= 0:
            raise TimeoutError
        return left

    def wait_for(self, call: Callable[[], _T]) -> _T:
        """The result of a call that cannot be interrupted. Raises TimeoutError if it is late.

        The call runs in a thread, which goes on after a timeout. OSError and ValueError of the call
        are raised here.
        """
        future: Future[_T] = Future()

        def run() -> None:
            try:
                future.set_result(call())
            except (OSError, ValueError) as error:
                future.set_exception(error)

        left_s = self.left_s()
        threading.Thread(target=run, daemon=True).start()
        return future.result(left_s)
