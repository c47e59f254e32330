"""Identities of files that survive a move."""

import contextlib
import os
import re
from pathlib import Path
from typing import Final

_MARK: Final = "user.kb.home"
_MARK_FORM: Final = rb"[0-9a-f]{32}"


def identity_of(file: Path) -> str | None:
    """A unique identity of a file or folder, which is never reused; None if there is no file.

    It consists of the inode and a random mark in an extended attribute, which git and archives do
    not copy; the mark is needed because inodes are reused. It does not contain the device number,
    which may change. Without extended attributes it consists of device, inode and creation time,
    if the system has that.
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
    """Mark a file, if it has no mark and the file system allows one. Safe for several callers."""
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
    return value.decode() if re.fullmatch(_MARK_FORM, value) else ""
