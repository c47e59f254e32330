"""A proxy on loopback in front of a server: counts round trips, and makes each one longer.

A round trip is one that the client waits for. Nobody waits for the answer to a lone ROLLBACK, which
ends a transaction that reads.

    python tests/counting_proxy.py SOCKET DELAY_MS

runs one in a process of its own. It prints its port, and for each line that it reads how many round
trips it has seen.
"""

import contextlib
import socket
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from subprocess import PIPE, Popen

# As the protocol has it: a query, its length, and its text.
_ROLLBACK = b"Q" + (4 + 9).to_bytes(4, "big") + b"ROLLBACK\0"


class CountingProxy:
    """Passes bytes on. A round trip is a request and the first bytes that answer it."""

    def __init__(self, target: str, delay_s: float = 0.0) -> None:
        """`target` is the server's Unix socket; each round trip takes `delay_s` more."""
        self._target = target
        self._delay_s = delay_s
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.round_trips = 0
        self._counting = threading.Lock()
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = self._listener.accept()
                client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                server = socket.socket(socket.AF_UNIX)
                server.connect(self._target)
                is_asked = threading.Event()
                for work in (self._ask, self._answer):
                    threading.Thread(
                        target=work, args=(client, server, is_asked), daemon=True
                    ).start()

    def _ask(self, client: socket.socket, server: socket.socket, is_asked: threading.Event) -> None:
        with contextlib.suppress(OSError):
            while data := client.recv(1 << 18):
                if data != _ROLLBACK:
                    is_asked.set()
                server.sendall(data)
        _end(server)

    def _answer(
        self, client: socket.socket, server: socket.socket, is_asked: threading.Event
    ) -> None:
        with contextlib.suppress(OSError):
            while data := server.recv(1 << 18):
                if is_asked.is_set():
                    is_asked.clear()
                    with self._counting:
                        self.round_trips += 1
                    if self._delay_s:
                        time.sleep(self._delay_s)
                client.sendall(data)
        _end(client)

    def close(self) -> None:
        """Take no more connections; those that are open end with their client."""
        self._listener.close()


def _end(peer: socket.socket) -> None:
    with contextlib.suppress(OSError):
        peer.shutdown(socket.SHUT_RDWR)
    peer.close()


class ProxyProcess:
    """A proxy in a process of its own, so that what it computes is not counted as a client's."""

    def __init__(self, target: str, delay_s: float = 0.0) -> None:
        argv = [sys.executable, __file__, target, str(delay_s * 1000)]
        self._process = Popen(argv, stdin=PIPE, stdout=PIPE, text=True)
        self.port = self._read()

    @property
    def round_trips(self) -> int:
        """How many it has seen so far."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return self._read()

    def _read(self) -> int:
        assert self._process.stdout is not None
        return int(self._process.stdout.readline())

    def close(self) -> None:
        """End it."""
        self._process.kill()
        self._process.wait()


@contextlib.contextmanager
def proxy_process(target: Path, delay_s: float = 0.0) -> Iterator[ProxyProcess]:
    """A proxy before a Unix socket, ended with the block."""
    proxy = ProxyProcess(str(target), delay_s)
    try:
        yield proxy
    finally:
        proxy.close()


def main() -> None:
    """Run one until the standard input ends."""
    proxy = CountingProxy(sys.argv[1], float(sys.argv[2]) / 1000)
    print(proxy.port, flush=True)
    for _ in sys.stdin:
        print(proxy.round_trips, flush=True)


if __name__ == "__main__":
    main()
