"""`kb serve`: clients that are wrong, greedy, slow or many."""

import concurrent.futures
import contextlib
import json
import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import Home
from http_server import HOST, ConfiguredHome, Running, serving, settings

from kb.serve.http_server import all_routes

DEADLINE_S = 1.0
BODY_BYTES_MAX = 100_000
JSON = b"content-type: application/json\r\n"


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Home:
    folder = tmp_path_factory.mktemp("hostile")
    said = settings(
        head_s=DEADLINE_S,
        body_s=DEADLINE_S,
        unread_s=DEADLINE_S,
        body_bytes_max=BODY_BYTES_MAX,
        header_bytes_max=16_384,
    )
    made = ConfiguredHome(folder / "home", said)
    (folder / "boat.md").write_text("# Boat\n\nThe keel is made of oak. " + "Wide water. " * 4_000)
    assert made.run("add", folder / "boat.md").code == 0
    return made


@pytest.fixture(scope="module")
def server(home: Home) -> Iterator[Running]:
    with serving(home) as running:
        yield running
        assert running.get("/health/ready").status == 200


@contextlib.contextmanager
def connected(server: Running) -> Iterator[socket.socket]:
    with socket.create_connection((HOST, server.port), timeout=120) as connection:
        yield connection


def said(connection: socket.socket) -> bytes:
    """All that comes until the server closes; an answer may be cut off by a reset."""
    parts = []
    with contextlib.suppress(ConnectionResetError):
        while part := connection.recv(65_536):
            parts.append(part)
    return b"".join(parts)


def sent(server: Running, data: bytes) -> bytes:
    """What comes back for raw bytes."""
    with connected(server) as connection:
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            connection.sendall(data)
        return said(connection)


def head(path: str = "/v1/tools/kb_search", method: str = "POST", more: bytes = b"") -> bytes:
    return f"{method} {path} HTTP/1.1\r\nhost: localhost\r\n".encode() + more


def test_what_is_not_there_or_not_so(server: Running) -> None:
    """404 for an address, 405 with what is allowed, 415 for another kind of body."""
    assert server.get("/v1").status == 404
    assert server.get("/v1/docs/").status == 404
    assert server.get("//v1/docs").status == 404
    for method, path, allow in (
        ("POST", "/v1/stats", "GET, HEAD"),
        ("DELETE", "/content", "POST, GET, HEAD"),
        ("GET", "/v1/tools/kb_search", "POST"),
        ("TRACE", "/v1/docs", "GET, POST, HEAD"),
    ):
        got = server.ask(method, path)
        assert (got.status, got.headers["allow"]) == (405, allow)
    for media in ("text/plain", "application/x-www-form-urlencoded", ""):
        got = server.post("/content", {"content": "x"}, content_type=media)
        assert (got.status, got.json["code"]) == (415, "unsupported_media")
    packed = server.post("/content", b"\x1f\x8b", content_encoding="gzip")
    assert packed.status == 415
    typed = server.post(
        "/v1/tools/kb_list_docs", {}, content_type="application/json; charset=utf-8"
    )
    assert typed.status == 200


@pytest.mark.parametrize(
    "body", [b"", b"{", b"nonsense", b"\xff", b'{"query": "\xff"}', b"[" * 50_000, b'{"a":NaN}']
)
def test_a_body_that_is_no_json(server: Running, body: bytes) -> None:
    """400, in words, for each way to be none."""
    for path in ("/v1/tools/kb_search", "/content", "/v1/tools/help"):
        got = server.post(path, body)
        assert (got.status, got.json["code"]) == (400, "malformed")


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/content", []),
        ("/content", {"content": ""}),
        ("/content", {"content": "   "}),
        ("/content", {"content": "a\0b"}),
        ("/content", {"content": "x", "path": "/etc/passwd"}),
        ("/content", {"content": "x", "hint": "two\nlines"}),
        ("/content", {"content": "x", "tags": ["a"] * 33}),
        ("/content", {"content": "x", "tags": [""]}),
        ("/v1/tools/kb_search", {"query": 1}),
        ("/v1/tools/kb_search", {"query": "x" * 8_193}),
        ("/v1/tools/kb_search", {"query": "x", "k": 10**30}),
        ("/v1/tools/help", []),
    ],
)
def test_json_that_is_not_asked_for(server: Running, path: str, body: object) -> None:
    """422, and nothing is queued."""
    assert server.post(path, body).status == 422
    assert server.get("/v1/jobs").json == {"jobs": []}


