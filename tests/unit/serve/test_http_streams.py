"""Answers that come piece by piece, without a socket: how each of them ends."""

import asyncio
import contextlib
from collections.abc import AsyncGenerator, MutableMapping
from typing import Any, Final

import pytest
import uvicorn
from uvicorn.server import ServerState

from kb.serve.http_metrics import Metrics
from kb.serve.http_protocol import Deadlines, TimedProtocol
from kb.serve.http_streams import Streams
from kb.serve.shared import Places

BEGIN: Final[dict[str, Any]] = {"type": "http.response.start", "status": 200, "headers": []}


class Client:
    """One who reads, and leaves when `left` is set."""

    def __init__(self) -> None:
        self.got: list[MutableMapping[str, Any]] = []
        self.left = asyncio.Event()

    async def send(self, message: MutableMapping[str, Any]) -> None:
        self.got.append(message)

    async def receive(self) -> MutableMapping[str, Any]:
        await self.left.wait()
        return {"type": "http.disconnect"}

    @property
    def text(self) -> bytes:
        return b"".join(one.get("body", b"") for one in self.got)

    @property
    def is_whole(self) -> bool:
        return bool(self.got) and self.got[-1] == {"type": "http.response.body", "body": b""}


class Endless:
    """Pieces without an end, and whether they were closed."""

    def __init__(self) -> None:
        self.begun = asyncio.Event()
        self.is_closed = False

    async def __call__(self) -> AsyncGenerator[bytes, None]:
        try:
            yield b"first"
            self.begun.set()
            await asyncio.sleep(3600)
        finally:
            self.is_closed = True


async def few() -> AsyncGenerator[bytes, None]:
    yield b"a"
    yield b"bc"


async def broken() -> AsyncGenerator[bytes, None]:
    yield b"a"
    raise ValueError("no more")


def test_it_ends_with_its_pieces() -> None:
    """Head, pieces, a last one; the bytes are counted, and its place is free."""

    async def told() -> None:
        metrics, client = Metrics(), Client()
        assert await Streams(1, metrics).send(BEGIN, few, client.receive, client.send) == 3
        assert (client.got[0], client.text, client.is_whole) == (BEGIN, b"abc", True)
        assert metrics.streams == 0

    asyncio.run(told())


@pytest.mark.parametrize("how", ["client", "server"])
def test_it_ends_when_one_of_both_leaves(how: str) -> None:
    """The client leaves or the server stops: the pieces are closed, and the place is free."""

    async def told() -> None:
        metrics, client, pieces = Metrics(), Client(), Endless()
        streams = Streams(1, metrics)
        sending = asyncio.create_task(streams.send(BEGIN, pieces, client.receive, client.send))
        await pieces.begun.wait()
        assert (metrics.streams, streams.is_full) == (1, True)
        if how == "client":
            client.left.set()
        else:
            streams.stop()
        assert await asyncio.wait_for(sending, 5) == len(b"first")
        assert (pieces.is_closed, streams.is_full, client.is_whole) == (True, False, True)

    asyncio.run(told())


def test_what_begins_after_the_end_ends_at_once() -> None:
    """A server that stops waits for no stream."""

    async def told() -> None:
        client, streams = Client(), Streams(1, Metrics())
        streams.stop()
        await asyncio.wait_for(streams.send(BEGIN, Endless(), client.receive, client.send), 5)
        assert client.is_whole

    asyncio.run(told())


def test_a_fault_is_no_end() -> None:
    """The client can tell an answer that was cut short: its last piece does not come."""

    async def told() -> None:
        metrics, client = Metrics(), Client()
        with pytest.raises(ValueError, match="no more"):
            await Streams(1, metrics).send(BEGIN, broken, client.receive, client.send)
        assert (client.text, client.is_whole, metrics.streams) == (b"a", False, 0)

    asyncio.run(told())


def test_one_who_does_not_read_is_let_go() -> None:
    """A stream whose reader has stopped ends in the time that a whole answer would wait."""

    async def endless() -> AsyncGenerator[bytes, None]:
        while True:
            yield b"a" * 65_536

    async def told() -> None:
        ended = asyncio.Event()

        async def app(_: object, receive: Any, send: Any) -> None:
            await Streams(1, Metrics()).send({**BEGIN}, endless, receive, send)
            ended.set()

        config = uvicorn.Config(app, log_config=None, lifespan="off", ws="none")
        config.load()
        deadlines = Deadlines(
            head_s=5, unread_s=0.3, connections_max=1, connections=Places().of("connections")
        )
        server = await asyncio.get_running_loop().create_server(
            lambda: TimedProtocol(deadlines, config, ServerState(), {}), "127.0.0.1", 0
        )
        async with server:
            reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
            writer.write(b"GET / HTTP/1.1\r\nhost: localhost\r\n\r\n")
            for _ in range(200):
                assert await reader.readexactly(65_536)
            assert not ended.is_set()
            await asyncio.wait_for(ended.wait(), 5)
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()

    asyncio.run(told())
