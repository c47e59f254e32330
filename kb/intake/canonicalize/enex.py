"""What do exported notes of Evernote say? Each is a section: title, tags, day and text."""

from typing import TYPE_CHECKING, Final

from msgspec import structs

from kb.errors import Unparsable
from kb.intake.canonicalize.archive import parse_xml, without_doctype
from kb.intake.canonicalize.blocks import finish, heading
from kb.intake.canonicalize.dates import iso_date
from kb.intake.canonicalize.exports import RECORDS_MAX, digest_key, record_file
from kb.intake.canonicalize.parsers import TEXT_CHARS_MAX, TextTooLong
from kb.intake.canonicalize.vault import merged_tags
from kb.intake.canonicalize.visible import visible_text
from kb.model.text import AttachedFile, Canonical

if TYPE_CHECKING:
    from lxml.etree import _Element

MIME: Final = "application/x-enex+xml"
_TAGS_MAX: Final = 100


def read(data: bytes, name: str, charset: str | None = None) -> Canonical:  # noqa: ARG001
    """The notes in the order of the export; of one note its title, its day and its tags.

    Raises:
        Unparsable: it is no export of Evernote.
        EmptySource: no note has text.
    """
    root = parse_xml(without_doctype(data), name)
    notes = root.findall("note")
    if root.tag != "en-export":
        raise Unparsable("it is no export of Evernote; export it again", source=name)
    blocks: list[str] = []
    chars = 0
    for note in notes:
        text = visible_text(note.findtext("content") or "")
        chars += len(text)
        if chars > TEXT_CHARS_MAX:
            raise TextTooLong
        tags = [tag.text or "" for tag in note.findall("tag")[:_TAGS_MAX]]
        facts = (
            iso_date(note.findtext("created") or ""),
            f"Tags: {', '.join(tags)}" if tags else "",
            note.findtext("note-attributes/source-url") or "",
        )
        title = heading(2, note.findtext("title") or "") or "## Untitled"
        blocks += [title, "  \n".join(filter(None, facts)), text]
    only = notes[0] if len(notes) == 1 else None
    whole = finish(
        blocks,
        name,
        MIME,
        title=(only.findtext("title") or "") if only is not None else "",
        date=iso_date(only.findtext("created") or "") if only is not None else None,
        is_titled=False,
    )
    if only is None:
        return structs.replace(whole, attachments=_records(notes))
    return structs.replace(
        whole,
        tags=merged_tags(tuple(tag.text or "" for tag in only.findall("tag")[:_TAGS_MAX])),
        created=iso_date(only.findtext("created") or ""),
        modified=iso_date(only.findtext("updated") or ""),
    )


def _records(notes: "list[_Element]") -> tuple[AttachedFile, ...]:
    """Each note as an export of its own; it is known by when it was made, as it has no id."""
    if len(notes) > RECORDS_MAX:
        return ()
    from lxml.etree import strip_elements, tostring

    records: dict[str, AttachedFile] = {}
    for note in notes:
        title, created = note.findtext("title") or "", note.findtext("created") or ""
        strip_elements(note, "resource", with_tail=False)
        data = b"<en-export>" + tostring(note, encoding="utf-8") + b"</en-export>"
        key = created if created and created not in records else digest_key(data)
        records[key] = record_file(key, title, MIME, "enex", data)
    return tuple(records.values())
