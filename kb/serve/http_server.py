"""The server itself: a socket, uvicorn on it, and the home's workers beside it."""

import contextlib
import functools
import importlib.util
import ipaddress
import logging
import secrets
import signal
import socket
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import Any, Final, TextIO, cast

import msgspec
from msgspec import Struct

from kb.errors import KbError, UsageError, install_command
from kb.home.spaces.spaces import Spaces
from kb.model.config import ServeSettings
from kb.serve.access_log import AccessLog, LogFormat
from kb.serve.executor import CallExecutor, CallExecutors
from kb.serve.http_changes import Changes
from kb.serve.http_content import content_routes
from kb.serve.http_events import events_route
from kb.serve.http_gate import Gate, GateOptions
from kb.serve.http_health import health_routes
from kb.serve.http_links import link_routes
from kb.serve.http_mcp import mcp_routes
from kb.serve.http_metrics import Metrics
from kb.serve.http_openapi import openapi_route
from kb.serve.http_operations import operation_routes
from kb.serve.http_page import page_routes
from kb.serve.http_routes import Route, Served
from kb.serve.http_state import state_routes
from kb.serve.http_streams import Streams
from kb.serve.http_writes import write_routes
from kb.serve.local_socket import own_socket
from kb.serve.sessions import Sessions
from kb.store import tokens
from kb.store.trust.local_token import LocalToken

# Together under ten seconds: requests that are answered, workers, threads that still answer.
_REQUESTS_S: Final = 3
_WORKERS_S: Final = 3.0
_CALLS_S: Final = 0.5
_BACKLOG: Final = 128
# Searches compute, and the interpreter lets about one compute at a time: more threads do no more.
_THREADS: Final = 3


OnReady = Callable[[str, str | None], None]
"""Hears an address, and the path that opens the page there; None where none is needed."""


class Ended(Struct, frozen=True, kw_only=True):
    """How the server came to its end."""

    by: int
    """The signal."""
    is_quiet: bool
    """Nothing of it runs any more, so that the home can be closed."""
    is_heard: bool = True
    """Its log was taken to the end; else to write to it is to wait."""


def all_routes() -> tuple[Route, ...]:
    """Every route that there is."""
    routes = (
        *content_routes(),
        *operation_routes(),
        *state_routes(),
        *write_routes(),
        events_route(),
        *health_routes(),
        *mcp_routes(),
        *page_routes(),
        *link_routes(),
    )
    return (*routes, openapi_route(routes))


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
            listener.listen(_BACKLOG)
            held.pop_all()
    except (OSError, UnicodeError) as error:
        why = getattr(error, "strerror", None) or error
        raise UsageError(f"cannot listen on {host} port {port}: {why}") from error
    return listener, is_loopback


def serve(
    spaces: Spaces,
    settings: ServeSettings,
    *,
    stream: TextIO,
    form: LogFormat,
    on_ready: OnReady,
    own: LocalToken | None,
) -> Ended:
    """Answer until SIGTERM or SIGINT, and end within ten seconds of it.

    The home is the first of the spaces; its workers work meanwhile, and the spaces stay open.
    `on_ready` gets the server's address once it takes requests, and the path that opens the page
    once. `stream` gets a line for each request. Without an `own` token nobody on this machine
    needs one until the home has tokens. Raises UsageError as `bound` does, and KbError without
    uvicorn.
    """
    if importlib.util.find_spec("uvicorn") is None:
        raise KbError(f"the server needs uvicorn; run `{install_command('serve')}`")
    app = spaces.first
    secret = own.read_or_create() if own is not None else None
    with app.store.read() as txn:
        has_tokens = bool(tokens.list_tokens(txn))
    listener, is_loopback = bound(settings, has_tokens=has_tokens)
    with contextlib.ExitStack() as held:
        held.enter_context(listener)
        inside = held.enter_context(own_socket(app.paths.socket))
        host, port = listener.getsockname()[:2]
        if own is not None:
            held.enter_context(own.listening(host, port))
        options = GateOptions(
            settings=settings,
            host=settings.host,
            is_loopback=is_loopback,
            draw=secrets.token_bytes,
            own_token=secret,
            cookie=f"kb-{port}",
        )
        lines = AccessLog(stream, form, app.store.clock)
        listeners = (listener,) if inside is None else (listener, inside)
        ended = _Running(spaces, listeners, options, lines).run(on_ready)
        return msgspec.structs.replace(ended, is_heard=lines.close(_CALLS_S))


