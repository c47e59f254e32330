"""What the processes of one server share: counts in memory, and small files that have no name.

The parent makes them, and each child inherits their descriptors. A server of one process has the
same, and nobody to share them with.
"""

import contextlib
import fcntl
import mmap
import os
import tempfile
import threading
from collections.abc import Iterator
from typing import Final, Literal

PROCESSES_MAX: Final = 64
Place = Literal["connections", "short", "long", "streams", "files"]
_PLACES: Final[tuple[Place, ...]] = ("connections", "short", "long", "streams", "files")
_COUNT_BYTES: Final = 8
_ROW: Final = len(_PLACES)
_BYTES: Final = PROCESSES_MAX * _ROW * _COUNT_BYTES


def unnamed_file() -> int:
    """A new file that is gone when its last descriptor is closed; in memory where that can be."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("kb-serve")
    with tempfile.TemporaryFile() as file:
        return os.dup(file.fileno())


class SharedCount:
    """How many places of one kind are taken. Each process writes its own count."""

    def __init__(self, counts: memoryview, own: int, others: tuple[int, ...]) -> None:
        """Of the counts, `own` is that of this process."""
        self._counts = counts
        self._own = own
        self._others = others

    def set(self, count: int) -> None:
        """Say how many this process has taken."""
        self._counts[self._own] = count

    @property
    def others(self) -> int:
        """How many the other processes have taken."""
        return sum(self._counts[place] for place in self._others)

    @property
    def is_over_another(self) -> bool:
        """Whether another process has taken fewer."""
        return any(self._counts[place] < self._counts[self._own] for place in self._others)


class Places:
    """The places of a server that are taken, so that its limits are those of all its processes."""

    def __init__(self, memory: int | None = None, processes: int = 1, own: int = 0) -> None:
        """`memory` is an unnamed file that the processes share; the parent is none of them."""
        if memory is None:
            self._counts = memoryview(bytearray(_BYTES)).cast("Q")
        else:
            if os.fstat(memory).st_size < _BYTES:
                os.ftruncate(memory, _BYTES)
            self._counts = memoryview(mmap.mmap(memory, _BYTES)).cast("Q")
        self._own = own
        self._others = tuple(row for row in range(processes) if row != self._own)

    def of(self, place: Place) -> SharedCount:
        """The count of one kind."""
        column = _PLACES.index(place)
        others = tuple(row * _ROW + column for row in self._others)
        return SharedCount(self._counts, self._own * _ROW + column, others)

    def clear(self, process: int) -> None:
        """Give back what a process had taken that is no more."""
        for column in range(_ROW):
            self._counts[process * _ROW + column] = 0


class SharedFile:
    """A small file that several processes read and replace, one at a time."""

    def __init__(self, descriptor: int | None = None) -> None:
        """With a descriptor the file of another process, else a new one."""
        self.descriptor = unnamed_file() if descriptor is None else descriptor
        self._lock = threading.Lock()

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Keep the other threads and processes out for the length of the block."""
        # The lock of a file is its process's, so that its threads need another.
        with self._lock:
            fcntl.lockf(self.descriptor, fcntl.LOCK_EX)
            try:
                yield
            finally:
                fcntl.lockf(self.descriptor, fcntl.LOCK_UN)

    def read(self) -> bytes:
        """All of it; take the lock first."""
        return os.pread(self.descriptor, os.fstat(self.descriptor).st_size, 0)

    def replace(self, data: bytes) -> None:
        """Write it anew; take the lock first."""
        os.ftruncate(self.descriptor, 0)
        os.pwrite(self.descriptor, data, 0)
