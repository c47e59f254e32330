"""Verifiable files: marks of their content and stat, and manifests with a checksum."""

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
# A file of that name was left by a killed process; a link could lead the bytes elsewhere.
_CREATE_FLAGS: Final = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC


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
    """The record as JSON, after a line with the hash of its bytes."""
    body = msgspec.json.encode(record)
    return hashlib.sha256(body).hexdigest().encode() + b"\n" + body + b"\n"


def write_temporary(path: Path, content: bytes) -> Path:
    """Write `content` next to `path`, durable, under the name that `os.replace` moves over it."""
    beside = path.with_name(path.name + ".new")
    try:
        with open(os.open(beside, _CREATE_FLAGS, 0o666), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except OSError:
        with suppress(OSError):
            beside.unlink()
        raise
    return beside


def read_manifest(path: Path, record_type: type[T]) -> tuple[str, T] | None:
    """The sealed record and its hash; None where it is missing, damaged or has another schema."""
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
