"""How does the child live? It bounds itself, then answers until its input ends.

`kb.intake.canonicalize.parser` runs it as a module, with MEMORY_BYTES_MAX and CPU_S_MAX.
"""

import contextlib
import math
import os
import resource
import signal
import sys
from typing import Final

from kb.errors import Scanned, SourceError
from kb.intake.canonicalize import page_time
from kb.intake.canonicalize.child_protocol import (
    HEADER,
    PageDrawn,
    ParseFailure,
    ParseSuccess,
    Question,
    Reply,
    decode_request,
    encode,
    encode_frame,
)
from kb.intake.canonicalize.dispatch import PictureInput, canonicalize

_FILES_MAX: Final = 64
# A child that waits for something when its parent has died is ended by the clock in the end.
_WALL_SHARE: Final = 100
_ENDING: Final = (signal.SIGPROF, signal.SIGXCPU, signal.SIGALRM, signal.SIGTERM)


def main(memory_bytes_max: int, cpu_s_max: float) -> int:
    """Answer requests on descriptor 0 until it ends; returns the exit status."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    for number in _ENDING:
        # Whoever started the parent may have had it ignore or hold back what ends us.
        signal.signal(number, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, _ENDING)
    answers = _answers_fd()
    _bound(resource.RLIMIT_CORE, 0)
    _bound(resource.RLIMIT_NOFILE, _FILES_MAX)
    _bound(resource.RLIMIT_AS, memory_bytes_max)
    while (payload := _read_frame()) is not None:
        page_time.bound(page_time.PageTime(cpu_s_max, _end_after))
        reply = encode(_answer(payload, memory_bytes_max))
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.alarm(0)
        del payload
        _write_all(answers, encode_frame(reply))
    return 0


def _end_after(cpu_s: float) -> None:
    """Have the process ended after so much more processor time, whatever it does then."""
    signal.setitimer(signal.ITIMER_PROF, cpu_s)
    signal.alarm(math.ceil(cpu_s * _WALL_SHARE))


def _answer(payload: bytes, memory_bytes_max: int) -> Reply:
    source = decode_request(payload)
    try:
        if isinstance(source, PictureInput):
            from kb.intake.canonicalize.pdf.render import page_picture

            picture = page_picture(source.data, source.page, source.name)
            return PageDrawn(picture=picture, rss_bytes=_rss_bytes())
        return ParseSuccess(canonical=canonicalize(source), rss_bytes=_rss_bytes())
    except Scanned as error:
        return _refused(source, "Scanned", error.reason, error.pages)
    except SourceError as error:
        return _refused(source, type(error).__name__, error.reason)
    except MemoryError:
        pass
    mebibytes = memory_bytes_max // 1024**2
    return _refused(source, "Unparsable", f"it needs more than {mebibytes} MiB of memory to read")


def _refused(source: Question, error: str, detail: str, pages: int = 0) -> ParseFailure:
    rss_bytes = _rss_bytes()
    return ParseFailure(
        error=error, detail=detail, source=source.name, rss_bytes=rss_bytes, pages=pages
    )


def _answers_fd() -> int:
    """A private descriptor for answers; what a library prints goes nowhere."""
    answers = os.dup(1)
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.close(nowhere)
    return answers


def _bound(what: int, limit: int) -> None:
    """Lower a limit for good, as far as the system knows it."""
    _, hard = resource.getrlimit(what)
    if hard != resource.RLIM_INFINITY:
        limit = min(limit, hard)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(what, (limit, limit))


def _rss_bytes() -> int:
    """The most memory that this program has held."""
    # ru_maxrss also counts what the process held before it became this program: its parent's.
    with contextlib.suppress(OSError, ValueError), open("/proc/self/status", "rb") as status:
        for line in status:
            if line.startswith(b"VmHWM:"):
                return int(line.removeprefix(b"VmHWM:").removesuffix(b" kB\n")) * 1024
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def _read_frame() -> bytes | None:
    header = _read_exactly(HEADER.size)
    return None if header is None else _read_exactly(HEADER.unpack(header)[0])


def _read_exactly(size: int) -> bytes | None:
    """That many bytes; None when the parent has gone."""
    received = bytearray()
    while len(received) < size:
        chunk = os.read(0, min(size - len(received), 1 << 20))
        if not chunk:
            return None
        received += chunk
    return bytes(received)


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]


if __name__ == "__main__":
    try:
        sys.exit(main(int(sys.argv[1]), float(sys.argv[2])))
    except BrokenPipeError:
        sys.exit(0)
