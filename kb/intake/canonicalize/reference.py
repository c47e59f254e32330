"""What does a reference to a work say? Its title, who wrote it, when, and where it appeared."""

import re
from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct, structs

from kb.intake.canonicalize.blocks import escaped, fenced, finish, heading
from kb.intake.canonicalize.dates import iso_date
from kb.intake.canonicalize.exports import KEY_CHARS_MAX, digest_key, record_file
from kb.intake.canonicalize.parsers import TEXT_CHARS_MAX, TextTooLong
from kb.intake.canonicalize.title import one_line
from kb.intake.canonicalize.vault import merged_tags
from kb.model.text import AttachedFile, Canonical

ENTRY_CHARS_MAX: Final = 1 << 20
"""A longer entry is a damaged one."""
REFERENCES_MAX: Final = 50_000
"""A library of more stays one doc."""
_NAMED_MAX: Final = 10
_TAG_CHARS_MAX: Final = 100
_MARKUP: Final = re.compile(
    r"</?(i|b|em|strong|sub|sup|span|sc|p|br|jats:[a-z-]{1,20})(?:\s[^<>]{0,300})?/?>",
    re.IGNORECASE,
)
_BLOCKS: Final = ("p", "br", "jats:p", "jats:title", "jats:sec")
_ENTITY: Final = re.compile(r"&(?:[a-z]{2,8}|#\d{1,6});", re.IGNORECASE)
_PARAGRAPHS: Final = re.compile(r"\n\s*\n")
_YEAR: Final = re.compile(r"(?<!\d)(?:1\d|20)\d\d(?!\d)", re.ASCII)
_DAY: Final = re.compile(r"(\d{4})(?:[-/](\d{1,2})(?:[-/](\d{1,2}))?)?(?![\d])", re.ASCII)
_DOI: Final = re.compile(r"10\.\d{4,9}/\S{1,200}", re.ASCII)


class LibraryEntry(Struct, frozen=True, kw_only=True):
    """An entry of a library."""

    title: str = ""
    people: tuple[str, ...] = ()
    """Its authors, or its editors where it has none."""
    date: str | None = None
    """ISO 8601: a year, a month or a day."""
    tags: tuple[str, ...] = ()
    facts: tuple[str, ...] = ()
    """What else is said of it, as `name: value`."""
    texts: tuple[str, ...] = ()
    """Its abstract and notes."""
    keys: tuple[str, ...] = ()
    """What it may be known by in the next export, the surest first."""
    aliases: tuple[str, ...] = ()
    data: str = ""
    """The entry as a library of its own."""


class DamagedEntry(Struct, frozen=True, kw_only=True):
    """An entry that cannot be read."""

    name: str
    line: int
    """From 1."""
    text: str


def library(
    references: Sequence[LibraryEntry],
    damaged: Sequence[DamagedEntry],
    remarks: Iterable[str],
    *,
    name: str,
    mime: str,
    ending: str,
    warning: str | None,
) -> Canonical:
    """The entries in the order of the file; of one its title, its day and its tags.

    Several are records. What is in none of them is what cannot be read, and the `remarks` between
    them. Raises EmptySource.
    """
    rest = [text.strip() for text in remarks if text.strip()]
    rest += [fenced(entry.text) for entry in damaged]
    warnings = [warning] if warning else []
    warnings += [
        f"entry {entry.name} at line {entry.line} is damaged; it stays text of the file"
        for entry in damaged[:_NAMED_MAX]
    ]
    if len(damaged) > _NAMED_MAX:
        warnings.append(f"{len(damaged) - _NAMED_MAX:,} more entries are damaged")
    only = references[0] if len(references) == 1 else None
    blocks = [block for reference in references for block in _blocks(reference, only is not None)]
    if sum(map(len, blocks)) > TEXT_CHARS_MAX:
        raise TextTooLong
    whole = finish(
        [*blocks, *rest],
        name,
        mime,
        title=only.title if only else "",
        warnings=warnings,
        is_titled=False,
    )
    if only is not None:
        return structs.replace(whole, date=only.date, tags=only.tags, aliases=only.aliases)
    records = _records(references, mime, ending) if len(references) <= REFERENCES_MAX else ()
    return structs.replace(whole, attachments=records, rest="\n\n".join(rest))


