"""Answers that come piece by piece: so many at once, and none longer than its reader or server."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Coroutine, MutableMapping
from typing import Any

from kb.serve.http_metrics import Metrics
from kb.serve.shared import Places, SharedCount

Pieces = Callable[[], AsyncGenerator[bytes, None]]
"""Gives an answer's pieces, from the loop; asked once. It is closed when the answer ends."""
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]


class Streams:
    """The streams of one process that are open, all of them in one loop."""

    def __init__(self, most: int, metrics: Metrics, taken: SharedCount | None = None) -> None:
        """At most so many, with those of the processes that share the count of those `taken`."""
        self._most = most
        self._metrics = metrics
        self._taken = taken or Places().of("streams")
        self._stopped = asyncio.Event()

    @property
    def is_full(self) -> bool:
        """Whether no other may begin."""
        return self._metrics.streams + self._taken.others >= self._most

    def stop(self) -> None:
        """End them all, each with a whole last piece; one that begins later ends at once."""
        self._stopped.set()

    async def send(
        self, begin: MutableMapping[str, Any], pieces: Pieces, receive: Receive, send: Send
    ) -> int:
        """Send the head `begin`, then pieces, and say how many bytes these had.

        It ends with the pieces, when the client leaves, or when the server stops. Raises what
        `pieces` raises: the client is then to see that the answer was cut short.
        """
        sent = 0

        async def pump() -> None:
            nonlocal sent
            async with contextlib.aclosing(pieces()) as rest:
                async for piece in rest:
                    await send({"type": "http.response.body", "body": piece, "more_body": True})
                    sent += len(piece)
                    # To a client that is gone all is sent at once, and nothing would be waited for.
                    await asyncio.sleep(0)

        async def gone() -> None:
            while (await receive())["type"] != "http.disconnect":
                pass

        # Counted before anything is waited for, so that `is_full` holds for whoever asked it.
        self._count(1)
        try:
            await send(begin)
            await _first_of(pump(), gone(), self._stopped.wait())
        finally:
            self._count(-1)
        await send({"type": "http.response.body", "body": b""})
        return sent

    def _count(self, change: int) -> None:
        self._metrics.streams += change
        self._taken.set(self._metrics.streams)


async def _first_of(*works: Coroutine[Any, Any, object]) -> None:
    """Until one of them ends; the others are cancelled, and have ended on return."""
    tasks = [asyncio.create_task(work) for work in works]
    try:
        await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        ended = await asyncio.gather(*tasks, return_exceptions=True)
    for outcome in ended:
        if isinstance(outcome, Exception):
            raise outcome
