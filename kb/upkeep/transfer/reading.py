"""Reading the files of a home, and listing those besides store and content."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Final

from msgspec import Struct

from kb.errors import Unreadable
from kb.store.content.layout import HomePaths

_BLOCK_BYTES: Final = 1 << 20
# Of the folder of a home: the store, its content, caches, unfinished files, backups, the socket.
_NOT_EXTRA: Final = frozenset(("store", "raw", "md", "index", "tmp", "backups", "run"))


class ExtraFile(Struct, frozen=True):
    """A file or symbolic link of a home that belongs neither to its content nor to its store."""

    path: str
    is_link: bool


def extra_files(paths: HomePaths) -> Iterator[ExtraFile]:
    """The settings and all other extra files of a home; links are listed, not followed.

    The store, its content, the caches, temporary files, locks and backups are left out.
    """
    waiting = [""]
    while waiting:
        folder = waiting.pop()
        try:
            with os.scandir(paths.root / folder) as scan:
                entries = list(scan)
        except OSError:
            # The copy then fails for this path, which reports it like any unreadable file.
            yield ExtraFile(folder, is_link=False)
            continue
        for entry in entries:
            path = f"{folder}{entry.name}"
            if not folder and not is_extra(path):
                continue
            if entry.is_dir(follow_symlinks=False):
                waiting.append(path + "/")
            elif entry.is_symlink() or entry.is_file(follow_symlinks=False):
                yield ExtraFile(path, is_link=entry.is_symlink())


def is_inside(path: str) -> bool:
    """Whether a path stays below the folder that it is relative to."""
    pure = PurePosixPath(path)
    return bool(pure.parts) and not pure.is_absolute() and ".." not in pure.parts


def is_extra(path: str) -> bool:
    """Whether a path is that of a file that `extra_files` lists, and of no other."""
    top = path.partition("/")[0]
    is_lock = top == path and path.endswith(".lock")
    return is_inside(path) and top not in _NOT_EXTRA and not is_lock


def pieces_of(root: Path, path: str) -> Iterator[bytes]:
    """The bytes of a regular file, piece by piece. Raises Unreadable."""
    with open_regular(root / path, path) as source:
        while block := read_block(source, path):
            yield block


@contextmanager
def open_regular(file: Path, path: str) -> Iterator[int]:
    """Open a regular file, through no link. Raises Unreadable, which names `path`."""
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


def read_block(descriptor: int, path: str) -> bytes:
    """The next block of an open file, empty at its end. Raises Unreadable."""
    try:
        return os.read(descriptor, _BLOCK_BYTES)
    except OSError as error:
        raise Unreadable(f"cannot be read ({error.strerror})", source=path) from error
