"""How much of a body is read, and how it is unpacked."""

import gzip
import time
import tracemalloc
import zlib
from collections.abc import Iterator

import pytest
from loopback import HOST, Answer, LoopbackServer, Route, dripping, in_chunks, serving

from kb.errors import KbError, Permanent, Refused, SourceError, Transient
from kb.intake.sync.body import read_body
from kb.intake.sync.fetch import Fetcher, FetchSettings
from kb.model.clock import SystemClock

CAP = 1 << 20


@pytest.fixture
def server() -> Iterator[LoopbackServer]:
    with serving() as running:
        running.routes["/"] = Answer(b"a page")
        yield running


def fetcher() -> Fetcher:
    return Fetcher(FetchSettings(allow=(HOST,), bytes_max=CAP), SystemClock())


def failure(server: LoopbackServer, route: Route) -> SourceError:
    """The error that a page with this answer raises."""
    server.routes["/page"] = route
    with pytest.raises(SourceError) as caught:
        fetcher().get(server.url("/page"))
    assert "SECRET" not in str(caught.value)
    return caught.value


def test_a_body_over_the_cap_is_not_read(server: LoopbackServer) -> None:
    """Announced too large is refused at once; a body that grows too large, when it does."""
    announced = b"HTTP/1.1 200 OK\r\nContent-Length: 1000000000000\r\n\r\n"
    began = time.monotonic()
    error = failure(server, dripping(announced, 0.2))
    assert time.monotonic() - began < 60
    assert isinstance(error, Refused)
    assert "1,048,576 bytes" in error.reason
    endless = in_chunks((b"x" * 65_536 for _ in iter(int, 1)), {})
    assert isinstance(failure(server, endless), Refused)
    server.routes["/exact"] = Answer(b"x" * CAP)
    assert len(fetcher().get(server.url("/exact")).data) == CAP


def bomb(megabytes: int) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, 31)
    block = bytes(1 << 20)
    return b"".join(packer.compress(block) for _ in range(megabytes)) + packer.flush()


def test_a_gzip_bomb_stops_at_the_cap(server: LoopbackServer) -> None:
    """What unpacks to far more than its size is refused, and never held in memory."""
    server.routes["/bomb"] = Answer(bomb(64), headers={"Content-Encoding": "gzip"})
    one = fetcher()
    one.get(server.url("/"))
    tracemalloc.start()
    try:
        with pytest.raises(Refused, match="over the limit"):
            one.get(server.url("/bomb"))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 8 * CAP


def test_gzip_is_unpacked(server: LoopbackServer) -> None:
    """Packed pages are read, in one member or several, chunked or not, with or without padding."""
    text = b"some text " * 50_000
    packed = gzip.compress(text)
    for data in (packed, gzip.compress(text[:7]) + gzip.compress(text[7:]), packed + bytes(512)):
        server.routes["/z"] = Answer(data, headers={"Content-Encoding": "gzip"})
        assert fetcher().get(server.url("/z")).data == text
        pieces = (data[at : at + 1_000] for at in range(0, len(data), 1_000))
        server.routes["/z"] = in_chunks(pieces, {"Content-Encoding": "X-GZIP"})
        assert fetcher().get(server.url("/z")).data == text
    server.routes["/empty"] = Answer(b"", headers={"Content-Encoding": "gzip"})
    assert fetcher().get(server.url("/empty")).data == b""


@pytest.mark.parametrize("size", [1, 7, 4096])
def test_unpacking_does_not_depend_on_the_pieces(size: int) -> None:
    """However the bytes come in, the same come out."""
    text = bytes(range(256)) * 1_000
    data = gzip.compress(text) + gzip.compress(b"") + gzip.compress(b"end")
    parts = [data[at : at + size] for at in range(0, len(data), size)]
    assert read_body(parts, "gzip", CAP, "x") == text + b"end"


@pytest.mark.parametrize(
    ("body", "encoding", "kind"),
    [
        (gzip.compress(b"SECRET" * 100, mtime=0)[:-9], "gzip", Transient),
        (b"SECRET not packed", "gzip", Transient),
        (gzip.compress(b"SECRET", mtime=0)[:-4] + b"xxxx", "gzip", Transient),
        (zlib.compress(b"SECRET"), "deflate", Permanent),
        (b"SECRET", "br", Permanent),
        (gzip.compress(gzip.compress(b"SECRET", mtime=0), mtime=0), "gzip, gzip", Permanent),
    ],
)
def test_a_packing_that_fails_gives_no_page(
    body: bytes, encoding: str, kind: type[KbError], server: LoopbackServer
) -> None:
    """Damaged or cut gzip is transient; an encoding that was not asked for is not unpacked."""
    error = failure(server, Answer(body, headers={"Content-Encoding": encoding}))
    assert type(error) is kind
