"""Folders that appear complete or not at all: filled under a temporary name, then renamed."""

import errno
import fcntl
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from kb.errors import ReadOnlyHome, StoreBusy, StoreFull, UsageError
from kb.store.content.durable import fsync_folder

_UNFINISHED: Final = ".unfinished"
_NO_ROOM: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
NOT_WRITABLE: Final = (errno.EACCES, errno.EPERM, errno.EROFS)


@contextmanager
def staged_folder(target: Path) -> Iterator[Path]:
    """An empty folder to fill; it is durable under the name `target` when the block has ended.

    An exception in the block removes it. If the process dies, the next call for the same target
    removes what is left. Raises UsageError if `target` exists and is not an empty folder, StoreBusy
    if another process is filling it, StoreFull, ReadOnlyHome, OSError.
    """
    check_empty_folder(target)
    part = _unfinished(target)
    with _translated_errors(target):
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _remove_part(part)
        part.mkdir(mode=0o700)
        with _locked(part):
            try:
                yield part
                _sync_folders(part)
                _rename(part, target)
            except BaseException:
                shutil.rmtree(part, ignore_errors=True)
                raise
        fsync_folder(target.parent)


def check_empty_folder(target: Path) -> None:
    """Raise UsageError unless `target` is missing or an empty folder."""
    try:
        is_filled = any(target.iterdir())
    except FileNotFoundError:
        return
    except NotADirectoryError:
        is_filled = True
    except OSError as error:
        raise ReadOnlyHome(error.strerror or "", place=target) from error
    if is_filled:
        raise _not_empty(target)


def remove(folder: Path) -> None:
    """Remove a folder: it first loses its name, so nobody sees it half removed."""
    part = _unfinished(folder)
    os.rename(folder, part)
    _remove_part(part)


def remove_parts(place: Path) -> None:
    """Remove unfinished folders in `place`. Raises StoreBusy if one is in use."""
    for part in place.glob(f".*{_UNFINISHED}"):
        _remove_part(part)


def _remove_part(part: Path) -> None:
    try:
        with _locked(part):
            shutil.rmtree(part)
    except FileNotFoundError:
        return


def _unfinished(target: Path) -> Path:
    return target.with_name(f".{target.name}{_UNFINISHED}")


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Lock the folder itself: this leaves no lock file, and the lock ends with the process."""
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
            raise _not_empty(target) from error
        raise


def _not_empty(target: Path) -> UsageError:
    return UsageError(f"{target} is not an empty folder; name a new one")


def _sync_folders(top: Path) -> None:
    for folder, _, _ in os.walk(top, topdown=False):
        fsync_folder(Path(folder))


@contextmanager
def _translated_errors(place: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        detail = error.strerror or str(error)
        if error.errno in _NO_ROOM:
            raise StoreFull(detail, place=place) from error
        if error.errno in NOT_WRITABLE:
            raise ReadOnlyHome(detail, place=place) from error
        raise
