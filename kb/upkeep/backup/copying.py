"""Copying the files of a home, hashed on the way."""

import hashlib
import os
from collections.abc import Callable
from pathlib import Path

from kb.errors import Unreadable
from kb.upkeep.backup.manifest import StoredFile
from kb.upkeep.transfer.reading import open_regular, read_block


def hash_file(root: Path, path: str) -> StoredFile:
    """Size and hash of a file. Raises Unreadable if it is missing or not a regular file."""
    with open_regular(root / path, path) as source:
        return _hash_blocks(source, path, lambda _: None)


def copy_file(root: Path, path: str, to: Path) -> StoredFile:
    """Copy a file durably to the same path below `to`; returns its path, size and hash.

    Raises Unreadable, which names `path`, if it cannot be read; then no copy is left. Raises
    OSError if the copy cannot be written.
    """
    with open_regular(root / path, path) as source:
        target = _target_of(to, path)
        # Keep the owner's execute bit: a script stays a script.
        mode = 0o600 | os.fstat(source).st_mode & 0o100
        descriptor = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, mode)
        try:
            stored = _hash_blocks(source, path, lambda block: _write(descriptor, block))
            os.fsync(descriptor)
        except Unreadable:
            target.unlink()
            raise
        finally:
            os.close(descriptor)
        return stored


def link_file(root: Path, path: str, to: Path) -> int | None:
    """Hard-link a file to the same path below `to`; its size in bytes, or None if impossible.

    Only for files that never change. Raises Unreadable if the file is missing.
    """
    target = _target_of(to, path)
    try:
        os.link(root / path, target, follow_symlinks=False)
    except FileNotFoundError as error:
        raise Unreadable("no such file", source=path) from error
    except OSError:
        # Another file system, one without hard links, or too many links to one file.
        return None
    return target.lstat().st_size


def read_link(root: Path, path: str) -> StoredFile:
    """A symbolic link as the manifest stores it. Raises Unreadable if there is none."""
    try:
        return StoredFile(path=path, link=os.readlink(root / path))
    except OSError as error:
        raise Unreadable(f"cannot be read ({error.strerror})", source=path) from error


def make_link(link: StoredFile, to: Path) -> None:
    """Make a stored symbolic link below `to`."""
    _target_of(to, link.path).symlink_to(str(link.link))


def _target_of(to: Path, path: str) -> Path:
    target = to / path
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return target


def _write(descriptor: int, block: bytes) -> None:
    view = memoryview(block)
    while view:
        view = view[os.write(descriptor, view) :]


def _hash_blocks(source: int, path: str, sink: Callable[[bytes], None]) -> StoredFile:
    digest = hashlib.sha256()
    size_bytes = 0
    while block := read_block(source, path):
        digest.update(block)
        size_bytes += len(block)
        sink(block)
    return StoredFile(path=path, size_bytes=size_bytes, sha256=digest.hexdigest())