class _Running:
    """One server from its start to its end."""

    def __init__(
        self,
        spaces: Spaces,
        listeners: Sequence[socket.socket],
        options: GateOptions,
        lines: AccessLog,
    ) -> None:
        """Of the listeners the first is the one whose address `on_ready` gets."""
        self._listeners = listeners
        app, settings = spaces.first, options.settings
        self._executors = CallExecutors(
            short=CallExecutor(_THREADS, settings.concurrency_max),
            long=CallExecutor(settings.long_max, settings.long_max),
        )
        self._pool = app.pool(reads_files=True)
        self._pushing = app.notebook.pushing
        self._by = 0
        metrics = Metrics()
        self._changes = Changes(app.store)
        own = spaces.only(spaces.names[0])
        assert own is not None
        served = Served(
            app=app,
            spaces=own,
            every=spaces,
            changes=self._changes,
            trouble=lambda: self._pool.trouble,
            counters=metrics.lines,
            sessions=Sessions(options.draw),
            cookie=options.cookie,
        )
        self._link = served.sessions.link if options.own_token else None
        streams = Streams(options.settings.streams_max, metrics)
        gate = Gate(all_routes(), served, options, metrics, self._executors, lines, streams)
        self._server = self._uvicorn(gate, streams, options.settings)

    def _uvicorn(self, gate: Gate, streams: Streams, settings: ServeSettings) -> Any:
        import uvicorn

        from kb.serve.http_protocol import Deadlines, TimedProtocol

        # What it says may quote a request; what is to be said of one, the gate says.
        quiet = logging.getLogger("uvicorn")
        quiet.propagate = False
        quiet.addHandler(logging.NullHandler())
        deadlines = Deadlines(
            head_s=settings.head_s,
            unread_s=settings.unread_s,
            connections_max=settings.connections_max,
        )
        protocol = functools.partial(TimedProtocol, deadlines)
        config = uvicorn.Config(
            cast("Any", gate),
            http=cast("Any", protocol),
            ws="none",
            loop="asyncio",
            lifespan="off",
            log_config=None,
            access_log=False,
            server_header=False,
            proxy_headers=False,
            backlog=_BACKLOG,
            timeout_keep_alive=settings.idle_s,
            timeout_graceful_shutdown=_REQUESTS_S,
            h11_max_incomplete_event_size=settings.header_bytes_max,
        )

        class SignalFreeServer(uvicorn.Server):
            @contextlib.contextmanager
            def capture_signals(self) -> Iterator[None]:
                # `run` handles signals: uvicorn's handlers would end the process with its workers.
                yield

            async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
                # uvicorn would wait for open streams as it waits for any answer.
                streams.stop()
                await super().shutdown(sockets)

        return SignalFreeServer(config)

    def run(self, on_ready: OnReady) -> Ended:
        """Answer until a signal comes."""
        # A background job, which a shell starts with SIGINT ignored, goes on ignoring it.
        taken = [signal.SIGTERM, signal.SIGINT]
        taken = [number for number in taken if signal.getsignal(number) is not signal.SIG_IGN]
        before = {number: signal.signal(number, self._end) for number in taken}
        self._pool.start(recovers=True)
        on_ready(_address(self._listeners[0]), f"/open/{self._link()}" if self._link else None)
        try:
            with self._pushing():
                self._server.run(sockets=list(self._listeners))
        finally:
            is_quiet = self._pool.shutdown(wait_s=_WORKERS_S)
            is_quiet = self._executors.close(_CALLS_S) and is_quiet
            is_quiet = self._changes.close(_CALLS_S) and is_quiet
            for number, handler in before.items():
                signal.signal(number, handler)
        return Ended(by=self._by, is_quiet=is_quiet)

    def _end(self, number: int, _: FrameType | None) -> None:
        self._by = number
        self._server.should_exit = True


def _address(listener: socket.socket) -> str:
    host, port = listener.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
