"""A child process that speaks to a remote: how it answers, and how it is ended."""

import contextlib
import os
import re
import resource
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Final, TypeVar

import msgspec

from kb.model.decoding import decode_json

_DETAIL_CHARS_MAX: Final = 300
_DATA_BYTES_MAX: Final = 2 << 30
_Request = TypeVar("_Request")


class TimeOver(Exception):
    """The time of an attempt is over."""


@contextlib.contextmanager
def within(seconds_max: int) -> Iterator[None]:
    """Raise TimeOver inside the block after so many seconds; this process must be alone."""
    signal.signal(signal.SIGALRM, _end)
    signal.alarm(seconds_max)
    try:
        yield
    finally:
        signal.alarm(0)


def _end(_: int, __: FrameType | None) -> None:
    raise TimeOver


def serve(request_type: type[_Request], attempt: Callable[[_Request], object]) -> int:
    """Answer one request from standard input on standard output; returns the exit status."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    answers = os.dup(1)
    # The output of libraries and ssh is discarded.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_DATA, (_DATA_BYTES_MAX, _DATA_BYTES_MAX))
    outcome = attempt(decode_json(sys.stdin.buffer.read(), request_type))
    with contextlib.suppress(BrokenPipeError):
        os.write(answers, msgspec.json.encode(outcome))
    return 0


def plain(text: str, token_name: str) -> str:
    """A remote's message for storage: one bounded line, without the token and other logins."""
    token = os.environ.get(token_name, "")
    bare = text.replace(token, "***") if token else text
    bare = re.sub(r"//[^/\s]*@", "//", " ".join(bare.split()))
    return "".join(sign if sign.isprintable() else "?" for sign in bare)[:_DETAIL_CHARS_MAX]


def kill(process: "subprocess.Popen[bytes]") -> None:
    """Kill a process that leads a session, with its children, such as ssh."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def end(process: "subprocess.Popen[bytes]") -> None:
    """Kill a process unless it has ended, and wait for it."""
    if process.poll() is None:
        kill(process)
    process.communicate()
