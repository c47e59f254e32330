"""Marks of an index's files: their content and stat, to see whether a file is as written."""

import hashlib
import os
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Final, Generic, TypeVar

from msgspec import Struct

# Coarser than any file system's clock tick: a later write to a settled file shows in its times.
_SETTLE_NS: Final = 20_000_000


T = TypeVar("T")

FileStat = tuple[int, int, int, int]
"""Size, mtime, ctime and inode."""


class CacheDamaged(Exception):
    """An index's files are not what was written: it must be rebuilt. Never leaves this room."""


class FileMark(Struct, frozen=True, kw_only=True):
    """A file as it was written: the hash of its content, and its stat."""

    name: str
    size_bytes: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    sha256: str

    @property
    def stat(self) -> FileStat:
        """As it was written."""
        return self.size_bytes, self.mtime_ns, self.ctime_ns, self.inode


class KeptFile(Generic[T]):
    """What a file holds, read again only where its stat has changed. Thread-safe."""

    def __init__(self, path: Path, load: Callable[[], T]) -> None:
        self._path = os.fspath(path)
        self._load = load
        self._kept: tuple[FileStat, T] | None = None

    def read(self) -> T:
        """What the file holds now, as `load` returns it."""
        # Stat before load: a write in between changes the stat.
        stat, kept = _stat_of(self._path), self._kept
        if kept is not None and kept[0] == stat:
            return kept[1]
        loaded = self._load()
        is_settled = stat is not None and time.time_ns() - stat[2] > _SETTLE_NS
        self._kept = (stat, loaded) if stat is not None and is_settled else None
        return loaded


def sha256_file(path: Path) -> str:
    """SHA-256 of a file's bytes, 64 hex digits. Releases the GIL."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def mark_file(path: Path, sha256: str | None = None) -> FileMark:
    """The mark of a finished file; `sha256` if its hash is known already.

    Waits until the file is older than a clock tick, so that any later write changes its stat.
    """
    digest = sha256 or sha256_file(path)
    stat = path.stat()
    young_ns = stat.st_ctime_ns + _SETTLE_NS - time.time_ns()
    if 0 < young_ns <= _SETTLE_NS:
        time.sleep(young_ns / 1e9)
    return FileMark(
        name=path.name,
        size_bytes=stat.st_size,
        mtime_ns=stat.st_mtime_ns,
        ctime_ns=stat.st_ctime_ns,
        inode=stat.st_ino,
        sha256=digest,
    )


def stats_match(folder: Path, marks: Iterable[FileMark]) -> bool:
    """Whether the stat of each file is that of its mark. Takes microseconds a file."""
    # Strings are faster than Path, and each search checks every file of its indexes.
    start = f"{folder}/"
    return all(_stat_of(start + mark.name) == mark.stat for mark in marks)


def _stat_of(path: str) -> FileStat | None:
    try:
        stat = os.stat(path)
    except OSError:
        return None
    return stat.st_size, stat.st_mtime_ns, stat.st_ctime_ns, stat.st_ino


def content_matches(folder: Path, mark: FileMark, *, by_hash: bool = False) -> bool:
    """Whether a file has the content of its mark: the same stat, or else the same hash.

    With `by_hash` the bytes are always read: bit rot does not change the stat.
    """
    if not by_hash:
        return current_mark(folder, mark) is not None
    path = folder / mark.name
    try:
        return path.stat().st_size == mark.size_bytes and sha256_file(path) == mark.sha256
    except OSError:
        return False


def current_mark(folder: Path, mark: FileMark) -> FileMark | None:
    """The mark of a file with its current stat; None where its content is not that of the mark.

    It differs from `mark` where the file was copied. The file is read only then.
    """
    if stats_match(folder, (mark,)):
        return mark
    try:
        # Stat before hash: a write in between changes the stat.
        current = mark_file(folder / mark.name, mark.sha256)
    except OSError:
        return None
    is_same = content_matches(folder, mark, by_hash=True) and stats_match(folder, (current,))
    return current if is_same else None
