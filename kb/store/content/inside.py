"""Read files by untrusted names, and only from inside the folder that they belong to."""

import os
import stat
from pathlib import Path, PurePosixPath
from typing import Final

from kb.errors import Refused, TooLarge, Unreadable

_PLAIN: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC


def read_inside(folder: Path, relative: str, bytes_max: int) -> bytes:
    """The bytes of a regular file below `folder`; links are followed only inside the folder.

    Never blocks on a FIFO and never opens a device. Errors name only `relative`. Raises Refused if
    `relative` is not a plain relative path or a link leads out, Unreadable if there is no regular
    file, TooLarge over `bytes_max`.
    """
    place = resolve_inside(folder, relative)
    try:
        data = _read(os.path.realpath(folder), place.parts, bytes_max + 1)
    except FileNotFoundError as error:
        raise Unreadable("no such file", source=relative) from error
    except OSError as error:
        raise Unreadable(f"cannot be read ({error.strerror})", source=relative) from error
    if data is None:
        raise Unreadable("not a regular file", source=relative)
    if len(data) > bytes_max:
        raise TooLarge(f"over the limit of {bytes_max:,} bytes", source=relative)
    return data


def resolve_inside(folder: Path, relative: str) -> Path:
    """Resolve a name below `folder`, links included, to a relative path that need not exist.

    Raises Refused if the name is not a plain relative path or a link leads out.
    """
    parts = _parts(relative)
    top = os.path.realpath(folder)
    real = Path(os.path.realpath(os.path.join(top, *parts)))
    if not real.is_relative_to(top):
        raise Refused("a link leads out of the folder", source=relative)
    return real.relative_to(top)


def _parts(relative: str) -> tuple[str, ...]:
    path = PurePosixPath(relative)
    is_plain = not path.is_absolute() and path.parts and ".." not in path.parts
    if not is_plain or relative.startswith("./") or "\0" in relative:
        raise Refused("not a plain relative path", source=relative)
    return path.parts


def open_listed(path: Path) -> int | None:
    """Open a regular file by an absolute path without links; None if it is not a regular file.

    A part of the path that became a link since it was listed is not followed: that raises OSError
    with ELOOP or ENOTDIR.
    """
    return _open_steps(path.anchor, path.parts[1:])


def _read(top: str, steps: tuple[str, ...], bytes_max: int) -> bytes | None:
    fd = _open_steps(top, steps)
    if fd is None:
        return None
    with os.fdopen(fd, "rb") as file:
        return file.read(bytes_max)


def _open_steps(top: str, steps: tuple[str, ...]) -> int | None:
    """Open folder by folder without following links, so that swapping one in fails."""
    fd = os.open(top, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for step in steps[:-1]:
            inner = os.open(step, _PLAIN | os.O_DIRECTORY, dir_fd=fd)
            os.close(fd)
            fd = inner
        # Check before opening: opening a device may have side effects.
        if not steps or not _is_file(os.stat(steps[-1], dir_fd=fd, follow_symlinks=False)):
            return None
        file_fd = os.open(steps[-1], _PLAIN | os.O_NONBLOCK, dir_fd=fd)
    finally:
        os.close(fd)
    if _is_file(os.fstat(file_fd)):
        return file_fd
    os.close(file_fd)
    return None


def _is_file(status: os.stat_result) -> bool:
    return stat.S_ISREG(status.st_mode)
