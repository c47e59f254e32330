"""Write an entry as the text of a new file, and make an id from a title."""

import datetime as dt
import json
import re
import unicodedata
from collections.abc import Sequence
from typing import Final

from kb.errors import UsageError
from kb.intake.canonicalize.title import one_line
from kb.knowledge.entries.parse import Entry, parse
from kb.model.entry import EntryMeta
from kb.model.ids import sha256_hex

_ID_CHARS_MAX: Final = 80
_HASH_HEX: Final = 6
# Letters of the Latin script that no decomposition turns into ASCII.
_LATIN: Final = str.maketrans(
    {"æ": "ae", "œ": "oe", "ø": "o", "đ": "d", "ð": "d", "þ": "th", "ł": "l", "ı": "i", "ħ": "h"}
)
# Texts that YAML reads unchanged without quotes, also inside a list, except a few words.
_PLAIN: Final = re.compile(r"[A-Za-z](?:[A-Za-z0-9 _-]*[A-Za-z0-9])?")
_NOT_PLAIN: Final = frozenset(("null", "true", "false", "yes", "no", "on", "off", "y", "n"))


def draft(
    title: str,
    now_ms: int,
    *,
    zettel_id: str | None = None,
    entry_type: str = "note",
    tags: Sequence[str] = (),
    references: Sequence[str] = (),
) -> Entry:
    """A new entry; without an id its title gives one.

    `parse` reads the text of `text_of` as the same entry. Raises UsageError, which names the fault.
    """
    meta = EntryMeta(
        zettel_id=id_of(title, now_ms) if zettel_id is None else zettel_id,
        entry_type=entry_type,
        references=tuple(references),
    )
    parsed = parse(text_of(Entry(meta=meta, title=one_line(title), tags=tuple(tags))))
    if isinstance(parsed, Entry):
        return parsed
    raise UsageError("; ".join(fault.detail for fault in parsed))


def id_of(title: str, now_ms: int) -> str:
    """An id from a title: its words in ASCII, at most 80 characters, joined by hyphens.

    If a letter has no ASCII form, a hash of the title follows, so that titles that differ in such
    letters have different ids. If no letter has one, the id is `note-<date>-<hash>`, by UTC.
    """
    folded = unicodedata.normalize("NFKD", title).casefold().translate(_LATIN)
    letters = "".join(sign for sign in folded if not unicodedata.combining(sign))
    words = re.sub(r"[^a-z0-9]+", "-", letters).strip("-")[:_ID_CHARS_MAX].strip("-")
    if not any(sign.isalnum() and not sign.isascii() for sign in letters) and words:
        return words
    if not words:
        words = f"note-{dt.datetime.fromtimestamp(now_ms / 1000, dt.UTC):%Y-%m-%d}"
    return f"{words}-{sha256_hex(title)[:_HASH_HEX]}"


def text_of(entry: Entry) -> str:
    """A file that `parse` reads as this entry, with the title as its first heading."""
    meta = entry.meta
    rows = [
        ("zettel_id", _scalar(meta.zettel_id)),
        ("title", _scalar(entry.title)),
        ("entry_type", _scalar(meta.entry_type)),
        ("version", json.dumps(meta.version)),
        ("author", _scalar(meta.author) if meta.author else ""),
        ("tags", ", ".join(map(_scalar, entry.tags))),
        ("references", ", ".join(map(_scalar, meta.references))),
    ]
    lists = ("tags", "references")
    front = [
        f"{key}: [{value}]" if key in lists else f"{key}: {value}" for key, value in rows if value
    ]
    return "\n".join(("---", *front, "---", f"# {entry.title}", ""))


def _scalar(text: str) -> str:
    is_plain = _PLAIN.fullmatch(text) and text.lower() not in _NOT_PLAIN
    return text if is_plain else json.dumps(text, ensure_ascii=False)
