"""What does a note of Joplin say? Its first line is its title, its last lines its properties."""

import io
import re
import tarfile
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from kb.errors import NotWritten, Unparsable
from kb.intake.canonicalize.blocks import finish, heading
from kb.intake.canonicalize.dates import iso_date
from kb.intake.canonicalize.decode import clean_text, decode_text
from kb.intake.canonicalize.parsers import TEXT_CHARS_MAX, TextTooLong
from kb.intake.canonicalize.records import without_headings
from kb.model.text import Canonical

MIME: Final = "application/x-jex"
_LINE: Final = re.compile(r"([a-z_]{1,40}):(?: (.*))?")
_ID: Final = re.compile(r"[0-9a-f]{32}")
_NOTE, _FOLDER, _TAG, _TAGGED = "1", "2", "5", "6"
_MEMBERS_MAX: Final = 200_000
_MEMBER_BYTES_MAX: Final = 64 << 20


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
    if item.kind != _NOTE:
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


def read_jex(data: bytes, name: str, charset: str | None = None) -> Canonical:  # noqa: ARG001
    """The notes of an export, the oldest first: title, notebook, tags, day and text of each.

    Raises:
        Unparsable: it is no export of Joplin.
        EmptySource: no note is in it.
    """
    items = list(_items(data, name))
    titles = {item.properties["id"]: item.title for item in items if item.kind in (_FOLDER, _TAG)}
    tags: dict[str, list[str]] = {}
    for item in items:
        if item.kind == _TAGGED:
            tag = titles.get(item.properties.get("tag_id", ""), "")
            tags.setdefault(item.properties.get("note_id", ""), []).append(tag)
    notes = sorted((i for i in items if i.kind == _NOTE), key=lambda note: note.created or "")
    blocks: list[str] = []
    for note in notes:
        own = sorted(filter(None, tags.get(note.properties["id"], ())))
        notebook = titles.get(note.properties.get("parent_id", ""), "")
        facts = (
            f"Notebook: {notebook}" if notebook else "",
            f"Tags: {', '.join(own)}" if own else "",
            note.created or "",
        )
        title = heading(2, note.title) or "## Untitled"
        blocks += [title, "  \n".join(filter(None, facts)), without_headings(note.text)]
    date = max((note.modified or "" for note in notes), default="") or None
    return finish(blocks, name, MIME, date=date, is_titled=False)


def _items(data: bytes, name: str) -> Iterator[Item]:
    chars = 0
    try:
        with tarfile.open(fileobj=io.BytesIO(data), mode="r:") as archive:
            for _, member in zip(range(_MEMBERS_MAX), archive, strict=False):
                if not member.isfile() or not member.name.endswith(".md"):
                    continue
                file = archive.extractfile(member) if member.size <= _MEMBER_BYTES_MAX else None
                text = clean_text(decode_text(file.read())[0]) if file is not None else ""
                chars += len(text)
                if chars > TEXT_CHARS_MAX:
                    raise TextTooLong
                if (item := item_of(text)) is not None:
                    yield item
    except (tarfile.TarError, EOFError, OSError, ValueError, OverflowError):
        raise Unparsable("it is no export of Joplin; export it again", source=name) from None
