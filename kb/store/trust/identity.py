"""Which file is it, wherever its folder is moved to?"""

import contextlib
import os
import re
from pathlib import Path
from typing import Final

_MARK: Final = "user.kb.home"
_MARK_FORM: Final = re.compile(rb"[0-9a-f]{32}")


def identity_of(file: Path) -> str | None:
    """A word for a file or folder that no other has, now or later; None where there is none.

    It is the inode with a random mark in an extended attribute, which neither git nor an archive
    brings along: without it a file could inherit the number of one that is gone. A marked file
    keeps its word when its disk is known by another number. Where there are no such attributes,
    device, inode and, where the system tells it, the time of birth stand in.
    """
    try:
        status = os.stat(file)
    except (FileNotFoundError, NotADirectoryError):
        return None
    mark = _read_mark(file)
    if mark:
        return f"{mark}-{status.st_ino:x}"
    created = int(getattr(status, "st_birthtime", 0))
    return f"at-{status.st_dev:x}-{status.st_ino:x}-{created:x}"


def mark(file: Path) -> None:
    """Give a file its mark, where it has none and can have one; of several callers one does."""
    if not hasattr(os, "setxattr") or _read_mark(file):
        return
    value = os.urandom(16).hex().encode()
    with contextlib.suppress(OSError):
        os.setxattr(file, _MARK, value, os.XATTR_CREATE)


def _read_mark(file: Path) -> str:
    if not hasattr(os, "getxattr"):
        return ""
    try:
        value = os.getxattr(file, _MARK)
    except OSError:
        return ""
    return value.decode() if _MARK_FORM.fullmatch(value) else ""
