"""Where a server listens: an address, the socket in its home, and what its processes share."""

import contextlib
import ipaddress
import os
import socket
import time
from collections.abc import Iterator
from typing import Any, Final

from msgspec import Struct

from kb.errors import UsageError
from kb.home.app import App
from kb.model.config import ServeSettings
from kb.model.decoding import decode_json
from kb.serve.http_metrics import MetricsFiles
from kb.serve.local_socket import own_socket
from kb.serve.shared import Places, SharedCount, SharedFile, unnamed_file
from kb.store import tokens
from kb.store.trust.local_token import LocalToken

BACKLOG: Final = 128
_MESSAGE_BYTES_MAX: Final = 64 << 10
# A connection is left so often, for so long each time, to a process that may be busy or gone.
_LEFT_MAX: Final = 20
_LEFT_S: Final = 0.001


class Listening(Struct, frozen=True, kw_only=True):
    """The sockets of a server, and what its processes share."""

    public: socket.socket
    inside: socket.socket | None
    """The socket in the home; None where there is none."""
    is_loopback: bool
    """Only this machine reaches the public one."""
    places: Places
    sessions: SharedFile
    metrics: MetricsFiles | None = None
    """None for a server of one process."""

    @property
    def sockets(self) -> tuple[socket.socket, ...]:
        """All that requests come by."""
        return (self.public,) if self.inside is None else (self.public, self.inside)

    @property
    def address(self) -> str:
        """The address as a client names it."""
        host, port = self.public.getsockname()[:2]
        return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"

    @property
    def process(self) -> int:
        """The number of this process among those of the server."""
        return self.metrics.own if self.metrics else 0

    @property
    def processes(self) -> int:
        """How many processes answer."""
        return len(self.metrics.files) if self.metrics else 1


class Inherited(Struct, frozen=True, kw_only=True):
    """What a parent tells a child of the descriptors that it was given."""

    public: int
    inside: int | None
    is_loopback: bool
    places: int
    sessions: int
    metrics: tuple[int, ...]
    process: int
    starts: int

    @property
    def descriptors(self) -> tuple[int, ...]:
        """All that the child needs."""
        inside = () if self.inside is None else (self.inside,)
        return (self.public, *inside, self.places, self.sessions, *self.metrics)


class InheritedSocket(socket.socket):
    """A socket that listens already, and that other processes accept from, too."""

    def __init__(self, fileno: int, connections: SharedCount) -> None:
        super().__init__(fileno=fileno)
        self._connections = connections
        self._left = 0

    def listen(self, _backlog: int = BACKLOG, /) -> None:
        """Nothing: to listen again would change how many may wait, for all."""

    def accept(self) -> tuple[socket.socket, Any]:
        """The next connection; at first it is left to a process that has fewer.

        Connections are kept, so who has twice as many answers each of them half as fast. Raises
        BlockingIOError where it is left, and what a socket raises.
        """
        if self._left < _LEFT_MAX and self._connections.is_over_another:
            self._left += 1
            time.sleep(_LEFT_S)
            raise BlockingIOError
        self._left = 0
        return super().accept()


@contextlib.contextmanager
def listening(app: App, settings: ServeSettings, own: LocalToken | None) -> Iterator[Listening]:
    """Listen for the length of the block. Raises UsageError as `bound` does."""
    with app.store.read() as txn:
        has_tokens = bool(tokens.list_tokens(txn))
    public, is_loopback = bound(settings, has_tokens=has_tokens)
    with contextlib.ExitStack() as held:
        held.enter_context(public)
        inside = held.enter_context(own_socket(app.paths.socket))
        if own is not None:
            held.enter_context(own.listening(*public.getsockname()[:2]))
        yield Listening(
            public=public,
            inside=inside,
            is_loopback=is_loopback,
            places=Places(),
            sessions=SharedFile(),
        )


def bound(settings: ServeSettings, *, has_tokens: bool) -> tuple[socket.socket, bool]:
    """A socket that listens, and whether only this machine reaches it.

    Raises UsageError for a place that others reach while there is no token, and where the place
    cannot be had.
    """
    host, port = settings.host, settings.port
    try:
        addresses = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE | socket.AI_ADDRCONFIG
        )
        family, kind, proto, _, address = addresses[0]
        is_loopback = ipaddress.ip_address(str(address[0]).partition("%")[0]).is_loopback
        if not is_loopback and not has_tokens:
            raise UsageError(
                f"other machines can reach {host}, and there is no token; "
                "`kb token add NAME` makes one"
            )
        with contextlib.ExitStack() as held:
            listener = held.enter_context(socket.socket(family, kind, proto))
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listener.bind(address)
            listener.listen(BACKLOG)
            held.pop_all()
    except (OSError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise UsageError(f"cannot listen on {host} port {port}: {why}") from error
    return listener, is_loopback


class SharedParts:
    """What a parent makes for its children to share; close it."""

    def __init__(self, place: Listening, processes: int) -> None:
        self._place = place
        self._memory = unnamed_file()
        self._metrics = tuple(unnamed_file() for _ in range(processes))
        self.places = Places(self._memory, processes)

    def inherited(self, process: int, starts: int) -> Inherited:
        """What the child of this number is to be told, at its so many-th start."""
        place = self._place
        return Inherited(
            public=place.public.fileno(),
            inside=None if place.inside is None else place.inside.fileno(),
            is_loopback=place.is_loopback,
            places=self._memory,
            sessions=place.sessions.descriptor,
            metrics=self._metrics,
            process=process,
            starts=starts,
        )

    def close(self) -> None:
        """Close the descriptors of this process."""
        for descriptor in (self._memory, *self._metrics):
            os.close(descriptor)


def inherited_listening(parent: socket.socket) -> Listening:
    """What the parent at the other end of a socket says that this child was given."""
    told = decode_json(parent.recv(_MESSAGE_BYTES_MAX), Inherited)
    files = tuple(SharedFile(descriptor) for descriptor in told.metrics)
    places = Places(told.places, len(files), told.process)
    connections = places.of("connections")
    return Listening(
        public=InheritedSocket(told.public, connections),
        inside=None if told.inside is None else InheritedSocket(told.inside, connections),
        is_loopback=told.is_loopback,
        places=places,
        sessions=SharedFile(told.sessions),
        metrics=MetricsFiles(files=files, own=told.process, starts=told.starts),
    )
