"""Bytes from one place to another, hashed on the way; and what lies in a home besides content."""

import hashlib
import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from msgspec import Struct

from kb.errors import Unreadable
from kb.store.content.layout import HomePaths
from kb.upkeep.backup.manifest import StoredFile

_BLOCK_BYTES: Final = 1 << 20


class Other(Struct, frozen=True):
    """A file or a link of a home that is neither content nor store."""

    path: str
    is_link: bool


def others(paths: HomePaths) -> Iterator[Other]:
    """Settings, and whatever else lies in a home; no link is followed.

    Left out are the store and its content, what can be made again, locks, and the backups.
    """
    known = (paths.store, paths.index, paths.tmp, paths.backups, paths.socket.parent)
    passed = {path.name for path in known} | {"raw", "md"}
    waiting = [""]
    while waiting:
        folder = waiting.pop()
        try:
            with os.scandir(paths.root / folder) as found:
                entries = list(found)
        except OSError:
            # To be told of as any file that cannot be read.
            yield Other(folder, is_link=False)
            continue
        for entry in entries:
            path = f"{folder}{entry.name}"
            if not folder and (path in passed or path.endswith(".lock")):
                continue
            if entry.is_dir(follow_symlinks=False):
                waiting.append(path + "/")
            elif entry.is_symlink() or entry.is_file(follow_symlinks=False):
                yield Other(path, is_link=entry.is_symlink())


def hashed(root: Path, path: str) -> StoredFile:
    """Size and hash of a file. Raises Unreadable where it is missing or no regular file."""
    with _opened(root / path, path) as source:
        return _read(source, path, lambda _: None)


def copied(root: Path, path: str, to: Path) -> StoredFile:
    """Copy a file, durably, to the same path below `to`; what was read and written.

    Raises Unreadable, naming `path`, where it cannot be read; then no copy is left. OSError where
    the copy cannot be written.
    """
    with _opened(root / path, path) as source:
        target = _place(to, path)
        # A script stays one.
        mode = 0o600 | os.fstat(source).st_mode & 0o100
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        try:
            done = _read(source, path, lambda block: _write(descriptor, block))
            os.fsync(descriptor)
        except Unreadable:
            target.unlink()
            raise
        finally:
            os.close(descriptor)
        return done


def linked(root: Path, path: str, to: Path) -> int | None:
    """Give a file a second name below `to`; its size, or None where that cannot be done.

    Only for files that never change. Raises Unreadable where it is missing.
    """
    target = _place(to, path)
    try:
        os.link(root / path, target, follow_symlinks=False)
    except FileNotFoundError as error:
        raise Unreadable("no such file", source=path) from error
    except OSError:
        # Another file system, one without links, or too many of them.
        return None
    return target.lstat().st_size


def link_at(root: Path, path: str) -> StoredFile:
    """A link as a backup keeps it. Raises Unreadable where there is none."""
    try:
        return StoredFile(path=path, link=os.readlink(root / path))
    except OSError as error:
        raise Unreadable(f"cannot be read ({error.strerror})", source=path) from error


def put_link(link: StoredFile, to: Path) -> None:
    """Make a link below `to` as it was."""
    _place(to, link.path).symlink_to(str(link.link))


def _place(to: Path, path: str) -> Path:
    target = to / path
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return target


def _write(descriptor: int, block: bytes) -> None:
    view = memoryview(block)
    while view:
        view = view[os.write(descriptor, view) :]


def _read(source: int, path: str, sink: Callable[[bytes], None]) -> StoredFile:
    digest = hashlib.sha256()
    size_bytes = 0
    while block := _block(source, path):
        digest.update(block)
        size_bytes += len(block)
        sink(block)
    return StoredFile(path=path, size_bytes=size_bytes, sha256=digest.hexdigest())


@contextmanager
def _opened(file: Path, path: str) -> Iterator[int]:
    try:
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        descriptor = os.open(file, flags)
    except OSError as error:
        raise Unreadable(f"cannot be read ({error.strerror})", source=path) from error
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise Unreadable("not a regular file", source=path)
        yield descriptor
    finally:
        os.close(descriptor)


def _block(descriptor: int, path: str) -> bytes:
    try:
        return os.read(descriptor, _BLOCK_BYTES)
    except OSError as error:
        raise Unreadable(f"cannot be read ({error.strerror})", source=path) from error
