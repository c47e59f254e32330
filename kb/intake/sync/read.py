"""The bytes of one file, whole and from one moment."""

import errno
import os
import stat
from pathlib import Path
from typing import Final

from kb.errors import ChangedWhileRead, SourceError, TooLarge, Unreadable
from kb.intake.ingest.request import FileStamp
from kb.model.source import display_name
from kb.store.content.inside import open_listed

_BLOCK: Final = 1 << 20


def stamp_of(file_stat: os.stat_result, now_ms: int) -> FileStamp:
    """The stamp of a file as stat sees it."""
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

    A file that a walk has `listed` lay behind no link, and is not read where it does now. Raises
    Unreadable, TooLarge (before reading it) or ChangedWhileRead. Never blocks on a FIFO.
    """
    name = display_name(path)
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
    try:
        before = os.fstat(fd)
        if not stat.S_ISREG(before.st_mode):
            raise Unreadable("not a regular file", source=name)
        if before.st_size > bytes_max:
            raise _too_large(name, before.st_size, bytes_max)
        data = _read_all(fd, before.st_size)
        after = os.fstat(fd)
    except OSError as error:
        raise Unreadable(f"cannot be read ({error.strerror})", source=name) from error
    finally:
        os.close(fd)
    if len(data) != before.st_size or _has_changed(before, after):
        raise ChangedWhileRead("it changed while it was read; add it again", source=name)
    return data, stamp_of(after, now_ms)


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


def _read_all(fd: int, size: int) -> bytes:
    blocks: list[bytes] = []
    left = size + 1
    while left > 0 and (block := os.read(fd, min(left, _BLOCK))):
        blocks.append(block)
        left -= len(block)
    return b"".join(blocks)


def _has_changed(before: os.stat_result, after: os.stat_result) -> bool:
    return (before.st_mtime_ns, before.st_size) != (after.st_mtime_ns, after.st_size)


def _too_large(name: str, size: int | None, bytes_max: int) -> SourceError:
    has = f"{size:,} bytes" if size is not None else "more"
    detail = f"{has}, over the limit of {bytes_max:,}; raise ingest.file_bytes_max to take it in"
    return TooLarge(detail, source=name)
