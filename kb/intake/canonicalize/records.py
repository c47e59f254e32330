"""What does a message or a note in exported data say? Who wrote it, when, and its text.

Programs name these in their own ways. The names of the fields tell, and what stands in them.
"""

import email.utils
import functools
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

from msgspec import Struct, structs

from kb.intake.canonicalize.blocks import heading
from kb.intake.canonicalize.codes import without_marks
from kb.intake.canonicalize.dates import iso_date
from kb.intake.canonicalize.title import one_line

_TEXTS: Final = (
    "text", "fulltext", "textcontent", "body", "content", "contents", "message", "string",
    "comment", "parts", "listcontent", "data",
)  # fmt: skip
_AUTHORS: Final = (
    "userprofile", "sendername", "from", "sender", "author", "membercreator", "contactname",
    "username", "user", "actor", "role",
)  # fmt: skip
_NAMES: Final = ("realname", "displayname", "fullname", "name", "username", "nickname", "role")
_DESCRIPTIONS: Final = ("description", "caption", *_TEXTS)
_TITLES: Final = ("title", "name", "subject")
_TAGS: Final = ("tags", "labels")
_SAID: Final = frozenset((*_TEXTS, *_AUTHORS, *_TITLES, "type"))
_IDS: Final = frozenset({"id", "uuid", "uid"})
_TIME: Final = re.compile(r"date|time|created|modified|edited|updated|published|taken|ts$")
_NO_TIME: Final = re.compile(r"due|end|until|expir|birth|delet|trash|zone|durat|thread")
_MODIFIED: Final = re.compile(r"modif|edit|update|last")
# The epochs of 2001 to 2099, in seconds, milliseconds, microseconds and nanoseconds.
_EPOCH_MIN: Final = 10**9
_EPOCH_MAX: Final = 4_102_444_800
_EPOCH: Final = re.compile(r"\d{10}(?:\d{3}){0,3}(?:\.\d{1,9})?", re.ASCII)
_SENT: Final = re.compile(r"\d{10}\.\d{6}", re.ASCII)
_DATE_START: Final = re.compile(r"\d{4}-\d\d?-\d|(?:[A-Z][a-z]{2},? )?(?:\d|[A-Z][a-z]{2} \d)")
_TWEETED: Final = "%a %b %d %H:%M:%S %z %Y"
# Of files and pages that a message brings; a picture of its writer is none.
_BROUGHT: Final = re.compile(r"title|file|caption|description|href|link|ur[il]$")
_PORTRAIT: Final = re.compile(r"avatar|icon|thumb|image|profile|reaction|permalink|html")
_ID: Final = re.compile(r"[0-9a-f-]{16,}", re.IGNORECASE)
_WORD: Final = re.compile(r"[^\W\d_]")
_HEADED: Final = re.compile(r"(#{1,6})[ \t]+(.+)")
_TIME_CHARS_MAX: Final = 64
_SAID_CHARS_MAX: Final = 200
_REST_MAX: Final = 20
_DEPTH_MAX: Final = 4
_BELOW_MAX: Final = 64
_KEYS_MAX: Final = 4_096
_LOOKED_AT_FIRST: Final = 100
_TITLE_CHARS_MAX: Final = 200


class DatedText(Struct, frozen=True, kw_only=True):
    """A message, or a note: what it says and when, and who wrote it, if that is told."""

    text: str
    when: str
    """ISO 8601, or empty."""
    who: str = ""
    title: str = ""
    rest: tuple[str, ...] = ()
    """What else is said of it, as `name: value`."""

    def adds(self, key: object, value: object) -> bool:
        """Whether a field of the record says more than the entry does: no flag that is off."""
        name = _plain(key)
        if (
            name in _IDS
            or str(key).endswith(("_id", "Id"))
            or value is False
            or value is None
            or time_of(str(key), value)
        ):
            return False
        text = text_of(value)
        is_said = bool(text) and (text in self.text or text in (self.title, self.who))
        return not (is_said or name in _TAGS or name.endswith("html"))


class Facts(Struct, frozen=True, kw_only=True):
    """What a record says of itself beside its text."""

    title: str = ""
    created: str = ""
    modified: str = ""
    tags: tuple[str, ...] = ()


def facts_of(value: object) -> Facts:
    """The title, the days and the tags of a record; empty ones of what has none."""
    if not isinstance(value, dict):
        return Facts()
    title = next((t for t in map(_title, _found(value, _TITLES)) if t), "")
    created = modified = ""
    for key, item in value.items():
        if when := time_of(str(key), item):
            if "taken" in _plain(key):
                created = when
            elif _MODIFIED.search(_plain(key)):
                modified = modified or when
            else:
                created = created or when
    tags = [
        _label(tag) for found in _found(value, _TAGS) if isinstance(found, list) for tag in found
    ]
    return Facts(title=title, created=created, modified=modified, tags=tuple(filter(None, tags)))


def note_of(value: object) -> DatedText | None:
    """A record as a note, if it has a text and says when it was written."""
    entry = _entry(value) if isinstance(value, dict) else None
    return entry if entry is not None and entry.text and entry.when else None


