"""A file lock that ends with its holder: one process at a time does a piece of work."""

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from kb.errors import StoreBusy

_POLL_S: Final = 0.02


@contextmanager
def file_lock(path: Path, wait_s: float) -> Iterator[None]:
    """Hold an exclusive flock on `path`, a file or a folder, for the block.

    The file is made where it is missing and never removed: a lock on a deleted file excludes
    nobody. Raises StoreBusy after `wait_s` seconds, OSError where it cannot be opened.
    """
    # Without O_NOFOLLOW a link could make us create a file elsewhere.
    create = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW
    flags = os.O_RDONLY | os.O_DIRECTORY if path.is_dir() else create
    descriptor = os.open(path, flags | os.O_CLOEXEC, 0o600)
    try:
        _acquire(descriptor, path, time.monotonic() + wait_s)
        yield
    finally:
        # Closing releases the lock: no child inherits the descriptor.
        os.close(descriptor)


def _acquire(descriptor: int, path: Path, deadline: float) -> None:
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return
        except BlockingIOError:
            remaining_s = deadline - time.monotonic()
            if remaining_s <= 0:
                raise StoreBusy(place=path) from None
            time.sleep(min(_POLL_S, remaining_s))
