"""Was something committed? One look for all streams, and two threads that read for them."""

import asyncio
import time
from collections.abc import Callable
from typing import Final, TypeVar

from kb.errors import KbError
from kb.serve.executor import CallExecutor
from kb.store.store import Store

T = TypeVar("T")
_LOOK_S: Final = 0.25
_THREADS: Final = 2
_REACH_LOOK_S: Final = 0.02


class Changes:
    """Tells one event loop of commits to a store, by whichever process. Close it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._reader = CallExecutor(_THREADS)
        self._waiting: dict[asyncio.Future[None], int] = {}
        self._looking: asyncio.Task[None] | None = None

    async def last(self) -> int:
        """The number of the last change. Raises StoreUnreachable, and other errors of the store."""
        # A server's answer is not waited for in the loop.
        return await self.read(self._store.last_txn)

    async def after(self, revision: int, wait_s: float) -> bool:
        """Whether there is a change after `revision`; waits for one, at most `wait_s`.

        Callers hear of changes a few times a second at most, however many there are.
        """
        changed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[changed] = revision
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look())
        try:
            async with asyncio.timeout(wait_s):
                await changed
        except TimeoutError:
            return False
        finally:
            del self._waiting[changed]
        return True

    async def _look(self) -> None:
        while self._waiting:
            await asyncio.sleep(_LOOK_S)
            try:
                last = await self.last()
            except KbError:
                # Whoever waits looks again; their own reads tell them of the trouble.
                continue
            for changed, revision in self._waiting.items():
                if revision != last and not changed.done():
                    changed.set_result(None)

    async def reached(self, at_least: int, wait_s: float) -> bool:
        """Whether the store comes to a transaction within `wait_s`."""
        deadline_s = time.monotonic() + wait_s
        while await self.read(self._store.last_txn) < at_least:
            if time.monotonic() > deadline_s:
                return False
            await asyncio.sleep(_REACH_LOOK_S)
        return True

    async def read(self, work: Callable[[], T]) -> T:
        """What `work` returns or raises, which reads the store; done apart from the loop."""
        return await self._reader.run(work)

    def close(self, wait_s: float) -> bool:
        """End within `wait_s`; False where one of its threads was still busy then."""
        return self._reader.close(wait_s)