def time_of(key: str, value: object) -> str:
    """The instant that the field of this name states, ISO 8601; empty for any other field."""
    if not _may_be_time(key):
        return ""
    if isinstance(value, dict):
        inner = (time_of(str(k), v) for k, v in value.items() if not isinstance(v, dict))
        return next(filter(None, inner), "")
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return ""
    said = str(value).strip()
    if len(said) > _TIME_CHARS_MAX:
        return ""
    if _EPOCH.fullmatch(said):
        return _of_epoch(float(said))
    if not isinstance(value, str) or not _DATE_START.match(said):
        return ""
    return iso_date(said) or _of_mail(said)


def talk_of(values: Sequence[Any], *, is_tabular: bool, depth: int = 0) -> list[DatedText] | None:
    """The messages or notes of a list, the oldest first; None for a list of anything else.

    What is a table and names no writers stays one. Items without words are left out.
    """
    if depth > _BELOW_MAX or not all(isinstance(value, dict) for value in values):
        return None
    if len(values) > _LOOKED_AT_FIRST and not _is_talk(values[:_LOOKED_AT_FIRST]):
        return None
    records = [unwrapped(value) for value in values]
    heads = [_entry(record) for record in records]
    if not _are_dated(heads):
        return None
    is_signed = any(head.who for head in heads)
    if is_tabular and not is_signed:
        return None
    same = _constants(records)
    entries: list[DatedText] = []
    for record, head in zip(records, heads, strict=True):
        below = _below(record, depth)
        rest = tuple(dict.fromkeys(_rest(record, head, {*same, *below})))[:_REST_MAX]
        if head.text or (
            rest and (head.who or any(" " in said.partition(": ")[2] for said in rest))
        ):
            when = head.when or (entries[-1].when if entries else "")
            entries.append(structs.replace(head, when=when, rest=rest))
        for replies in below.values():
            entries += replies
    return sorted(entries, key=lambda entry: entry.when) if is_signed else entries


def _is_talk(values: Sequence[Any]) -> bool:
    return _are_dated([_entry(unwrapped(value)) for value in values])


def _are_dated(heads: Sequence[DatedText]) -> bool:
    """Whether most have a text and a day."""
    dated = sum(1 for head in heads if head.text and head.when)
    return 0 < len(heads) <= 2 * dated


def _entry(record: Mapping[Any, Any]) -> DatedText:
    facts, text, who = facts_of(record), _own_text(record), _author(record)
    title = facts.title if facts.title not in (who, text) else ""
    return DatedText(text=text, when=facts.created or facts.modified, who=who, title=title)


def _below(record: Mapping[Any, Any], depth: int) -> dict[str, list[DatedText]]:
    """The entries below one, as the replies to a message, by their fields."""
    found = {
        str(key): talk_of(value, is_tabular=False, depth=depth + 1)
        for key, value in record.items()
        if isinstance(value, list) and value and _plain(key) not in _TEXTS
    }
    return {key: entries for key, entries in found.items() if entries}


def talk_blocks(entries: Sequence[DatedText], depth: int) -> Iterator[str]:
    """A heading for each day, or for a note that has a title, and a paragraph for each text."""
    day = ""
    for entry in entries:
        stated, _, clock = entry.when.partition("T")
        if entry.title:
            day = ""
            yield heading(depth + 2, one_line(entry.title))
            clock = entry.when
        elif stated != day:
            day = stated
            yield heading(depth + 2, day)
        shown = clock if entry.title else clock[:5]
        head = " ".join(filter(None, (f"**{entry.who}**" if entry.who else "", shown)))
        text = without_headings(entry.text)
        gap = "\n\n" if "\n" in text else " "
        said = f"{head}:{gap}{text}" if head and text else head or text
        rest = f" ({'; '.join(entry.rest)})" if entry.rest else ""
        yield said + (rest if gap == " " or not rest else f"\n\n{rest.strip()}")


def without_headings(text: str) -> str:
    """A text whose own headings are bold, so that what comes behind it is not below them."""
    if "#" not in text:
        return text
    lines: list[str] = []
    fence = ""
    for line in text.split("\n"):
        mark = line.lstrip()[:3]
        if mark in ("```", "~~~"):
            fence = "" if fence == mark else fence or mark
        headed = None if fence else _HEADED.fullmatch(line.strip())
        lines.append(f"**{headed[2].strip('*')}**" if headed else line)
    return "\n".join(lines)


def describes(value: object) -> bool:
    """Whether somebody wrote what the thing is that a record is about."""
    said = _found(value, _DESCRIPTIONS) if isinstance(value, dict) else ()
    return any(isinstance(text, str) and text.strip() for text in said)


