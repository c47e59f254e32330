"""A real HTTP server on loopback, which answers as a test tells it to, also wrongly.

`with serving() as server:` starts one on a free port. `server.routes[path] = answer` sets what a
path does: an `Answer`, or a function of the handler that writes to the socket itself. Every
request and every connection is counted.
"""

import contextlib
import http.server
import socket
import ssl
import struct
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from email.message import Message
from typing import Any

HOST = "127.0.0.1"


@dataclass(frozen=True)
class Answer:
    """A well-formed response; Content-Length is added where the headers do not say."""

    body: bytes = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Request:
    """What was asked for."""

    path: str
    headers: Message
    body: bytes = b""


class _Handler(http.server.BaseHTTPRequestHandler):
    server: "LoopbackServer"
    protocol_version = "HTTP/1.1"

    def setup(self) -> None:
        super().setup()
        self.server.connections += 1

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length", "0")))
        self.server.requests.append(Request(self.path, self.headers, body))
        route = self.server.routes.get(self.path, Answer(b"none", 404))
        if isinstance(route, Answer):
            reply(self, route)
        else:
            self.close_connection = True
            route(self)

    def do_POST(self) -> None:
        self.do_GET()

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002
        pass


Handler = _Handler
Route = Answer | Callable[[_Handler], None]


class LoopbackServer(http.server.ThreadingHTTPServer):
    """The server; `url("/path")` names a page on it."""

    daemon_threads = True
    # Counted by handler threads one at a time: a test asks once it has its answer.
    connections = 0

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        super().__init__((HOST, 0), _Handler)
        self.routes: dict[str, Route] = {}
        self.requests: list[Request] = []
        self.stopping = threading.Event()
        self.scheme = "http"
        if tls is not None:
            self.scheme = "https"
            self.socket = tls.wrap_socket(
                self.socket, server_side=True, do_handshake_on_connect=False
            )

    @property
    def port(self) -> int:
        return int(self.server_address[1])

    def url(self, path: str = "/", host: str = HOST) -> str:
        """The address of a path, under any name that leads here."""
        return f"{self.scheme}://{host}:{self.port}{path}"

    def paths(self) -> list[str]:
        """The paths asked for, in order."""
        return [request.path for request in self.requests]

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing: clients that hang up are what the tests are about."""


@contextlib.contextmanager
def serving(tls: ssl.SSLContext | None = None) -> Iterator[LoopbackServer]:
    """A running server, stopped at the end."""
    server = LoopbackServer(tls)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.stopping.set()
        server.shutdown()
        thread.join()
        server.server_close()


def reply(handler: _Handler, answer: Answer) -> None:
    """Send a well-formed response."""
    handler.send_response(answer.status)
    for name, value in answer.headers.items():
        handler.send_header(name, value)
    if "Content-Length" not in answer.headers:
        handler.send_header("Content-Length", str(len(answer.body)))
    if handler.close_connection:
        handler.send_header("Connection", "close")
    handler.end_headers()
    handler.wfile.write(answer.body)


def moved(location: str, status: int = 302) -> Answer:
    """A redirect."""
    return Answer(b"see there", status, {"Location": location})


def conditional(body: bytes, *, etag: str = "", last_modified: str = "") -> Route:
    """A page that knows how to say that it is not modified."""

    def answer(handler: _Handler) -> None:
        headers = {}
        if etag:
            headers["ETag"] = etag
        if last_modified:
            headers["Last-Modified"] = last_modified
        asked_etag = handler.headers.get("If-None-Match")
        asked_date = handler.headers.get("If-Modified-Since")
        is_same = asked_etag == etag if asked_etag else asked_date and asked_date == last_modified
        reply(handler, Answer(b"", 304, headers) if is_same else Answer(body, 200, headers))

    return answer


def raw(data: bytes) -> Route:
    """Exactly these bytes, then the end of the connection."""
    return lambda handler: handler.wfile.write(data) and None


def dripping(head: bytes, interval_s: float = 0.02) -> Route:
    """The head, then a byte at a time until the client has had enough."""

    def answer(handler: _Handler) -> None:
        with contextlib.suppress(OSError):
            handler.wfile.write(head)
            while not handler.server.stopping.wait(interval_s):
                handler.wfile.write(b"x")

    return answer


def reset(handler: _Handler) -> None:
    """Part of a response, then a connection reset."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\npart")
    handler.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    handler.connection.close()


def in_chunks(pieces: Iterator[bytes], headers: dict[str, str]) -> Route:
    """A chunked response, as long as the client takes it."""

    def answer(handler: _Handler) -> None:
        handler.send_response(200)
        for name, value in {**headers, "Transfer-Encoding": "chunked"}.items():
            handler.send_header(name, value)
        handler.end_headers()
        with contextlib.suppress(OSError):
            for piece in pieces:
                handler.wfile.write(b"%x\r\n%s\r\n" % (len(piece), piece))
            handler.wfile.write(b"0\r\n\r\n")

    return answer
