"""Read a settings file, and replace it whole."""

import errno
import os
import secrets
from pathlib import Path

from kb.errors import ConfigError, ReadOnlyHome, UsageError


def read_text(file: Path) -> str:
    """A settings file's text; empty where there is none. Raises ConfigError."""
    try:
        data = file.read_bytes()
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise ConfigError(f"cannot be read ({error.strerror})", place=file) from error
    try:
        return data.decode()
    except UnicodeDecodeError as error:
        raise ConfigError("not UTF-8", place=file) from error


def write_text(file: Path, text: str, *, before: str) -> None:
    """Replace a settings file whole.

    Raises UsageError where it is not what it was `before`, ReadOnlyHome where it cannot be written.
    """
    # A link stays a link: people keep their settings files elsewhere.
    target = Path(os.path.realpath(file))
    try:
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _replace(file, target, text, before)
    except OSError as error:
        if error.errno not in (errno.EACCES, errno.EPERM, errno.EROFS):
            raise
        raise ReadOnlyHome(error.strerror or "", place=file) from error


def _replace(file: Path, target: Path, text: str, before: str) -> None:
    mode = target.stat().st_mode & 0o777 if target.exists() else 0o600
    beside = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    try:
        with open(os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode), "wb") as opened:
            opened.write(text.encode())
            opened.flush()
            os.fchmod(opened.fileno(), mode)
            os.fsync(opened.fileno())
        if read_text(file) != before:
            raise UsageError(f"{file} changed meanwhile, so nothing was written; try again")
        os.replace(beside, target)
    finally:
        beside.unlink(missing_ok=True)
