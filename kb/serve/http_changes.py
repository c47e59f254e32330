"""Was something committed? One look for all streams, and one thread that reads for them."""

import asyncio
from collections.abc import Callable
from typing import Final, TypeVar

from kb.serve.executor import CallExecutor
from kb.store.store import Store

T = TypeVar("T")
_LOOK_S: Final = 0.25


class Changes:
    """What is committed to one store, by whatever process; for one loop. Close it."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._reader = CallExecutor(1)
        self._waiting: dict[asyncio.Future[None], int] = {}
        self._looking: asyncio.Task[None] | None = None

    def last(self) -> int:
        """The number of the last change."""
        return self._store.last_txn()

    async def after(self, known: int, wait_s: float) -> bool:
        """Whether there is a change after `known`; waits for one, but no longer than `wait_s`.

        However much is committed, it is said a few times in a second at most.
        """
        told: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[told] = known
        if self._looking is None or self._looking.done():
            self._looking = asyncio.create_task(self._look())
        try:
            async with asyncio.timeout(wait_s):
                await told
        except TimeoutError:
            return False
        finally:
            del self._waiting[told]
        return True

    async def _look(self) -> None:
        while self._waiting:
            await asyncio.sleep(_LOOK_S)
            last = self.last()
            for told, known in self._waiting.items():
                if known != last and not told.done():
                    told.set_result(None)

    async def read(self, work: Callable[[], T]) -> T:
        """What `work` returns or raises, which reads the store; done apart from the loop."""
        return await self._reader.run(work)

    def close(self, wait_s: float) -> bool:
        """End within `wait_s`; False where its thread was still busy then."""
        return self._reader.close(wait_s)
