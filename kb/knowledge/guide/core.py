"""The entries that ship with the program."""

import functools
from pathlib import Path
from typing import Final

from msgspec import Struct

from kb.errors import Unreadable
from kb.knowledge.entries import Entry, parse
from kb.model.ids import sha256_hex

_FOLDER: Final = Path(__file__).with_name("core")


class CoreEntry(Struct, frozen=True, kw_only=True):
    """An entry as it ships."""

    zettel_id: str
    version: str
    data: bytes

    @property
    def file_name(self) -> str:
        """What its file is called."""
        return f"{self.zettel_id}.md"


@functools.cache
def core_entries() -> tuple[CoreEntry, ...]:
    """Every entry that ships, by id. Raises Unreadable where a file is not what it should be."""
    return tuple(_read(path) for path in sorted(_FOLDER.glob("*.md")))


def core_digest() -> str:
    """Names what ships, byte for byte: 64 hexadecimal digits."""
    return sha256_hex("".join(sha256_hex(entry.data) for entry in core_entries()))


def _read(path: Path) -> CoreEntry:
    data = path.read_bytes()
    entry = parse(data.decode())
    if not isinstance(entry, Entry):
        raise Unreadable(entry[0].detail, source=str(path))
    return CoreEntry(zettel_id=entry.meta.zettel_id, version=entry.meta.version, data=data)
