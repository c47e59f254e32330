"""Connections with deadlines: nobody holds one by being slow, and there are only so many.

uvicorn bounds how long a connection may be idle between two requests. What it leaves open is
bounded here: how long a request's head may take, how long an answer may wait to be read, and how
many connections there are.
"""

import asyncio
import http
import socket
import sys
from typing import Any, Final

import h11
from msgspec import Struct
from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

from kb.serve.http_reply import PROBLEM, Refusal, problem_of
from kb.serve.local_socket import OWN
from kb.serve.shared import SharedCount
from kb.store.content.peer import is_same_user

_HINTED: Final = frozenset((400, 431, 501))


class Deadlines(Struct, frozen=True, kw_only=True):
    """Bounds of one server's connections."""

    head_s: float
    """From its first byte, or the opening of the connection, to the end of its headers."""
    unread_s: float
    """How long a whole answer may wait for its reader."""
    connections_max: int
    connections: SharedCount
    """Of all processes."""


class TimedProtocol(H11Protocol):
    """One connection, which ends when its client takes too long."""

    def __init__(
        self,
        deadlines: Deadlines,
        config: Config,
        server_state: ServerState,
        app_state: dict[str, Any],
        _loop: asyncio.AbstractEventLoop | None = None,
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self._deadlines = deadlines
        self._head: asyncio.TimerHandle | None = None
        self._unread: asyncio.TimerHandle | None = None
        self._is_ending = False

    def end_with_an_answer(self) -> None:
        """Have the next answer be the last, and say so: nobody is to ask on a closed connection."""
        if not self._is_ending:
            self._is_ending = True
            self._say_it_closes()

    @property
    def may_be_asked(self) -> bool:
        """Whether it is open, and no request on it waits for its answer."""
        return self._is_waiting() and not self.transport.is_closing()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take a connection, or turn it away where there are too many."""
        super().connection_made(transport)
        peer = transport.get_extra_info("socket")
        if peer.family == socket.AF_UNIX:
            if not is_same_user(peer):
                transport.abort()
                return
            self.app_state = {**self.app_state, OWN: True}
        taken = self._deadlines.connections
        taken.set(len(self.connections))
        if len(self.connections) + taken.others > self._deadlines.connections_max:
            self._turn_away(503, "busy", "there are too many connections; try again")
        else:
            self._watch_head()

    def data_received(self, data: bytes) -> None:
        """Take what came; the head that it is of must be whole in time."""
        super().data_received(data)
        if self._is_ending:
            self._say_it_closes()
        if self._is_waiting():
            self._watch_head()
        else:
            self._forget_head()

    def pause_writing(self) -> None:
        """Give the reader its time, also where the answer has no end yet."""
        super().pause_writing()
        if self._unread is None:
            self._unread = self.loop.call_later(self._deadlines.unread_s, self._abort_unread)

    def resume_writing(self) -> None:
        """The reader goes on; what is left of a whole answer has the time that it had."""
        super().resume_writing()
        if not self._is_waiting():
            self._forget_unread()

    def on_response_complete(self) -> None:
        """Give the reader its time, where not all could be sent at once."""
        super().on_response_complete()
        self._forget_unread()
        if self.transport.get_write_buffer_size():
            self._unread = self.loop.call_later(self._deadlines.unread_s, self._abort_unread)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the deadlines of a connection that has ended."""
        self._forget_head()
        self._forget_unread()
        super().connection_lost(exc)
        self._deadlines.connections.set(len(self.connections))

    def send_400_response(self, msg: str) -> None:  # noqa: ARG002  the words are uvicorn's
        """Answer what is no HTTP, or has too long a head."""
        error = sys.exception()
        hint = error.error_status_hint if isinstance(error, h11.RemoteProtocolError) else 400
        if hint == 431:
            self._turn_away(431, "headers_too_large", "the headers are too long")
        else:
            self._turn_away(hint if hint in _HINTED else 400, "malformed", "this is not HTTP")

    def _say_it_closes(self) -> None:
        if self.cycle is not None and not self.cycle.response_started:
            # uvicorn answers so to who asked for it.
            self.cycle.scope["headers"] = [*self.cycle.scope["headers"], (b"connection", b"close")]

    def _is_waiting(self) -> bool:
        return self.cycle is None or self.cycle.response_complete

    def _watch_head(self) -> None:
        if self._head is None and not self.transport.is_closing():
            self._head = self.loop.call_later(self._deadlines.head_s, self._end_late)

    def _forget_head(self) -> None:
        if self._head is not None:
            self._head.cancel()
            self._head = None

    def _forget_unread(self) -> None:
        if self._unread is not None:
            self._unread.cancel()
            self._unread = None

    def _end_late(self) -> None:
        self._head = None
        if self._is_waiting() and not self.transport.is_closing():
            self._turn_away(408, "too_slow", "the request took too long")

    def _abort_unread(self) -> None:
        self._unread = None
        if self.transport.get_write_buffer_size():
            self.transport.abort()

    def _turn_away(self, status: int, code: str, detail: str) -> None:
        """Say why, and close: what the state of the connection was does not matter any more."""
        self._forget_head()
        body = problem_of(Refusal(status, code, detail)).body
        head = (
            f"HTTP/1.1 {status} {http.HTTPStatus(status).phrase}\r\ncontent-type: {PROBLEM}\r\n"
            f"content-length: {len(body)}\r\nconnection: close\r\n"
        )
        retry = "retry-after: 1\r\n" if status == 503 else ""
        self.transport.write(f"{head}{retry}\r\n".encode() + body)
        self.transport.close()
        # Closing waits for a reader; this one is not waited for longer than others.
        if self._unread is None:
            self._unread = self.loop.call_later(self._deadlines.unread_s, self.transport.abort)