def _records(
    references: Iterable[LibraryEntry], mime: str, ending: str
) -> tuple[AttachedFile, ...]:
    """Each entry under the first of its keys that no entry before it has."""
    records: dict[str, AttachedFile] = {}
    for reference in references:
        data = reference.data.encode("utf-8", "replace")
        keys = [_short(key) for key in reference.keys if key]
        key = next((key for key in keys if key not in records), "") or digest_key(data)
        # Of one that stands twice, word for word, the first is enough.
        if all(records[key].data != data for key in keys if key in records):
            records[key] = record_file(key, reference.title[:200], mime, ending, data)
    return tuple(records.values())


def _short(key: str) -> str:
    return key if len(key) <= KEY_CHARS_MAX else digest_key(key.encode("utf-8", "replace"))


def _blocks(reference: LibraryEntry, is_only: bool) -> Iterable[str]:
    title = reference.title or next(iter(reference.keys), "") or "Untitled"
    yield heading(1 if is_only else 2, title)
    yield ", ".join(reference.people)
    keywords = f"keywords: {', '.join(reference.tags)}" if reference.tags else ""
    yield "\n".join(f"- {fact}" for fact in (*reference.facts, keywords) if fact)
    yield from map(escaped, reference.texts)


def as_people(names: Iterable[str]) -> tuple[str, ...]:
    """Names as people say them: `Lovelace, Ada` is Ada Lovelace."""
    return tuple(filter(None, map(_as_said, names)))


def _as_said(name: str) -> str:
    family, *given = (part.strip() for part in name.split(","))
    if len(given) > 1:
        # Of three parts the middle one is as `Jr.`, unless a program put it last.
        first, suffix = (given[1], given[0]) if len(given[0]) <= 4 else (given[0], given[1])
        return one_line(" ".join(filter(None, (first, family))) + (f", {suffix}" if suffix else ""))
    return one_line(" ".join(filter(None, (*given, family))))


def as_tags(values: Iterable[str]) -> tuple[str, ...]:
    """Keywords as tags: between semicolons, where there are none between commas, or on lines."""
    tags: list[str] = []
    for value in values:
        sign = ";" if ";" in value else ","
        tags += [one_line(tag) for line in value.split("\n") for tag in line.split(sign)]
    return merged_tags(tuple(tag for tag in tags if tag and len(tag) <= _TAG_CHARS_MAX))


def as_date(*said: str) -> str | None:
    """The first day, month or year that is stated, ISO 8601; else a year that stands anywhere."""
    for text in said:
        match = _DAY.match(text.strip())
        parts = [part for part in match.groups() if part and int(part)] if match else []
        while parts:
            padded = "-".join(part.zfill(2) for part in parts)
            if date := iso_date(padded):
                return date
            parts.pop()
        if date := iso_date(text):
            return date
    years = (match[0] for text in said if (match := _YEAR.search(text)))
    return next(years, None)


def as_text(value: str) -> str:
    """A field without the markup of web pages; its paragraphs stay, each on one line."""
    if "<" in value:
        value = _MARKUP.sub(lambda tag: "\n\n" if tag[1].lower() in _BLOCKS else "", value)
    if _ENTITY.search(value):
        import html

        value = html.unescape(value)
    paragraphs = (" ".join(part.split()) for part in _PARAGRAPHS.split(value))
    return "\n\n".join(filter(None, paragraphs))


def doi_of(value: str) -> str:
    """A DOI without what programs write before it, in small letters as it is compared."""
    match = _DOI.search(value)
    return match[0].rstrip(".,;").lower() if match else ""


def work_key(*parts: str) -> str:
    """What a work is known by that has no key: its title, its year and who wrote it."""
    return digest_key("\n".join(parts).casefold().encode("utf-8", "replace")) if any(parts) else ""
