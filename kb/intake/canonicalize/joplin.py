"""What does a note of Joplin say? Its first line is its title, its last lines its properties."""

import re
from typing import Final

from msgspec import Struct

from kb.errors import NotWritten
from kb.intake.canonicalize.dates import iso_date
from kb.model.text import Canonical

_LINE: Final = re.compile(r"([a-z_]{1,40}):(?: (.*))?")
_ID: Final = re.compile(r"[0-9a-f]{32}")
NOTE: Final = "1"


class Item(Struct, frozen=True, kw_only=True):
    """A note, or what else Joplin keeps in a file of its own."""

    kind: str
    title: str
    body: str
    properties: dict[str, str]

    @property
    def created(self) -> str | None:
        """When its author made it."""
        return self._date("user_created_time", "created_time")

    @property
    def modified(self) -> str | None:
        """When its author last changed it."""
        return self._date("user_updated_time", "updated_time")

    @property
    def text(self) -> str:
        """Its text, and the address that it was clipped from."""
        return "\n\n".join(filter(None, (self.body, self.properties.get("source_url", ""))))

    def _date(self, *names: str) -> str | None:
        return next((d for n in names if (d := iso_date(self.properties.get(n, "")))), None)


def item_of(text: str) -> Item | None:
    """What a clean text says that ends with the properties of Joplin; None for any other."""
    lines = text.rstrip("\n").split("\n")
    properties: dict[str, str] = {}
    at = len(lines)
    while at and (match := _LINE.fullmatch(lines[at - 1])):
        properties[match[1]] = (match[2] or "").strip()
        at -= 1
    kind = properties.get("type_", "")
    if not kind.isdecimal() or not _ID.fullmatch(properties.get("id", "")):
        return None
    title, _, body = "\n".join(lines[:at]).partition("\n")
    return Item(kind=kind, title=title.strip(), body=body.strip("\n"), properties=properties)


def read_note(item: Item, name: str) -> Canonical:
    """A note that lies in a file of its own, as markdown; raises NotWritten for anything else."""
    if item.kind != NOTE:
        raise NotWritten("it is no note, but a part of what Joplin keeps about notes", source=name)
    text = item.text or item.title
    return Canonical(
        markdown=text.strip("\n") + "\n",
        title=item.title or "Untitled",
        mime="text/markdown",
        date=item.created,
        created=item.created,
        modified=item.modified,
        front_lines=2,
    )
