"""What the server says of its work: a line to a request, without anything that was asked."""

import contextlib
import datetime as dt
import queue
import threading
import time
from typing import Final, Literal, TextIO

import msgspec
from msgspec import Struct

from kb.model.clock import Clock

LogFormat = Literal["json", "text"]
_NONE: Final = "-"
_WAITING_MAX: Final = 10_000


class AccessEntry(Struct, frozen=True, kw_only=True):
    """A request that has ended: the route and not the address, for that may hold what was asked."""

    request_id: str
    method: str
    route: str
    status: int
    took_ms: float
    bytes: int
    user: str | None


class _DroppedEntries(Struct, frozen=True, kw_only=True):
    left_out: int


class _Fault(Struct, frozen=True, kw_only=True):
    request_id: str
    error: str


class AccessLog:
    """Writes lines, each whole, however many threads write; close it.

    A thread of its own writes them, so that no answer waits for whoever reads the log. Of those
    that wait there are at most 10,000: what comes then is left out, and how much is said later.
    """

    def __init__(self, stream: TextIO, form: LogFormat, clock: Clock) -> None:
        self._stream = stream
        self._form = form
        self._clock = clock
        self._lock = threading.Lock()
        self._left_out = 0
        self._waiting: queue.Queue[str | None] = queue.Queue(_WAITING_MAX)
        self._writer = threading.Thread(target=self._write_all, name="kb-lines", daemon=True)
        self._writer.start()

    def write(self, line: AccessEntry) -> None:
        """A request that has ended."""
        user = (line.user or _NONE).replace(" ", "_")
        self._put(
            line,
            f"{line.status} {line.method} {line.route} {line.took_ms} ms {line.bytes} bytes "
            f"{user} {line.request_id}",
        )

    def failed(self, request_id: str, error: BaseException) -> None:
        """What went wrong with a request, by its class alone."""
        fault = _Fault(request_id=request_id, error=type(error).__name__)
        self._put(fault, f"failed: {fault.error} {request_id}")

    def close(self, wait_s: float) -> bool:
        """Write what waits, within `wait_s`; False where the log was still not taken then."""
        end_s = time.monotonic() + wait_s
        with contextlib.suppress(queue.Full):
            self._waiting.put(None, timeout=wait_s)
        self._writer.join(max(0.0, end_s - time.monotonic()))
        return not self._writer.is_alive()

    def _put(self, record: Struct, text: str) -> None:
        try:
            self._waiting.put_nowait(self._formed(record, text))
        except queue.Full:
            with self._lock:
                self._left_out += 1

    def _formed(self, record: Struct, text: str) -> str:
        at = dt.datetime.fromtimestamp(self._clock.now_ms() / 1000, dt.UTC)
        moment = at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        if self._form == "json":
            return msgspec.json.encode({"at": moment, **msgspec.structs.asdict(record)}).decode()
        return f"{moment} {text}"

    def _write_all(self) -> None:
        while (text := self._waiting.get()) is not None:
            self._write_one(text)
            with self._lock:
                count, self._left_out = self._left_out, 0
            if count:
                left_out = _DroppedEntries(left_out=count)
                self._write_one(self._formed(left_out, f"{count} lines were left out"))

    def _write_one(self, text: str) -> None:
        # A log that cannot be written keeps nobody from an answer.
        with contextlib.suppress(OSError):
            self._stream.write(text + "\n")
            self._stream.flush()
