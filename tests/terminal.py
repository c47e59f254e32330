"""The real command on a terminal of its own."""

import os
import pty
import select
import time

from commands import TIMEOUT_S, surroundings


def on_terminal(argv: list[str], typed: bytes = b"", **env: str | None) -> tuple[int, str]:
    """Run with every standard stream on one terminal; the exit code and all that it showed."""
    pid, fd = pty.fork()
    if pid == 0:
        os.execve(argv[0], argv, surroundings(**env))
    if typed:
        os.write(fd, typed)
    shown = b""
    deadline = time.monotonic() + TIMEOUT_S
    while time.monotonic() < deadline:
        if not select.select([fd], [], [], 1)[0]:
            continue
        try:
            block = os.read(fd, 65536)
        except OSError:
            break
        if not block:
            break
        shown += block
    os.close(fd)
    _, status = os.waitpid(pid, 0)
    return os.waitstatus_to_exitcode(status), shown.decode()
