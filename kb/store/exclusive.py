"""Exclusive access to a store: no other process has it open or can open it meanwhile."""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from kb.errors import ReadOnlyHome, StoreBusy


@contextmanager
def exclusive_access(folder: Path) -> Iterator[Callable[[], None]]:
    """Lock the store in `folder` exclusively, by LMDB's own lock file.

    Yields a function that resets the lock file; call it before another data file replaces the
    store's. Raises StoreBusy if another process has the store open, and ReadOnlyHome.
    """
    try:
        flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
        fd = os.open(folder / "lock.mdb", flags, 0o600)
    except OSError as error:
        raise ReadOnlyHome(error.strerror or "", place=folder) from error
    try:
        try:
            fcntl.lockf(fd, fcntl.LOCK_EX | fcntl.LOCK_NB, 1, 0)
        except (BlockingIOError, PermissionError) as error:
            raise StoreBusy(place=folder) from error
        # The lock file describes the old data file; LMDB initializes an empty one again.
        yield lambda: os.ftruncate(fd, 0)
    finally:
        os.close(fd)