def text_of(value: object, depth: int = 0) -> str:
    """The text of a field: itself, or the parts that it is kept in."""
    match value:
        case str():
            return value.strip()
        case list() | dict() if depth > _DEPTH_MAX:
            return ""
        case list():
            parts = [p if isinstance(p, str) else text_of(p, depth + 1) for p in value]
            is_run = len({type(part) for part in value}) > 1
            return ("" if is_run else "\n\n").join(filter(None, parts)).strip()
        case dict():
            return next(filter(None, (text_of(v, depth + 1) for v in _found(value, _TEXTS))), "")
        case _:
            return ""


def _own_text(record: Mapping[Any, Any]) -> str:
    text = next(filter(None, map(text_of, _found(record, _TEXTS))), "")
    sent = record.get("ts")
    # Only one program writes such a time, and its texts have marks of their own.
    is_marked = isinstance(sent, str) and _SENT.fullmatch(sent) is not None
    return without_marks(text) if is_marked else text


def _author(record: Mapping[Any, Any]) -> str:
    for value in _found(record, _AUTHORS):
        names = _found(value, _NAMES) if isinstance(value, dict) else [value]
        for name in names:
            if isinstance(name, str) and name.strip() and len(name) <= _SAID_CHARS_MAX:
                return one_line(name)
    return ""


def unwrapped(value: Any) -> Any:
    """The record in a record that says no more than that it holds it."""
    for _ in range(_DEPTH_MAX):
        if not isinstance(value, dict):
            return value
        inner = [item for item in value.values() if isinstance(item, dict)]
        if len(inner) != 1 or any(time_of(str(k), v) for k, v in value.items()):
            return value
        if any(isinstance(text, str) and text for text in _found(value, _TEXTS)):
            return value
        value = inner[0]
    return value


def _constants(records: Sequence[Mapping[Any, Any]]) -> frozenset[str]:
    """The fields that say the same in each of several records."""
    if len(records) <= 2:
        return frozenset()
    values: dict[str, set[str]] = {}
    for record in records:
        for key, value in record.items():
            if isinstance(value, str):
                values.setdefault(str(key), set()).add(value)
    return frozenset(key for key, said in values.items() if len(said) == 1)


def _rest(record: Mapping[Any, Any], head: DatedText, said: set[str]) -> Iterator[str]:
    """What else is said of a message, in words."""
    for key, value in record.items():
        name = _plain(key)
        if str(key) in said or name in _SAID or time_of(str(key), value):
            continue
        yield from _words(str(key), value, head.text, bool(head.who and head.text), 0)


def _words(key: str, value: object, text: str, is_message: bool, depth: int) -> Iterator[str]:
    name = _plain(key)
    if name.endswith("id") or _PORTRAIT.search(name):
        return
    match value:
        case dict() if depth < _DEPTH_MAX:
            for inner, item in value.items():
                yield from _words(str(inner), item, text, is_message, depth + 1)
        case list() if depth < _DEPTH_MAX:
            for item in value[:_REST_MAX]:
                yield from _words(key, item, text, is_message, depth + 1)
        case str():
            if (depth and is_message and not _BROUGHT.search(name)) or _ID.fullmatch(value):
                return
            said = one_line(value)
            is_new = 0 < len(value) <= _SAID_CHARS_MAX and said not in text
            is_noise = _DATE_START.match(said) and iso_date(said)
            if is_new and not is_noise and _WORD.search(said):
                yield f"{key}: {said}"
        case _:
            return


def _found(record: Mapping[Any, Any], names: Sequence[str]) -> Iterator[Any]:
    """The values of the fields of these names, in the order of the names."""
    by_name = {name: value for key, value in record.items() if (name := _plain(key)) in names}
    return (by_name[name] for name in names if name in by_name)


def _plain(key: object) -> str:
    return _plain_name(key if isinstance(key, str) else str(key))


@functools.lru_cache(_KEYS_MAX)
def _plain_name(key: str) -> str:
    return "".join(filter(str.isalnum, key[:_TIME_CHARS_MAX])).casefold()


@functools.lru_cache(_KEYS_MAX)
def _may_be_time(key: str) -> bool:
    name = _plain_name(key)
    return _TIME.search(name) is not None and _NO_TIME.search(name) is None


def _title(value: object) -> str:
    is_title = isinstance(value, str) and 0 < len(value.strip()) <= _TITLE_CHARS_MAX
    return one_line(str(value)) if is_title else ""


def _label(value: object) -> str:
    name = value.get("name") if isinstance(value, dict) else value
    return one_line(name) if isinstance(name, str) and len(name) <= _SAID_CHARS_MAX else ""


def _of_epoch(value: float) -> str:
    for unit in (1, 10**3, 10**6, 10**9):
        if _EPOCH_MIN <= value / unit < _EPOCH_MAX:
            moment = datetime.fromtimestamp(int(value / unit), UTC)
            return moment.strftime("%Y-%m-%dT%H:%M:%SZ")
    return ""


def _of_mail(said: str) -> str:
    try:
        return datetime.strptime(said, _TWEETED).isoformat()
    except ValueError:
        pass
    try:
        return email.utils.parsedate_to_datetime(said).isoformat()
    except (ValueError, TypeError, IndexError):
        return ""
