"""What does a library in RIS say? Each reference is a section: title, authors, facts, abstract.

The tags are those of https://en.wikipedia.org/wiki/RIS_(file_format).
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from msgspec import Struct

from kb.intake.canonicalize import plain
from kb.intake.canonicalize.decode import clean_text, decode_text
from kb.intake.canonicalize.reference import (
    ENTRY_CHARS_MAX,
    DamagedEntry,
    LibraryEntry,
    as_date,
    as_people,
    as_tags,
    as_text,
    doi_of,
    library,
    work_key,
)
from kb.intake.canonicalize.title import one_line
from kb.model.text import Canonical

MIME: Final = "application/x-research-info-systems"
_TAG: Final = re.compile(r"[ \t]{0,4}([A-Z][A-Z0-9])  -(?: (.*)|[ \t]*)")
# Some programs write one space; in a file that has two it is a line of a text.
_LOOSE_TAG: Final = re.compile(r"[ \t]{0,4}([A-Z][A-Z0-9])[ \t]{0,3}-(?: (.*)|[ \t]*)")
_FIRST: Final = re.compile(r"^[ \t]{0,4}TY  -", re.MULTILINE)
_LOOSE_FIRST: Final = re.compile(r"^[ \t]{0,4}TY[ \t]{0,3}-", re.MULTILINE)
_TITLES: Final = ("TI", "T1", "CT", "BT")
_AUTHORS: Final = ("AU", "A1")
_EDITORS: Final = ("ED", "A2", "A3", "A4")
_DATES: Final = ("DA", "PY", "Y1")
_TEXTS: Final = ("AB", "N2", "N1", "RN")
_NAMES: Final = {
    "TY": "type", "T2": "in", "JO": "in", "JF": "in", "JA": "in", "J1": "in", "J2": "in",
    "BT": "in", "T3": "series", "VL": "volume", "IS": "number", "SP": "first page",
    "EP": "last page", "PB": "publisher", "CY": "place", "PP": "place", "SN": "isbn or issn",
    "DO": "doi", "UR": "url", "L1": "file", "L2": "url", "LK": "url", "ID": "id", "LA": "language",
    "AN": "accession number", "DB": "database", "DP": "from", "ET": "edition", "CN": "call number",
    "ST": "short title", "TT": "translated title", "Y2": "read on", "AD": "address",
    "M3": "kind of work", "SE": "section", "NV": "volumes", "PY": "year", "Y1": "year",
    "DA": "date",
}  # fmt: skip
_SAID: Final = frozenset((*_TITLES[:3], *_AUTHORS, *_EDITORS, "KW", *_TEXTS, "ER"))


class _TaggedLine(Struct, frozen=True, kw_only=True):
    tag: str
    value: str


class _Found(Struct, frozen=True, kw_only=True):
    lines: tuple[_TaggedLine, ...]
    text: str


def read(data: bytes, name: str, charset: str | None = None) -> Canonical:
    """The references in the order of the file; of one its title, its day and its tags.

    Several are records. A file without one is plain text.

    Raises:
        EmptySource: there is no text in it.
    """
    decoded, warning = decode_text(data, (charset,) if charset else ())
    text = clean_text(decoded).replace("\ufeff", "")
    if _LOOSE_FIRST.search(text) is None:
        return plain.read(data, name, charset)
    damaged: list[DamagedEntry] = []
    remarks: list[str] = []
    references = [_reference(found) for found in _references(text, damaged, remarks)]
    return library(
        references, damaged, remarks, name=name, mime=MIME, ending="ris", warning=warning
    )


def _references(text: str, damaged: list[DamagedEntry], remarks: list[str]) -> Iterator[_Found]:
    """The references; one ends at `ER`, where the next one begins, or at the end of the file."""
    tagged = _TAG if _FIRST.search(text) else _LOOSE_TAG
    lines: list[tuple[str, list[str]]] = []
    written: list[str] = []
    begin = 1

    def taken() -> Iterator[_Found]:
        whole = "\n".join(written)
        if not any("".join(parts) for tag, parts in lines if tag != "TY"):
            # Such is what stands between references, or is no more than opened.
            remarks.extend([whole] if lines or whole.strip() else [])
        elif len(whole) > ENTRY_CHARS_MAX:
            name = next((parts[0] for tag, parts in lines if tag in _TITLES), "")
            damaged.append(DamagedEntry(name=one_line(name, chars_max=60), line=begin, text=whole))
        else:
            read = tuple(_TaggedLine(tag=tag, value="\n".join(parts)) for tag, parts in lines)
            yield _Found(lines=read, text=f"{whole.strip()}\n")
        lines.clear()
        written.clear()

    for number, line in enumerate(text.split("\n"), 1):
        match = tagged.fullmatch(line)
        if match is not None and match[1] == "TY":
            yield from taken()
            begin = number
        written.append(line)
        if match is not None:
            if match[1] == "ER":
                yield from taken()
                begin = number + 1
            else:
                lines.append((match[1], [(match[2] or "").strip()]))
        elif lines:
            lines[-1][1].append(line)
    yield from taken()


def _reference(found: _Found) -> LibraryEntry:
    def values(tags: Sequence[str]) -> list[str]:
        lines = (line for tag in tags for line in found.lines if line.tag == tag)
        return [said for line in lines if (said := as_text(line.value))]

    titles, authors = values(_TITLES), as_people(values(_AUTHORS))
    editors, dates = as_people(values(_EDITORS)), values(_DATES)
    date = as_date(*dates)
    facts = [f"editors: {', '.join(editors)}"] if authors and editors else []
    title = titles[0] if titles else ""
    facts += [
        f"{_NAMES.get(line.tag, line.tag)}: {one_line(said, chars_max=2_000)}"
        for line in found.lines
        if line.tag not in _SAID and (said := as_text(line.value)) and said != title
    ]
    addresses = [said for said in values(("UR", "L2", "LK")) if "doi.org/" in said]
    doi = doi_of(" ".join((*values(("DO", "M3")), *addresses)))
    ids = values(("ID",))
    keyword_lines = [line.value for line in found.lines if line.tag == "KW"]
    people = authors or editors
    return LibraryEntry(
        title=one_line(title),
        people=people,
        date=date,
        tags=as_tags(keyword_lines),
        facts=tuple(dict.fromkeys(facts)),
        texts=tuple(dict.fromkeys(values(_TEXTS))),
        keys=(doi, *ids[:1], work_key(title, date or "", *people)),
        data=found.text,
    )