def test_a_query_of_a_megabyte(server: Running) -> None:
    """Too long in a body, too long in an address: refused, and the server goes on."""
    long = "x" * (1 << 20)
    got = server.post("/v1/tools/kb_search", {"query": long})
    assert (got.status, got.json["code"]) == (413, "too_large")
    assert b" 431 " in sent(server, head(f"/v1/search?q={long}", "GET", b"\r\n"))[:40]
    assert server.get(f"/v1/search?q={'x' * 8_193}").status in (414, 422)
    assert server.get(f"/v1/search?q={'x' * 9_000}").status == 414
    assert server.get("/v1/search?" + "&".join(f"a{n}=1" for n in range(300))).status == 400
    assert server.get("/v1/search?q=%ff").status == 400


def test_a_body_over_the_limit(server: Running) -> None:
    """413 whether its length is said or not, and also where it never ends."""
    exact = json.dumps({"content": "x" * (BODY_BYTES_MAX - 15)}).encode()
    assert len(exact) == BODY_BYTES_MAX + 1 - 1
    assert server.post("/content", exact + b" ").status == 413
    chunked = head(more=JSON + b"transfer-encoding: chunked\r\n\r\n")
    endless = chunked + (b"2000\r\n" + b" " * 8192 + b"\r\n") * 200
    assert sent(server, endless).startswith(b"HTTP/1.1 413 ")


def test_a_length_over_the_limit_is_refused_at_once(server: Running) -> None:
    """By every route, though not a byte of the body comes."""
    uploads = {"/v1/files": 1 << 40}
    for route in all_routes():
        path = route.path.replace("{id}", "d1").replace("{name}", "app.js")
        length = uploads.get(path, BODY_BYTES_MAX + 1)
        request = head(path, route.method, JSON + f"content-length: {length}\r\n\r\n".encode())
        with connected(server) as connection:
            connection.sendall(request)
            assert connection.recv(65_536).startswith(b"HTTP/1.1 413 "), route.path


def test_headers_over_the_limit(server: Running) -> None:
    """431, as one long header or as many."""
    assert server.get("/v1/docs", x="y" * 20_000).status == 431
    many = {f"x{n}": "y" * 100 for n in range(200)}
    assert server.get("/v1/docs", **many).status == 431
    assert b" 431 " in sent(server, head(method="GET", more=b"x: " + b"y" * 300_000))[:40]


@pytest.mark.parametrize(
    "data",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01",
        b"GET\r\n\r\n",
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nhost: a\r\nhost: b\r\n\r\n",
        b"POST /content HTTP/1.1\r\nhost: a\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
        b"POST /content HTTP/1.1\r\nhost: a\r\ncontent-length: -1\r\n\r\n",
        b"GET /\xff HTTP/1.1\r\nhost: localhost\r\n\r\n",
        (
            b"POST /mcp HTTP/1.1\r\nhost: localhost\r\ncontent-length: 5\r\n"
            b"transfer-encoding: chunked\r\n\r\n0\r\n\r\n"
            b"GET /v1/stats HTTP/1.1\r\nhost: localhost\r\n\r\n"
        ),
    ],
)
def test_what_is_no_http(server: Running, data: bytes) -> None:
    """400 as a problem, and the connection ends."""
    answer = sent(server, data)
    assert answer.startswith(b"HTTP/1.1 400 ")
    assert b'"code":"malformed"' in answer
    assert answer.count(b"HTTP/1.1") == 1


def test_a_host_is_said_once_or_not_served(server: Running) -> None:
    """A request of HTTP 1.0 without a host is turned away, too."""
    assert sent(server, b"GET /v1/docs HTTP/1.0\r\n\r\n").startswith(b"HTTP/1.1 421 ")


