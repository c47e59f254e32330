"""Notes of several people in one notebook: each outside user has a folder."""

from typing import Final

from kb.knowledge.notebook.paths import kebab
from kb.model.doc import LOCAL_USER
from kb.model.ids import sha256_hex

_HEAD: Final = "from-"
_NAME_BYTES_MAX: Final = 48
_HASH_HEX: Final = 8


def is_foreign(owner: str | None) -> bool:
    """Whether a note is of somebody else than the person at the machine."""
    return owner not in (None, LOCAL_USER)


def folder_of(owner: str) -> str:
    """The folder at the top of the notebook that a user's notes stand in; no two share one."""
    name = kebab(owner)
    if name == owner and len(name.encode()) <= _NAME_BYTES_MAX:
        return _HEAD + name
    start = name.encode()[:_NAME_BYTES_MAX].decode("utf-8", "ignore").rstrip("-")
    return f"{_HEAD}{start}-{sha256_hex(owner)[:_HASH_HEX]}"


def is_of_others(folder: str) -> bool:
    """Whether a folder is named as those of users are: a rule puts nothing of one's own there."""
    return folder.startswith(_HEAD)
