"""One server of several processes: a parent that holds the sockets, and children that answer.

Each child is a new program, not a fork: an open store, its threads and its locks do not survive a
fork. Parent and child keep a socket between them, whose end tells each that the other is gone.
"""

import contextlib
import logging
import os
import selectors
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from types import FrameType
from typing import Final

import msgspec

from kb.errors import KbError
from kb.serve.listening import Inherited, Listening, SharedParts

logger = logging.getLogger(__name__)

READY: Final = b"ready"
# A child ends within ten seconds of SIGTERM.
_END_S: Final = 15.0
_PAUSE_FIRST_S: Final = 0.5
_PAUSE_MAX_S: Final = 30.0
# A child that lived so long had no trouble to start.
_SETTLED_S: Final = 60.0

Command = Callable[[int], Sequence[str]]
"""The command line of a child that is told of its parent by this descriptor."""


class ProcessFailed(KbError):
    """A process of the server did not start; it has said why."""

    template = "a process of the server did not start (exit code {code})"


class _Child:
    """One process that answers, from one start to the next."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.starts = 0
        self.is_ready = False
        self.next_start_s = 0.0
        self.process: subprocess.Popen[bytes] | None = None
        self.link: socket.socket | None = None
        self._pause_s = _PAUSE_FIRST_S
        self._started_s = 0.0

    def start(self, command: Command, told: Inherited) -> socket.socket:
        """Start it; returns the socket that tells of it."""
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            ours.send(msgspec.json.encode(told))
            self.process = subprocess.Popen(
                command(theirs.fileno()),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                pass_fds=(theirs.fileno(), *told.descriptors),
                # Ctrl-C at a terminal reaches the parent alone, which ends them in order.
                process_group=0,
            )
        self.link = ours
        self.is_ready = False
        self.starts += 1
        self._started_s = time.monotonic()
        return ours

    def ended(self) -> int:
        """Its exit code, once its end of the socket is closed; says when it may start again."""
        assert self.process is not None
        assert self.link is not None
        self.link.close()
        self.link = None
        try:
            code = self.process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            code = self.process.wait()
        self.process = None
        now_s = time.monotonic()
        if now_s - self._started_s > _SETTLED_S:
            self._pause_s = _PAUSE_FIRST_S
        self.next_start_s = now_s + self._pause_s
        logger.warning("a process of the server ended by itself; it starts again in a moment")
        self._pause_s = min(2 * self._pause_s, _PAUSE_MAX_S)
        return code


class Processes:
    """The children of one server, from their start to their end."""

    def __init__(self, place: Listening, processes: int, command: Command) -> None:
        self._place = place
        self._command = command
        self._children = [_Child(number) for number in range(processes)]
        self._by = 0

    def run(self, on_ready: Callable[[], None]) -> int:
        """Answer until SIGTERM or SIGINT, and return which came; every child has ended by then.

        `on_ready` is called once all children take requests. One that ends later starts again,
        after a pause that grows from half a second to half a minute. Raises ProcessFailed where one
        ends before.
        """
        parts = SharedParts(self._place, len(self._children))
        with contextlib.ExitStack() as held, selectors.DefaultSelector() as events:
            held.callback(parts.close)
            held.callback(self._end_all)
            held.enter_context(self._signals(events))
            while not self._by:
                self._start_due(parts, events)
                for key, _ in events.select(self._wait_s()):
                    child = key.data
                    if child is None:
                        continue
                    assert child.link is not None
                    if child.link.recv(len(READY)) == READY:
                        child.is_ready = True
                        if all(child.is_ready for child in self._children):
                            on_ready()
                            on_ready = _nothing
                    elif not self._by:
                        events.unregister(child.link)
                        code = child.ended()
                        parts.places.clear(child.number)
                        if on_ready is not _nothing:
                            raise ProcessFailed(code=code)
        return self._by

    def _start_due(self, parts: SharedParts, events: selectors.BaseSelector) -> None:
        now_s = time.monotonic()
        for child in self._children:
            if child.process is None and child.next_start_s <= now_s:
                told = parts.inherited(child.number, child.starts + 1)
                link = child.start(self._command, told)
                events.register(link, selectors.EVENT_READ, child)

    def _wait_s(self) -> float | None:
        """How long until one is to be started again; None where none is."""
        due_s = [child.next_start_s for child in self._children if child.process is None]
        return max(0.0, min(due_s) - time.monotonic()) if due_s else None

    @contextlib.contextmanager
    def _signals(self, events: selectors.BaseSelector) -> Iterator[None]:
        """Have a signal end the wait for events."""
        woken, waker = socket.socketpair()
        waker.setblocking(False)

        def end(number: int, _: FrameType | None) -> None:
            self._by = number
            with contextlib.suppress(BlockingIOError):
                waker.send(b"\0")

        # A background job, which a shell starts with SIGINT ignored, goes on ignoring it.
        taken = [signal.SIGTERM, signal.SIGINT]
        taken = [number for number in taken if signal.getsignal(number) is not signal.SIG_IGN]
        before = {number: signal.signal(number, end) for number in taken}
        with woken, waker:
            events.register(woken, selectors.EVENT_READ, None)
            try:
                yield
            finally:
                for number, handler in before.items():
                    signal.signal(number, handler)

    def _end_all(self) -> None:
        """Let every child finish what it has begun, and kill one that takes too long."""
        # So that nobody connects whom no child would answer.
        for one in self._place.sockets:
            one.close()
        running = [child for child in self._children if child.process is not None]
        for child in running:
            assert child.process is not None
            child.process.send_signal(signal.SIGTERM)
        end_s = time.monotonic() + _END_S
        for child in running:
            assert child.process is not None
            try:
                child.process.wait(max(0.0, end_s - time.monotonic()))
            except subprocess.TimeoutExpired:
                child.process.kill()
                child.process.wait()
            if child.link is not None:
                child.link.close()


def _nothing() -> None:
    """All children were ready before."""


def socket_of(descriptor: int) -> socket.socket:
    """The socket that a child shares with its parent."""
    return socket.socket(fileno=descriptor)


def end_with(parent: socket.socket) -> None:
    """Have this process end as by SIGTERM when its parent is gone."""

    def watch() -> None:
        with contextlib.suppress(OSError):
            parent.recv(1)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, name="kb-parent", daemon=True).start()
