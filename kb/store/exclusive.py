"""Having a store to oneself: no other process has it open, and none opens it meanwhile."""

import fcntl
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from kb.errors import ReadOnlyHome, StoreBusy


@contextmanager
def exclusive_access(folder: Path) -> Iterator[Callable[[], None]]:
    """Hold the store in `folder`; gives what to call before another data file takes its place.

    LMDB's own lock is held: whoever has a store open shares it, in another process. Raises
    StoreBusy where somebody does, ReadOnlyHome.
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
        # What it says is of the file that goes; empty, it is written anew.
        yield lambda: os.ftruncate(fd, 0)
    finally:
        os.close(fd)
