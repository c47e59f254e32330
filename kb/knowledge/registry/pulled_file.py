"""Install a pulled file: whole or not at all, and never over what somebody wrote meanwhile."""

import datetime as dt
import errno
import itertools
import os
from pathlib import Path
from typing import Final

from kb.errors import ChangedWhileRead, SourceError, StoreFull
from kb.model.ids import sha256_hex
from kb.model.source import display_name
from kb.store.content.durable import fsync_folder

# Folders and files whose names begin with a dot are not taken in.
_ASIDE: Final = ".mine"
_UNFINISHED: Final = ".pulled"


def install_file(
    path: Path, data: bytes, *, expected: str | None, aside_ms: int | None
) -> Path | None:
    """Write `data` durably to `path`, where the file has the hash `expected` (None: there is none).

    With `aside_ms`, the current time, the old file is put aside first, and its new path is
    returned. One process at a time. Raises ChangedWhileRead where the file is another one by now,
    and StoreFull.
    """
    temporary = path.with_name(f".{path.name}{_UNFINISHED}")
    try:
        _write(temporary, data)
        try:
            aside = _replace(temporary, path, expected, aside_ms)
        finally:
            temporary.unlink(missing_ok=True)
        fsync_folder(path.parent)
    except OSError as error:
        raise StoreFull(error.strerror or "", place=display_name(path)) from error
    return aside


def _replace(
    temporary: Path, path: Path, expected: str | None, aside_ms: int | None
) -> Path | None:
    if expected is None:
        try:
            os.link(temporary, path)
        except FileExistsError as error:
            raise _changed(path) from error
        return None
    try:
        now = sha256_hex(path.read_bytes())
    except FileNotFoundError:
        now = ""
    if now != expected:
        raise _changed(path)
    aside = None if aside_ms is None else _put_aside(path, aside_ms)
    os.replace(temporary, path)
    return aside


def _put_aside(path: Path, now_ms: int) -> Path:
    """Give a file a second name, outside of what is taken in."""
    folder = path.parent / _ASIDE
    folder.mkdir(mode=0o700, exist_ok=True)
    if folder.is_symlink():
        raise OSError(errno.ELOOP, f"{_ASIDE} is a link; remove it")
    date = dt.datetime.fromtimestamp(now_ms / 1000, dt.UTC).date().isoformat()
    for number in itertools.count(1):
        again = "" if number == 1 else f"-{number}"
        aside = folder / f"{path.stem}.mine-{date}{again}.md"
        try:
            os.link(path, aside)
        except FileExistsError:
            continue
        break
    fsync_folder(folder)
    return aside


def _changed(path: Path) -> SourceError:
    detail = "it was changed while this ran; pull again"
    return ChangedWhileRead(detail, source=display_name(path))


def _write(path: Path, data: bytes) -> None:
    # A file of that name is what a kill has left; a link of it would lead the bytes elsewhere.
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(path, flags, 0o600)
    with os.fdopen(descriptor, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
