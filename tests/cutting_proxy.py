"""A proxy on loopback in front of a server, which cuts connections where a test says so."""

import contextlib
import socket
import threading
from collections.abc import Iterator
from typing import Literal

Cut = Literal["", "request", "answer"]


class CuttingProxy:
    """Passes bytes on. With `cut` the next request, or the next answer, ends its connection."""

    def __init__(self, target: str) -> None:
        self._target = target
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.cut: Cut = ""
        self.cuts = 0
        self.taken = 0
        """How many connections it has taken."""
        self.hangs = False
        """Whether it takes all and passes nothing on, as a network that hangs."""
        self._open: set[socket.socket] = set()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                self.taken += 1
                server = socket.socket(socket.AF_UNIX)
                try:
                    server.connect(self._target)
                except OSError:
                    server.close()
                    client.close()
                    continue
                self._open |= {client, server}
                for source, to, what in ((client, server, "request"), (server, client, "answer")):
                    threading.Thread(
                        target=self._pass_on, args=(source, to, what), daemon=True
                    ).start()

    def _pass_on(self, source: socket.socket, to: socket.socket, what: Cut) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                if self.hangs:
                    continue
                if self.cut == what:
                    self.cut = ""
                    self.cuts += 1
                    break
                to.sendall(data)
        for end in (source, to):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """Cut all connections, and take no more."""
        self._listener.close()
        for end in self._open:
            end.close()


@contextlib.contextmanager
def proxy_before(target: str) -> Iterator[CuttingProxy]:
    """A proxy before the server at a Unix socket."""
    proxy = CuttingProxy(target)
    try:
        yield proxy
    finally:
        proxy.close()
