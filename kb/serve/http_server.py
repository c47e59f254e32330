"""The server itself: a socket, uvicorn on it, and the home's workers beside it."""

import asyncio
import contextlib
import functools
import importlib.util
import logging
import secrets
import signal
import socket
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from types import FrameType
from typing import Any, Final, TextIO, cast

import msgspec
from msgspec import Struct

from kb.errors import KbError, install_command
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
from kb.serve.listening import BACKLOG, Listening
from kb.serve.sessions import Sessions
from kb.store.trust.local_token import LocalToken

# Together under ten seconds: requests that are answered, workers, threads that still answer.
_REQUESTS_S: Final = 3
_WORKERS_S: Final = 3.0
_CALLS_S: Final = 0.5
# Of those who connect as it ends.
_LAST_S: Final = 0.5
_LOOK_S: Final = 0.02
_PUBLISH_S: Final = 1
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


def check_installed() -> None:
    """Raise KbError without uvicorn."""
    if importlib.util.find_spec("uvicorn") is None:
        raise KbError(f"the server needs uvicorn; run `{install_command('serve')}`")


def answer(
    spaces: Spaces,
    settings: ServeSettings,
    place: Listening,
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
    needs one until the home has tokens. Call `check_installed` first.
    """
    secret = own.read_or_create() if own is not None else None
    options = GateOptions(
        settings=settings,
        host=settings.host,
        is_loopback=place.is_loopback,
        draw=secrets.token_bytes,
        own_token=secret,
        cookie=f"kb-{place.public.getsockname()[1]}",
    )
    lines = AccessLog(stream, form, spaces.first.store.clock)
    ended = _Running(spaces, place, options, lines).run(on_ready)
    return msgspec.structs.replace(ended, is_heard=lines.close(_CALLS_S))


class _Running:
    """One process of a server from its start to its end."""

    def __init__(
        self, spaces: Spaces, place: Listening, options: GateOptions, lines: AccessLog
    ) -> None:
        self._place = place
        app, settings, places = spaces.first, options.settings, place.places
        self._executors = CallExecutors(
            short=CallExecutor(_THREADS, settings.concurrency_max, places.of("short")),
            long=CallExecutor(settings.long_max, settings.long_max, places.of("long")),
        )
        self._pool = app.pool(reads_files=True)
        self._works = app.settings.work.threads > 0
        # One process is enough to push, and several would each ask whether it is due.
        self._pushing = app.notebook.pushing if place.process == 0 else contextlib.nullcontext
        # The processes of a server have one folder of caches.
        follower = app.cache_follower if place.process == 0 and app.store.is_shared else None
        self._following = follower.following if follower else contextlib.nullcontext
        self._by = 0
        self._metrics = metrics = Metrics(place.metrics)
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
            sessions=Sessions(options.draw, file=place.sessions),
            cookie=options.cookie,
        )
        self._link = served.sessions.link if options.own_token else None
        streams = Streams(options.settings.streams_max, metrics, places.of("streams"))
        gate = Gate(all_routes(), served, options, metrics, self._executors, lines, streams, places)
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
            connections=self._place.places.of("connections"),
        )
        protocol = functools.partial(TimedProtocol, deadlines)

        async def publish() -> None:
            self._metrics.publish()

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
            # Of several processes each takes one connection at a time, so that all take some.
            backlog=BACKLOG if self._place.processes == 1 else 1,
            timeout_keep_alive=settings.idle_s,
            timeout_graceful_shutdown=_REQUESTS_S,
            h11_max_incomplete_event_size=settings.header_bytes_max,
            callback_notify=publish,
            timeout_notify=_PUBLISH_S,
        )

        # uvicorn would wait for open streams as it waits for any answer.
        return _server(config, streams.stop)

    def run(self, on_ready: OnReady) -> Ended:
        """Answer until a signal comes."""
        # A background job, which a shell starts with SIGINT ignored, goes on ignoring it.
        taken = [signal.SIGTERM, signal.SIGINT]
        taken = [number for number in taken if signal.getsignal(number) is not signal.SIG_IGN]
        before = {number: signal.signal(number, self._end) for number in taken}
        if self._works:
            self._pool.start(recovers=True)
        on_ready(self._place.address, f"/open/{self._link()}" if self._link else None)
        try:
            with self._pushing(), self._following():
                self._server.run(sockets=list(self._place.sockets))
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


def _accepted(listeners: Sequence[socket.socket]) -> list[socket.socket]:
    """Those who connected and wait to be accepted: with their listener they would be reset."""
    found = []
    for listener in listeners:
        with contextlib.suppress(OSError):
            for _ in range(BACKLOG):
                # Of its own class, which may leave it to other processes.
                connection, _ = socket.socket.accept(listener)
                connection.setblocking(False)
                found.append(connection)
    return found


async def _until_asked(connections: Collection[Any]) -> None:
    """Answer once more on connections on which a request may be on its way, for a moment."""
    deadline_s = time.monotonic() + _LAST_S
    while True:
        for connection in connections:
            connection.end_with_an_answer()
        await asyncio.sleep(_LOOK_S)
        if time.monotonic() > deadline_s or not any(one.may_be_asked for one in connections):
            return


def _server(config: Any, on_stop: Callable[[], None]) -> Any:
    """A server of uvicorn that leaves signals alone, and ends without resetting a connection."""
    import uvicorn

    class GentleServer(uvicorn.Server):
        @contextlib.contextmanager
        def capture_signals(self) -> Iterator[None]:
            # `run` handles signals: uvicorn's handlers would end the process with its workers.
            yield

        async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
            on_stop()
            loop = asyncio.get_running_loop()
            for listener in sockets or []:
                loop.remove_reader(listener)
            # What the loop has accepted it makes now; once its server is closed it would not.
            await asyncio.sleep(_LOOK_S)
            last = _accepted(sockets or [])
            for server in self.servers:
                server.close()
            for connection in last:
                await loop.connect_accepted_socket(self._protocol, connection)
            # uvicorn would close a connection whose next request is still to be read.
            await _until_asked(self.server_state.connections)
            await super().shutdown(sockets)

        def _protocol(self) -> asyncio.Protocol:
            made: asyncio.Protocol = self.config.http_protocol_class(  # type: ignore[call-arg]
                config=self.config, server_state=self.server_state, app_state=self.lifespan.state
            )
            return made

    return GentleServer(config)
