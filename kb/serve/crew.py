"""Threads that answer, so that the loop which reads and writes messages never waits for one."""

import asyncio
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, Final, TypeVar

from kb.errors import KbError

T = TypeVar("T")
_THREADS: Final = 8
_WAITING_MAX: Final = 1_024


class Crew:
    """A bounded number of threads before which a bounded number of calls may wait; close it."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(_THREADS, "kb-call")
        self._calls: set[Future[Any]] = set()

    async def run(self, work: Callable[[], T]) -> T:
        """What `work` returns or raises, done by a thread.

        One who is cancelled waits no longer; what a thread has begun it ends, and holds its place
        until then. Raises KbError where too many wait already.
        """
        if len(self._calls) >= _WAITING_MAX:
            raise KbError("too many calls wait for an answer; try again in a moment")
        call = self._pool.submit(work)
        self._calls.add(call)
        call.add_done_callback(self._calls.discard)
        return await asyncio.wrap_future(call)

    def close(self, wait_s: float) -> bool:
        """Drop what waits, and return within `wait_s`; False where a thread was still busy then."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        return not wait(list(self._calls), wait_s).not_done
