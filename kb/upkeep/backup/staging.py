"""A folder that appears whole or not at all: filled beside its place, then renamed."""

import errno
import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from kb.errors import ReadOnlyHome, StoreBusy, StoreFull, UsageError
from kb.search.index.files import fsync_folder

_UNFINISHED: Final = ".unfinished"
_NO_ROOM: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
NOT_WRITABLE: Final = (errno.EACCES, errno.EPERM, errno.EROFS)


@contextmanager
def staged(target: Path) -> Iterator[Path]:
    """An empty folder to fill; durable under the name `target` once the block has ended.

    A block left by an exception leaves nothing, a process that dies in it a folder that the next
    one here removes. Raises UsageError where `target` is there and not an empty folder, StoreBusy
    where another process is filling it, StoreFull, ReadOnlyHome, OSError.
    """
    _refuse_taken(target)
    part = _unfinished(target)
    with _told(target):
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _remove_part(part)
        part.mkdir(mode=0o700)
        with _held(part):
            try:
                yield part
                _sync_folders(part)
                _rename(part, target)
            except BaseException:
                shutil.rmtree(part, ignore_errors=True)
                raise
        fsync_folder(target.parent)


def _refuse_taken(target: Path) -> None:
    """Raise UsageError unless `target` is new, or an empty folder."""
    try:
        taken = any(target.iterdir())
    except FileNotFoundError:
        return
    except NotADirectoryError:
        taken = True
    except OSError as error:
        raise ReadOnlyHome(error.strerror or "", place=target) from error
    if taken:
        raise _taken(target)


def remove(folder: Path) -> None:
    """Remove a whole folder: under its name it is there in full, or not at all."""
    part = _unfinished(folder)
    os.rename(folder, part)
    _remove_part(part)


def remove_parts(place: Path) -> None:
    """Remove what dead processes left in `place`. Raises StoreBusy where one of them lives."""
    for part in place.glob(f".*{_UNFINISHED}"):
        _remove_part(part)


def _remove_part(part: Path) -> None:
    try:
        with _held(part):
            shutil.rmtree(part)
    except FileNotFoundError:
        return


def _unfinished(target: Path) -> Path:
    return target.with_name(f".{target.name}{_UNFINISHED}")


@contextmanager
def _held(folder: Path) -> Iterator[None]:
    """A lock on the folder itself, which leaves no file and dies with its holder."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise StoreBusy(place=folder) from error
        yield
    finally:
        os.close(descriptor)


def _rename(part: Path, target: Path) -> None:
    try:
        os.rename(part, target)
    except OSError as error:
        if error.errno in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOTDIR):
            raise _taken(target) from error
        raise


def _taken(target: Path) -> UsageError:
    return UsageError(f"{target} is not an empty folder; name a new one")


def _sync_folders(top: Path) -> None:
    for folder, _, _ in os.walk(top, topdown=False):
        fsync_folder(Path(folder))


@contextmanager
def _told(place: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        detail = error.strerror or str(error)
        if error.errno in _NO_ROOM:
            raise StoreFull(detail, place=place) from error
        if error.errno in NOT_WRITABLE:
            raise ReadOnlyHome(detail, place=place) from error
        raise
