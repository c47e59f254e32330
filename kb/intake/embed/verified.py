"""Which files of models were held against their SHA-256, and have not changed since?

Hashing the built-in model takes 25 ms of each cold search. So a file that was right once is taken
to be right as long as its size, times and inode are the same, as files of sources are.
"""

import os
from contextlib import suppress
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from kb.model.config.places import user_folder
from kb.model.decoding import decode_json

_FILE: Final = "verified-models.json"
_BYTES_MAX: Final = 1 << 16
_MODELS_MAX: Final = 32
# A file that changed this shortly before may change again with the same times.
_SETTLED_NS: Final = 2_000_000_000


class FileState(Struct, frozen=True, kw_only=True):
    """By what a change of a file is noticed."""

    size_bytes: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    device: int


class _Verified(Struct, frozen=True, kw_only=True):
    """A file that had this hash in this state."""

    sha256: str
    state: FileState


def state_of(path: Path) -> FileState:
    """The state of a file now. Raises OSError."""
    found = path.stat()
    return FileState(
        size_bytes=found.st_size,
        mtime_ns=found.st_mtime_ns,
        ctime_ns=found.st_ctime_ns,
        inode=found.st_ino,
        device=found.st_dev,
    )


def is_verified(path: Path, state: FileState, sha256: str) -> bool:
    """Whether a file in this state is known to have this hash."""
    return _known().get(str(path)) == _Verified(sha256=sha256, state=state)


def remember(path: Path, state: FileState, sha256: str, now_ns: int) -> None:
    """Keep that a file in this state has this hash, where that can be kept and trusted."""
    caches = user_folder("cache")
    if now_ns - max(state.mtime_ns, state.ctime_ns) < _SETTLED_NS or not caches.is_absolute():
        return
    others = {name: known for name, known in _known().items() if name != str(path)}
    newest = dict(list(others.items())[1 - _MODELS_MAX :])
    newest[str(path)] = _Verified(sha256=sha256, state=state)
    temporary = caches / f"{_FILE}.{os.getpid()}"
    with suppress(OSError):
        caches.mkdir(mode=0o700, parents=True, exist_ok=True)
        temporary.write_bytes(msgspec.json.encode(newest))
        temporary.replace(caches / _FILE)


def _known() -> dict[str, _Verified]:
    caches = user_folder("cache")
    if not caches.is_absolute():
        return {}
    try:
        with (caches / _FILE).open("rb") as file:
            return decode_json(file.read(_BYTES_MAX), dict[str, _Verified])
    except (OSError, msgspec.DecodeError):
        return {}
