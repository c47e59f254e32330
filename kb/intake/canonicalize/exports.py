"""Which records of an export are docs of their own? Conversations, pages, notes; no messages."""

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from kb.intake.canonicalize.records import facts_of, note_of, talk_of, unwrapped
from kb.intake.canonicalize.title import one_line
from kb.model.text import AttachedFile

RECORDS_MAX: Final = 5_000
"""A list of more is no list of docs."""
JSON_MIME: Final = "application/json"
_DEPTH_MAX: Final = 2
# By these a record is known in the next export, too.
_KEYS: Final = ("uuid", "uid", "guid", "id", "conversationid")
KEY_CHARS_MAX: Final = 100
_DIGEST_CHARS: Final = 16
# Of records without a title: shorter ones are messages or posts.
_LONG_CHARS: Final = 500


class SplitExport(Struct, frozen=True, kw_only=True):
    """The records of an export, and what else is in it."""

    records: list[AttachedFile]
    rest: Any


def split_export(value: Any, is_table: Callable[[list[Any]], bool]) -> SplitExport:
    """The conversations, pages and notes in the lists of a value; no record where it is one itself.

    Lists of messages and tables are left whole. A record is known by its own id, so that it is the
    same doc in a later export; without one by its title and its day.
    """
    records: dict[str, AttachedFile] = {}
    rest = _split(value, is_table, records, 0)
    return SplitExport(records=list(records.values()), rest=rest)


def record_file(key: str, title: str, mime: str, ending: str, data: bytes) -> AttachedFile:
    """A record as a file of its own."""
    name = title.replace("/", "-").replace("\\", "-").strip(". ") or key
    return AttachedFile(name=f"{name}.{ending}", mime=mime, data=data, key=key)


def _split(
    value: Any, is_table: Callable[[list[Any]], bool], records: dict[str, AttachedFile], depth: int
) -> Any:
    if isinstance(value, dict):
        if depth == _DEPTH_MAX or _is_titled(value) or note_of(value) is not None:
            return value
        parts = {key: _split(item, is_table, records, depth + 1) for key, item in value.items()}
        return {key: part for key, part in parts.items() if part or not value[key]}
    if not isinstance(value, list) or not 1 < len(value) <= RECORDS_MAX:
        return value
    kept = [_is_record(item, is_table) for item in value]
    if 2 * sum(kept) < len(value) or is_table(value):
        return value
    for item, is_kept in zip(value, kept, strict=True):
        if is_kept:
            file = _file(item, records)
            records[file.key] = file
    return [item for item, is_kept in zip(value, kept, strict=True) if not is_kept]


def _is_titled(value: Mapping[Any, Any]) -> bool:
    return bool(facts_of(value).title)


def _is_record(item: Any, is_table: Callable[[list[Any]], bool]) -> bool:
    record = unwrapped(item)
    if not isinstance(record, dict):
        return False
    note = note_of(record)
    if note is not None:
        return not note.who and (bool(note.title) or len(note.text) >= _LONG_CHARS)
    return any(_is_talk(part, is_table) for part in record.values())


def _is_talk(part: Any, is_table: Callable[[list[Any]], bool]) -> bool:
    if isinstance(part, dict):
        return bool(talk_of(list(part.values()), is_tabular=False))
    if not isinstance(part, list) or not part:
        return False
    return bool(talk_of(part, is_tabular=is_table(part)))


def _file(item: Any, records: Mapping[str, AttachedFile]) -> AttachedFile:
    data = json.dumps(item, ensure_ascii=False).encode("utf-8", "replace")
    record = unwrapped(item)
    facts, note = facts_of(record), note_of(record)
    opening = one_line(note.text.partition("\n")[0].lstrip("# ")) if note is not None else ""
    key = _own_key(record) or _own_key(item)
    if not key and (facts.title or facts.created):
        key = digest_key(f"{facts.title}\n{facts.created}".encode("utf-8", "replace"))
    if not key or key in records:
        key = digest_key(data)
    return record_file(key, facts.title or opening or facts.created, JSON_MIME, "json", data)


def _own_key(record: Any) -> str:
    plain = {str(key).lower().replace("_", "").replace("-", ""): key for key in record}
    values: Sequence[Any] = [record[plain[name]] for name in _KEYS if name in plain]
    keys = [str(value) for value in values if isinstance(value, str | int)]
    return next((key for key in keys if 0 < len(key) <= KEY_CHARS_MAX), "")


def digest_key(data: bytes) -> str:
    """What a record is known by that has nothing else."""
    return hashlib.sha256(data).hexdigest()[:_DIGEST_CHARS]
