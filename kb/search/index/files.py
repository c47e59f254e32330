"""Marks of an index's files: their content and stat, to see whether a file is as written."""

import hashlib
import os
import time
from pathlib import Path
from typing import Final

from msgspec import Struct

# Coarser than any file system's clock tick: a later write to a settled file shows in its times.
_SETTLE_NS: Final = 20_000_000


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


def stat_matches(folder: Path, mark: FileMark) -> bool:
    """Whether a file's stat is that of its mark. Takes microseconds."""
    try:
        # os.path is faster than Path, and each search checks every file of its indexes.
        stat = os.stat(os.path.join(folder, mark.name))
    except OSError:
        return False
    return (mark.size_bytes, mark.mtime_ns, mark.ctime_ns, mark.inode) == (
        stat.st_size,
        stat.st_mtime_ns,
        stat.st_ctime_ns,
        stat.st_ino,
    )


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
    if stat_matches(folder, mark):
        return mark
    try:
        # Stat before hash: a write in between changes the stat.
        current = mark_file(folder / mark.name, mark.sha256)
    except OSError:
        return None
    is_same = content_matches(folder, mark, by_hash=True) and stat_matches(folder, current)
    return current if is_same else None
