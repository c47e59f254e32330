"""What the server says of its work: a line to a request, without anything that was asked."""

import contextlib
import datetime as dt
import threading
from typing import Final, Literal, TextIO

import msgspec
from msgspec import Struct

from kb.model.clock import Clock

LineFormat = Literal["json", "text"]
_NONE: Final = "-"


class Line(Struct, frozen=True, kw_only=True):
    """A request that has ended: the route and not the address, for that may hold what was asked."""

    request_id: str
    method: str
    route: str
    status: int
    took_ms: float
    bytes: int
    user: str | None


class _Fault(Struct, frozen=True, kw_only=True):
    request_id: str
    error: str


class Lines:
    """Writes lines, each whole, however many threads write."""

    def __init__(self, stream: TextIO, form: LineFormat, clock: Clock) -> None:
        self._stream = stream
        self._form = form
        self._clock = clock
        self._lock = threading.Lock()

    def write(self, line: Line) -> None:
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

    def _put(self, said: Struct, text: str) -> None:
        at = dt.datetime.fromtimestamp(self._clock.now_ms() / 1000, dt.UTC)
        moment = at.isoformat(timespec="milliseconds").replace("+00:00", "Z")
        if self._form == "json":
            text = msgspec.json.encode({"at": moment, **msgspec.structs.asdict(said)}).decode()
        else:
            text = f"{moment} {text}"
        # A log that cannot be written keeps nobody from an answer.
        with self._lock, contextlib.suppress(OSError):
            self._stream.write(text + "\n")
            self._stream.flush()
