"""A time limit for a whole connection, however slowly its bytes arrive."""

import contextlib
import socket
import threading
from collections.abc import Mapping
from typing import Any, Self

_OPENED = frozenset(("connection.connect_tcp.complete", "connection.start_tls.complete"))


class Alarm:
    """Cuts the watched connection `left_s` seconds after the context began.

    The HTTP library's own time-outs count from one byte to the next, so a server that sends a
    byte now and then would outlast them.
    """

    def __init__(self, left_s: float) -> None:
        self._timer = threading.Timer(left_s, self._ring)
        self._timer.daemon = True
        self._lock = threading.Lock()
        self._socket: socket.socket | None = None
        self.rang = False

    def trace(self, name: str, info: Mapping[str, Any]) -> None:
        """The HTTP library's `trace` callback: watches each connection that is opened."""
        if name in _OPENED:
            self.watch(info["return_value"].get_extra_info("socket"))

    def watch(self, opened: socket.socket) -> None:
        """Watch this connection; cut it at once where the time is over."""
        with self._lock:
            self._socket = opened
            self._cut()

    def _ring(self) -> None:
        with self._lock:
            self.rang = True
            self._cut()

    def _cut(self) -> None:
        if self.rang and self._socket is not None:
            with contextlib.suppress(OSError):
                # The plain class's method: an encrypted socket's own would disturb its reader.
                socket.socket.shutdown(self._socket, socket.SHUT_RDWR)

    def __enter__(self) -> Self:
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
