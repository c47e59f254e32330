"""Files that are what was written: marks of their content, and manifests that seal themselves."""

import hashlib
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeVar

import msgspec
from msgspec import Struct

T = TypeVar("T")

# Coarser than any file system's clock tick: a later write to a settled file shows in its times.
_SETTLE_NS: Final = 20_000_000
# A file of that name is what a kill has left; a link of it would lead the bytes elsewhere.
_ANEW: Final = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC


class CacheDamaged(Exception):
    """A cache's files are not what was written; the answer is a rebuild. Stays in this room."""


class FileMark(Struct, frozen=True, kw_only=True):
    """A file as it was written: its content's hash, and what a stat said of it then."""

    name: str
    size_bytes: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    sha256: str


def sha256_file(path: Path) -> str:
    """SHA-256 of a file's bytes, 64 hex digits; the lock of the interpreter is let go meanwhile."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def mark_file(path: Path, sha256: str | None = None) -> FileMark:
    """Mark a finished file; `sha256` is given where its content is known already.

    Waits until the file is older than a clock tick, so that no later change can hide in it.
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


def untouched(folder: Path, mark: FileMark) -> bool:
    """Whether a stat says what it said when the file was marked. Costs microseconds."""
    try:
        # By text: a search asks this of every file of its caches.
        stat = os.stat(os.path.join(folder, mark.name))
    except OSError:
        return False
    return (mark.size_bytes, mark.mtime_ns, mark.ctime_ns, mark.inode) == (
        stat.st_size,
        stat.st_mtime_ns,
        stat.st_ctime_ns,
        stat.st_ino,
    )


def intact(folder: Path, mark: FileMark, *, by_hash: bool = False) -> bool:
    """Whether the file holds what was marked: untouched since, or else of the same hash.

    With `by_hash` the bytes are read in any case: a disk that rots does not touch the times.
    """
    if not by_hash:
        return settled(folder, mark) is not None
    path = folder / mark.name
    try:
        return path.stat().st_size == mark.size_bytes and sha256_file(path) == mark.sha256
    except OSError:
        return False


def settled(folder: Path, mark: FileMark) -> FileMark | None:
    """The mark by which a stat knows a file that holds what was marked; None where none does.

    It is another one where the file was copied, or came to another disk with its home. Reads the
    file then.
    """
    if untouched(folder, mark):
        return mark
    try:
        # The stamps first: whatever comes after them shows.
        now = mark_file(folder / mark.name, mark.sha256)
    except OSError:
        return None
    return now if intact(folder, mark, by_hash=True) and untouched(folder, now) else None


def fsync_file(path: Path) -> None:
    """Make a file's bytes durable."""
    _fsync(path, os.O_RDONLY)


def fsync_folder(path: Path) -> None:
    """Make a folder's names durable."""
    _fsync(path, os.O_RDONLY | getattr(os, "O_DIRECTORY", 0))


def _fsync(path: Path, flags: int) -> None:
    descriptor = os.open(path, flags)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def seal(record: Struct) -> bytes:
    """The record as JSON behind the hash of its bytes."""
    body = msgspec.json.encode(record)
    return hashlib.sha256(body).hexdigest().encode() + b"\n" + body + b"\n"


def write_beside(path: Path, content: bytes) -> Path:
    """Write `content` next to `path`, durable, under the name that `os.replace` moves over it."""
    beside = path.with_name(path.name + ".new")
    try:
        with open(os.open(beside, _ANEW, 0o666), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except OSError:
        with suppress(OSError):
            beside.unlink()
        raise
    return beside


def read_manifest(path: Path, record_type: type[T]) -> tuple[str, T] | None:
    """The sealed record and its hash; None where it is missing, damaged or of another shape."""
    try:
        content = path.read_bytes()
    except OSError:
        return None
    digest, _, body = content.partition(b"\n")
    if hashlib.sha256(body[:-1]).hexdigest().encode() != digest:
        return None
    try:
        return digest.decode(), msgspec.json.decode(body, type=record_type)
    except msgspec.DecodeError:
        return None
