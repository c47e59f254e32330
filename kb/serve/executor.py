"""Threads that answer, so that the loop which reads and writes messages never waits for one."""

import asyncio
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from typing import Any, Final, Protocol, TypeVar

from msgspec import Struct

from kb.errors import KbError
from kb.serve.shared import Places, SharedCount

T = TypeVar("T")
_THREADS: Final = 8
_WAITING_MAX: Final = 1_024


class Calls(Protocol):
    """Does what a call asks for."""

    async def run(self, work: Callable[[], T]) -> T:
        """What `work` returns or raises."""
        ...


class InlineExecutor:
    """Does it where it is asked: for a thread that has a loop of its own."""

    async def run(self, work: Callable[[], T]) -> T:
        """What `work` returns or raises, and nothing else happens in this loop meanwhile."""
        return work()


class CallExecutor:
    """A bounded number of threads before which a bounded number of calls may wait; close it."""

    def __init__(
        self,
        threads: int = _THREADS,
        calls_max: int = _WAITING_MAX,
        taken: SharedCount | None = None,
    ) -> None:
        """Of the calls at once, `calls_max`, those that no thread has taken up yet wait.

        These are the calls of all processes that share the count of those `taken`.
        """
        self._pool = ThreadPoolExecutor(threads, "kb-call")
        self._calls: set[Future[Any]] = set()
        self._calls_max = calls_max
        self._taken = taken or Places().of("short")
        self._lock = threading.Lock()

    @property
    def is_full(self) -> bool:
        """Whether no other call may come."""
        return len(self._calls) + self._taken.others >= self._calls_max

    async def run(self, work: Callable[[], T]) -> T:
        """What `work` returns or raises, done by a thread.

        One who is cancelled waits no longer; what a thread has begun it ends, and holds its place
        until then. Raises KbError where too many wait already.
        """
        if self.is_full:
            raise KbError("too many calls are waiting; try again in a moment")
        call = self._pool.submit(work)
        self._count(call, is_new=True)
        call.add_done_callback(lambda call: self._count(call, is_new=False))
        return await asyncio.wrap_future(call)

    def _count(self, call: Future[Any], *, is_new: bool) -> None:
        with self._lock:
            if is_new:
                self._calls.add(call)
            else:
                self._calls.discard(call)
            self._taken.set(len(self._calls))

    def close(self, wait_s: float) -> bool:
        """Drop what waits, and return within `wait_s`; False where a thread was still busy then."""
        self._pool.shutdown(wait=False, cancel_futures=True)
        return not wait(list(self._calls), wait_s).not_done


class CallExecutors(Struct, frozen=True, kw_only=True):
    """The threads of a server: whoever waits for others takes none from those who do not."""

    short: CallExecutor
    long: CallExecutor

    def close(self, wait_s: float) -> bool:
        """As `CallExecutor.close`, of both."""
        end_s = time.monotonic() + wait_s
        is_quiet = self.short.close(wait_s)
        return self.long.close(max(0.0, end_s - time.monotonic())) and is_quiet
