"""What do the notes say in an export of Joplin? Each is a section: notebook, tags, day and text."""

import io
import json
import tarfile
from collections.abc import Iterator
from typing import Final

from msgspec import structs

from kb.errors import EmptySource, Unparsable
from kb.intake.canonicalize.blocks import finish, heading
from kb.intake.canonicalize.decode import clean_text, decode_text
from kb.intake.canonicalize.exports import RECORDS_MAX, record_file
from kb.intake.canonicalize.joplin import NOTE, Item, item_of
from kb.intake.canonicalize.parsers import TEXT_CHARS_MAX, TextTooLong
from kb.intake.canonicalize.records import without_headings
from kb.model.text import AttachedFile, Canonical

MIME: Final = "application/x-jex"
_NOTE: Final = "text/markdown"
_FOLDER, _TAG, _TAGGED = "2", "5", "6"
_MEMBERS_MAX: Final = 200_000
_MEMBER_BYTES_MAX: Final = 64 << 20


def read(data: bytes, name: str, charset: str | None = None) -> Canonical:  # noqa: ARG001
    """The notes of an export, the oldest first: title, notebook, tags, day and text of each.

    Several of them are records, each a markdown file.

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
    notes = sorted((i for i in items if i.kind == NOTE), key=lambda note: note.created or "")
    if not notes:
        raise EmptySource("no note is in it", source=name)
    blocks: list[str] = []
    records: dict[str, AttachedFile] = {}
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
        if note.title or note.text.strip():
            key = note.properties["id"]
            records[key] = record_file(
                key, note.title, _NOTE, "md", _note_file(note, facts[0], own)
            )
    date = max((note.modified or note.created or "" for note in notes), default="") or None
    whole = finish(blocks, name, MIME, date=date, is_titled=False)
    is_many = 1 < len(records) <= RECORDS_MAX
    return structs.replace(whole, attachments=tuple(records.values()) if is_many else ())


def _note_file(note: Item, notebook: str, tags: list[str]) -> bytes:
    """A note as a markdown file with what Joplin keeps of it elsewhere."""
    facts = {
        "title": note.title or None,
        "tags": tags,
        "created": note.created,
        "modified": note.modified,
    }
    # JSON is YAML.
    lines = [f"{key}: {json.dumps(fact)}" for key, fact in facts.items() if fact]
    text = "\n\n".join(filter(None, (notebook, note.text or note.title)))
    return f"---\n{chr(10).join(lines)}\n---\n\n{text}\n".encode("utf-8", "replace")


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
