"""Notes of several people in one notebook: each outside user has a folder."""

from typing import Final

from kb.knowledge.notebook.paths import kebab
from kb.model.doc import LOCAL_USER
from kb.model.ids import sha256_hex

_HEAD: Final = "from-"
_NAME_BYTES_MAX: Final = 48
_HASH_HEX: Final = 8


def is_foreign(owner: str | None) -> bool:
    """Whether a note belongs to somebody other than the person at the machine."""
    return owner not in (None, LOCAL_USER)


def folder_of(owner: str) -> str:
    """The top folder of a user's notes; no two users share one."""
    name = kebab(owner)
    if name == owner and len(name.encode()) <= _NAME_BYTES_MAX:
        return _HEAD + name
    start = name.encode()[:_NAME_BYTES_MAX].decode("utf-8", "ignore").rstrip("-")
    return f"{_HEAD}{start}-{sha256_hex(owner)[:_HASH_HEX]}"


def is_of_others(folder: str) -> bool:
    """Whether a folder is named like a user's; rules put no note of one's own there."""
    return folder.startswith(_HEAD)
