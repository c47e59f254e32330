"""Makes files and names durable: a crash leaves the old content or the new, never a part."""

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

# A killed process may have left a file of that name; a link could lead the bytes elsewhere.
_CREATE_FLAGS: Final = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC


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


def write_temporary(path: Path, content: bytes) -> Path:
    """Write `content` next to `path`, durable, under the name that `os.replace` moves over it."""
    temporary = path.with_name(path.name + ".new")
    try:
        with open(os.open(temporary, _CREATE_FLAGS, 0o666), "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
    except OSError:
        with suppress(OSError):
            temporary.unlink()
        raise
    return temporary
