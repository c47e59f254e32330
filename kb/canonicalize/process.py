"""Who reads for us? One child process behind two pipes, asked one thing at a time."""

import contextlib
import os
import selectors
import signal
import subprocess
import time
from collections.abc import Sequence
from typing import IO, Final

from kb.canonicalize.wire import HEADER, REPLY_BYTES_MAX, frame

_CHUNK_BYTES: Final = 1 << 20
_WRITE_BYTES: Final = 1 << 16
_EXIT_WAIT_S: Final = 5.0


class ChildGone(Exception):
    """The child ended without an answer; `str()` says how."""


class ChildLate(Exception):
    """No whole answer came in time."""


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

    def ask(self, payload: bytes, wall_s: float) -> bytes:
        """Send one payload, return the answer's.

        Raises:
            ChildLate: `wall_s` have passed.
            ChildGone: it ended first.
            ChildGarbled: the answer is no frame, or came before the question was out.
        """
        deadline = time.monotonic() + wall_s
        to_child, from_child = self._pipes()
        unsent = memoryview(frame(payload))
        received = bytearray()
        with selectors.DefaultSelector() as ready:
            ready.register(to_child, selectors.EVENT_WRITE)
            ready.register(from_child, selectors.EVENT_READ)
            while True:
                left_s = deadline - time.monotonic()
                if left_s <= 0:
                    raise ChildLate
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
            raise ChildGone(self._end())
        return chunk

    def _end(self) -> str:
        """How it ended, for a person."""
        try:
            status = self._process.wait(_EXIT_WAIT_S)
        except subprocess.TimeoutExpired:
            return "its reader stopped answering"
        match -status:
            case signal.SIGKILL:
                return "its reader was killed, perhaps because memory ran out"
            case signal.SIGXCPU | signal.SIGALRM:
                return "its reader took too long"
            case number if number > 0:
                return f"its reader crashed ({signal.Signals(number).name})"
            case _:
                return f"its reader ended with status {status}"


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