@pytest.mark.parametrize(
    "start",
    [
        b"",
        b"GET /v1/docs HTTP/1.1\r\n",
        head("/v1/docs", "GET", b"x-one: 1\r\n"),
    ],
)
def test_a_head_that_does_not_end(server: Running, start: bytes) -> None:
    """Whoever sends a byte now and then is cut off after the deadline, whatever it sends."""
    began_s = time.monotonic()
    with connected(server) as connection:
        connection.sendall(start)
        connection.settimeout(0.05)
        answer = b""
        while not answer and time.monotonic() - began_s < 60:
            try:
                answer = connection.recv(65_536)
            except TimeoutError:
                if start:
                    connection.sendall(b"y")
        assert answer.startswith(b"HTTP/1.1 408 ")
    assert time.monotonic() - began_s > DEADLINE_S * 0.8


def test_a_body_that_does_not_come(server: Running) -> None:
    """408 at the deadline; others are answered meanwhile."""
    with connected(server) as connection:
        connection.sendall(head(more=JSON + b"content-length: 100\r\n\r\n{"))
        assert server.get("/v1/docs").status == 200
        assert said(connection).startswith(b"HTTP/1.1 408 ")


def test_an_answer_that_nobody_reads(home: Home) -> None:
    """A connection whose client asks and never reads is ended, and its place is free again."""
    said_of = ConfiguredHome(home.root, settings(unread_s=DEADLINE_S, connections_max=2))
    with serving(said_of) as server:
        doc = home.ids()["boat.md"]
        ask = head(f"/v1/docs/{doc}?max_tokens=200000", "GET", b"\r\n")
        with contextlib.ExitStack() as stack:
            for _ in range(2):
                one = stack.enter_context(socket.socket())
                one.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 2_048)
                one.connect((HOST, server.port))
                # More answers than the buffers of both ends can take.
                with contextlib.suppress(BlockingIOError):
                    one.setblocking(False)
                    one.send(ask * 400)
            end_s = time.monotonic() + 120
            while (got := server.get("/health/live").status) == 503:
                assert time.monotonic() < end_s
                time.sleep(0.05)
            assert got == 200


@pytest.mark.parametrize(
    "path",
    [
        "../home/kb.toml",
        "../../etc/passwd",
        "/etc/passwd",
        "a/../../x",
        "..%2f..%2fetc%2fpasswd",
        "%2e%2e/%2e%2e/etc/passwd",
        ".git/config",
        "a%00b",
        "INDEX.md%00.md",
        "x" * 4_000,
    ],
)
def test_a_path_leads_nowhere_else(server: Running, path: str) -> None:
    """Whatever is named, nothing but notes is read."""
    assert server.get(f"/content?path={path}").status == 404


def test_neither_or_both_are_wanted(server: Running) -> None:
    """`path` or else `query`."""
    assert server.get("/content").status == 422
    assert server.get("/content?path=a&query=b").status == 422
    assert server.get("/content?query=b&mode=other").status == 422


def test_a_hundred_at_once(server: Running) -> None:
    """Each gets an answer or is told to come again; nobody is dropped, and all is well after."""

    def one(n: int) -> tuple[int, str | None]:
        got = server.get(f"/v1/search?q=oak+{n}&mode=lexical")
        return got.status, got.headers.get("retry-after")

    with concurrent.futures.ThreadPoolExecutor(100) as crowd:
        found = set(crowd.map(one, range(200)))
    assert (200, None) in found
    assert found <= {(200, None), (503, "1")}
    assert server.get("/v1/search?q=oak&mode=lexical").status == 200
    assert b"\nkb_http_busy 1\n" in server.get("/metrics").body


def test_one_place_is_taken(tmp_path: Path) -> None:
    """Over the cap the answer is 503 with when to come again, and it comes at once."""
    home = ConfiguredHome(tmp_path / "home", settings(concurrency_max=1, connections_max=4))
    with serving(home) as server:
        with contextlib.ExitStack() as stack:
            for _ in range(4):
                stack.enter_context(connected(server))
            time.sleep(0.2)
            answer = sent(server, head("/health/live", "GET", b"\r\n"))
            assert answer.startswith(b"HTTP/1.1 503 ")
            assert b"retry-after: 1\r\n" in answer
        with concurrent.futures.ThreadPoolExecutor(3) as crowd:
            statuses = list(crowd.map(lambda _: server.get("/v1/stats").status, range(60)))
        assert set(statuses) <= {200, 503}
        assert 200 in statuses
