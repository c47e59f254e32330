"""How are many pages asked for? By a few threads, with the pause that the site wants."""

import threading
import time
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Final, Self

from msgspec import Struct

from kb.errors import KbError
from kb.intake.sync.fetch import Fetched
from kb.model.site import SitePage

_LOOK_S: Final = 0.5


class Response(Struct, frozen=True):
    """What became of the request for a page."""

    page: SitePage
    answer: Fetched | KbError
    asked_ms: int


class PageRequests:
    """Fetches pages in threads; used as a context manager."""

    def __init__(
        self,
        fetch: Callable[[SitePage, bool], Fetched],
        now_ms: Callable[[], int],
        *,
        connections: int,
        delay_s: float,
    ) -> None:
        """`delay_s` is the time between two requests; with one there is one connection."""
        self._fetch = fetch
        self._now_ms = now_ms
        self._delay_s = delay_s
        self._connections = 1 if delay_s else connections
        self._threads = self._connections
        self._asked: SimpleQueue[tuple[SitePage, bool] | None] = SimpleQueue()
        self._done: SimpleQueue[Response | BaseException] = SimpleQueue()
        self._stop = threading.Event()
        self._next_s = 0.0
        self.in_flight = 0

    @property
    def has_room(self) -> bool:
        """Whether a connection is free."""
        return self.in_flight < self._connections

    def ask(self, page: SitePage, *, if_changed: bool) -> None:
        """Ask for a page, or only for its news if it has changed."""
        self.in_flight += 1
        self._asked.put((page, if_changed))

    def next(self) -> Response:
        """The next response, in the order in which they come."""
        while True:
            try:
                done = self._done.get(timeout=_LOOK_S)
            except Empty:
                continue
            self.in_flight -= 1
            if isinstance(done, BaseException):
                raise done
            return done

    def pause(self, wait_s: float) -> None:
        """Send nothing for so long, and use one connection from now on."""
        self._connections = 1
        self._next_s = max(self._next_s, time.monotonic() + wait_s)

    def _run(self) -> None:
        while (asked := self._asked.get()) is not None:
            page, if_changed = asked
            now_s = time.monotonic()
            self._stop.wait(max(0.0, self._next_s - now_s))
            if self._stop.is_set():
                return
            # With a delay there is one connection at a time, so the time of one request is enough.
            self._next_s = max(self._next_s, time.monotonic() + self._delay_s)
            asked_ms = self._now_ms()
            try:
                self._done.put(Response(page, self._fetch(page, if_changed), asked_ms))
            except KbError as error:
                self._done.put(Response(page, error, asked_ms))
            except BaseException as error:  # noqa: BLE001  raised again by `next`
                self._done.put(error)

    def __enter__(self) -> Self:
        # Daemons: an interrupted command does not wait for a slow server.
        for _ in range(self._threads):
            threading.Thread(target=self._run, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        for _number in range(self._threads):
            self._asked.put(None)
