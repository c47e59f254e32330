"""Reads the bytes of one file, complete and from one moment."""

import contextlib
import errno
import os
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from msgspec import Struct

from kb.errors import ChangedWhileRead, SourceError, TooLarge, Unreadable
from kb.intake.canonicalize import detect_mime, may_read_ends, reads_ends
from kb.intake.ingest.request import FileStamp
from kb.model.ids import sha256_hex
from kb.model.source import display_name
from kb.store.content.ends import WHOLE_BYTES_MAX, ends_digest, ends_of
from kb.store.content.inside import open_listed

_BLOCK: Final = 1 << 20


def stamp_of(file_stat: os.stat_result, now_ms: int) -> FileStamp:
    """The stamp of a file, from its stat."""
    return FileStamp(
        size_bytes=file_stat.st_size,
        mtime_ns=file_stat.st_mtime_ns,
        ctime_ns=file_stat.st_ctime_ns,
        inode=file_stat.st_ino,
        taken_ms=now_ms,
    )


def read_file(
    path: Path, bytes_max: int, now_ms: int, *, listed: bool = False
) -> tuple[bytes, FileStamp]:
    """The bytes and their stamp.

    A file that a walk has `listed` had no link in its path; if it has one now, it is not read.
    Raises Unreadable, TooLarge (before reading it) or ChangedWhileRead. Never blocks on a FIFO.
    """
    name = display_name(path)
    with opened(path, listed=listed) as file:
        if file.before.st_size > bytes_max:
            raise _too_large(name, file.before.st_size, bytes_max)
        data = b"".join(file.blocks())
    return data, stamp_of(file.before, now_ms)


class FileBytes(Struct, frozen=True, kw_only=True):
    """What a parser gets of a file."""

    data: bytes
    """All of it, or its ends."""
    digest: str
    """What a doc keeps as its `raw_sha256`."""
    stamp: FileStamp


def read_source(path: Path, bytes_max: int, now_ms: int, *, listed: bool = False) -> FileBytes:
    """As `read_file`; of a long file whose parser wants no more only its ends, however long it is.

    The name says which files these are, and their first bytes must not say otherwise.
    """
    if may_read_ends(path.name):
        with opened(path, listed=listed) as file:
            size_bytes = file.before.st_size
            if size_bytes > WHOLE_BYTES_MAX:
                data = file.ends()
                if reads_ends(detect_mime(data, path.name)):
                    stamp, digest = stamp_of(file.before, now_ms), ends_digest(size_bytes, data)
                    return FileBytes(data=data, digest=digest, stamp=stamp)
    data, stamp = read_file(path, bytes_max, now_ms, listed=listed)
    return FileBytes(data=data, digest=sha256_hex(data), stamp=stamp)


class OpenedFile:
    """A regular file that is being read."""

    def __init__(self, fd: int, before: os.stat_result, name: str) -> None:
        self.before = before
        """Its state when it was opened; if the whole of it is read, also its state then."""
        self._fd = fd
        self._name = name

    def blocks(self) -> Iterator[bytes]:
        """All its bytes, a block at a time, as of one moment.

        Raises ChangedWhileRead at the end if the file changed meanwhile, and Unreadable.
        """
        left = self.before.st_size + 1
        try:
            while left > 0 and (block := os.read(self._fd, min(left, _BLOCK))):
                left -= len(block)
                yield block
            after = os.fstat(self._fd)
        except OSError as error:
            raise Unreadable(f"cannot be read ({error.strerror})", source=self._name) from error
        if left != 1 or _has_changed(self.before, after):
            raise _changed(self._name)

    def ends(self) -> bytes:
        """Its first and its last bytes. Raises as `blocks` does."""
        try:
            data = ends_of(self._fd, self.before.st_size)
            after = os.fstat(self._fd)
        except OSError as error:
            raise Unreadable(f"cannot be read ({error.strerror})", source=self._name) from error
        if len(data) < WHOLE_BYTES_MAX or _has_changed(self.before, after):
            raise _changed(self._name)
        return data


@contextlib.contextmanager
def opened(path: Path, *, listed: bool = False) -> Iterator[OpenedFile]:
    """A file, open inside the block; `listed` is as for `read_file`.

    Raises Unreadable. Never blocks on a FIFO.
    """
    name = display_name(path)
    fd = _open(path, name, listed=listed)
    try:
        try:
            before = os.fstat(fd)
        except OSError as error:
            raise Unreadable(f"cannot be read ({error.strerror})", source=name) from error
        if not stat.S_ISREG(before.st_mode):
            raise Unreadable("not a regular file", source=name)
        yield OpenedFile(fd, before, name)
    finally:
        os.close(fd)


def _open(path: Path, name: str, *, listed: bool) -> int:
    try:
        flags = os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC
        fd = open_listed(path) if listed else os.open(path, flags)
    except FileNotFoundError as error:
        raise Unreadable("no such file", source=name) from error
    except OSError as error:
        if listed and error.errno in (errno.ELOOP, errno.ENOTDIR):
            detail = "its path became a symbolic link; links are not followed"
            raise Unreadable(detail, source=name) from error
        raise Unreadable(f"cannot be read ({error.strerror})", source=name) from error
    if fd is None:
        raise Unreadable("not a regular file any more", source=name)
    return fd


def read_stream(fd: int, bytes_max: int, name: str) -> bytes:
    """All bytes of a pipe. Raises TooLarge as soon as there are too many."""
    blocks: list[bytes] = []
    total = 0
    while block := os.read(fd, _BLOCK):
        total += len(block)
        if total > bytes_max:
            raise _too_large(name, None, bytes_max)
        blocks.append(block)
    return b"".join(blocks)


def _has_changed(before: os.stat_result, after: os.stat_result) -> bool:
    return (before.st_mtime_ns, before.st_size) != (after.st_mtime_ns, after.st_size)


def _changed(name: str) -> ChangedWhileRead:
    return ChangedWhileRead("it changed while it was read; add it again", source=name)


def _too_large(name: str, size: int | None, bytes_max: int) -> SourceError:
    has = f"{size:,} bytes" if size is not None else "more"
    detail = f"{has}, over the limit of {bytes_max:,}; raise ingest.file_bytes_max to add it"
    return TooLarge(detail, source=name)
