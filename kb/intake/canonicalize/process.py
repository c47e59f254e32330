"""Who reads for us? One child process behind two pipes, asked one thing at a time."""

import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Sequence
from typing import IO, Final

from kb.intake.canonicalize.child_protocol import HEADER, REPLY_BYTES_MAX, encode_frame

_CHUNK_BYTES: Final = 1 << 20
_WRITE_BYTES: Final = 1 << 16
_EXIT_WAIT_S: Final = 5.0
# What works gets more than this on the busiest machine.
_BUSY_SHARE_MIN: Final = 0.01


class ChildGone(Exception):
    """The child ended without an answer; `str()` says how."""


class ChildSpent(Exception):
    """The child ended by its bound on processor time."""


class ChildIdle(Exception):
    """The child neither answers nor works."""


class ChildGarbled(Exception):
    """What came is not an answer."""


class ChildProcess:
    """A running child. After any exception from `ask`, only `stop` is of use."""

    def __init__(self, argv: Sequence[str], env: dict[str, str]) -> None:
        """Start it in a session of its own, so that Ctrl-C reaches the parent alone.

        Raises:
            OSError: it cannot be started.
        """
        self._process = subprocess.Popen(
            argv,
            env=env,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
            bufsize=0,
        )
        self.pid: int = self._process.pid
        for pipe in self._pipes():
            os.set_blocking(pipe.fileno(), False)

    def is_alive(self) -> bool:
        """Whether it has not ended yet."""
        return self._process.poll() is None

    def ask(self, payload: bytes, idle_s_max: float) -> bytes:
        """Send one payload, return the answer's, for as long as the child works on it.

        Raises:
            ChildIdle: in `idle_s_max` it used less than a hundredth of a processor.
            ChildSpent: it has used up its own bound on processor time.
            ChildGone: it ended first.
            ChildGarbled: the answer is no frame, or came before the question was out.
        """
        look = time.monotonic() + idle_s_max
        worked_s = self._worked_s()
        to_child, from_child = self._pipes()
        unsent = memoryview(encode_frame(payload))
        received = bytearray()
        with selectors.DefaultSelector() as ready:
            ready.register(to_child, selectors.EVENT_WRITE)
            ready.register(from_child, selectors.EVENT_READ)
            while True:
                left_s = look - time.monotonic()
                if left_s <= 0:
                    before_s, worked_s = worked_s, self._worked_s()
                    if worked_s - before_s < _BUSY_SHARE_MIN * idle_s_max:
                        raise ChildIdle
                    look = time.monotonic() + idle_s_max
                    continue
                for key, _ in ready.select(left_s):
                    if key.fileobj is to_child:
                        unsent = unsent[_write_some(to_child.fileno(), unsent) :]
                        if not unsent:
                            ready.unregister(to_child)
                        continue
                    received += self._read_some(from_child.fileno())
                    if (answer := _whole(received)) is None:
                        continue
                    if unsent:
                        raise ChildGarbled
                    return answer

    def kill(self) -> None:
        """End it now; safe from any thread, and when it has ended already."""
        with contextlib.suppress(OSError):
            self._process.kill()

    def stop(self) -> None:
        """Kill it, reap it, close its pipes; takes no longer than a few seconds."""
        self.kill()
        for pipe in self._pipes():
            with contextlib.suppress(OSError):
                pipe.close()
        # A process that survives SIGKILL hangs in the kernel; init will reap it.
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_EXIT_WAIT_S)

    def _worked_s(self) -> float:
        """Processor time that it has used so far; always 0 where the system does not tell."""
        # The clock of a process, as Linux numbers it; see clock_getcpuclockid(3).
        with contextlib.suppress(OSError, OverflowError):
            return time.clock_gettime((~self.pid << 3) | 2)
        return 0.0

    def _pipes(self) -> tuple[IO[bytes], IO[bytes]]:
        stdin, stdout = self._process.stdin, self._process.stdout
        assert stdin is not None
        assert stdout is not None
        return stdin, stdout

    def _read_some(self, fd: int) -> bytes:
        try:
            chunk = os.read(fd, _CHUNK_BYTES)
        except BlockingIOError:
            return b""
        if not chunk:
            raise self._end()
        return chunk

    def _end(self) -> ChildGone | ChildSpent:
        """How it ended, for a person."""
        try:
            status = self._process.wait(_EXIT_WAIT_S)
        except subprocess.TimeoutExpired:
            return ChildGone("its reader stopped answering")
        match -status:
            case signal.SIGKILL:
                return ChildGone("its reader was killed, perhaps because memory ran out")
            case signal.SIGPROF | signal.SIGXCPU:
                return ChildSpent()
            case number if number > 0:
                return ChildGone(f"its reader crashed ({signal.Signals(number).name})")
            case _:
                return ChildGone(f"its reader ended with status {status}")


def _write_some(fd: int, unsent: memoryview) -> int:
    """Bytes taken by the pipe. A closed pipe takes all: the child's end is seen when reading."""
    try:
        return os.write(fd, unsent[:_WRITE_BYTES])
    except BlockingIOError:
        return 0
    except BrokenPipeError:
        return len(unsent)


def _whole(received: bytearray) -> bytes | None:
    """The payload once the frame is complete, None until then."""
    if len(received) < HEADER.size:
        return None
    (size,) = HEADER.unpack_from(received)
    if size > REPLY_BYTES_MAX or len(received) > HEADER.size + size:
        raise ChildGarbled
    return bytes(received[HEADER.size :]) if len(received) == HEADER.size + size else None
