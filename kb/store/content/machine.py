"""What is this machine called on homes that machines share?"""

import hashlib
import os
import re
from pathlib import Path
from typing import Final

from kb.errors import ReadOnlyHome, UsageError
from kb.model.config.places import user_folder
from kb.store.content.durable import write_temporary

_VARIABLE: Final = "KB_MACHINE"
_NAME: Final = r"[a-z0-9](?:[a-z0-9.-]{0,61}[a-z0-9])?"
_FOLDER: Final = "machines"
_MACHINE_ID: Final = "/etc/machine-id"
_SUFFIX_HEX: Final = 6
_HOST_CHARS_MAX: Final = 40


def machine_name() -> str:
    """The name under which homes in databases keep this machine's files. It stays as it is.

    KB_MACHINE sets it. Otherwise it is made once, of the host's name and digits that no other
    machine has, and kept in the user's folder of data: a host that is renamed keeps it, and so its
    files keep their ids. Raises UsageError, and ReadOnlyHome if it cannot be kept.
    """
    given = os.environ.get(_VARIABLE, "")
    if given:
        if not re.fullmatch(_NAME, given):
            raise UsageError(
                f"{_VARIABLE} is {given!r}; give a name of small letters, digits, dots and hyphens"
            )
        return given
    data = user_folder("data")
    if not data.is_absolute():
        raise UsageError(f"this user has no folder for data; set {_VARIABLE}, or XDG_DATA_HOME")
    digest = _machine_digest()
    # A folder of data on a disk that machines share has a name for each of them.
    file = data / _FOLDER / (digest or "unknown")
    kept = _read(file)
    if kept:
        return kept
    made = f"{_host()}-{(digest or os.urandom(_SUFFIX_HEX).hex())[:_SUFFIX_HEX]}"
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        temporary = write_temporary(file.with_name(f"{file.name}.{os.getpid()}"), made.encode())
        try:
            # Of several that make a name the first one's counts for all.
            os.link(temporary, file)
        except FileExistsError:
            pass
        finally:
            temporary.unlink()
    except OSError as error:
        raise ReadOnlyHome(error.strerror or "", place=file.parent) from error
    return _read(file) or made


def _machine_digest() -> str:
    """Digits of this machine's id; the id itself is not for others to see. Empty if it has none."""
    try:
        ident = Path(_MACHINE_ID).read_bytes().strip()
    except OSError:
        return ""
    return hashlib.sha256(b"kb\n" + ident).hexdigest()[:16] if len(ident) >= 32 else ""


def _host() -> str:
    """The host's name, in letters that a file's URI can have."""
    host = os.uname().nodename.partition(".")[0].lower()
    return re.sub(r"[^a-z0-9]+", "-", host)[:_HOST_CHARS_MAX].strip("-") or "machine"


def _read(file: Path) -> str:
    try:
        name = file.read_text("ascii").strip()
    except (OSError, UnicodeDecodeError):
        return ""
    return name if re.fullmatch(_NAME, name) else ""
