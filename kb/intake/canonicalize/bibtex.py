"""What does a library of BibTeX say? Each entry is a section: title, authors, facts, abstract.

The grammar is that of BibTeX and Biber; see https://www.bibtex.org/Format/.
"""

import re
from collections.abc import Iterator, Mapping
from typing import Final

from msgspec import Struct, structs

from kb.intake.canonicalize import plain
from kb.intake.canonicalize.decode import clean_text, decode_text
from kb.intake.canonicalize.latex import words_of
from kb.intake.canonicalize.parsers import TEXT_CHARS_MAX, TextTooLong
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

MIME: Final = "text/x-bibtex"
_START: Final = re.compile(r"@[ \t]{0,20}([A-Za-z][\w-]{0,60})\s{0,20}([{(])")
# At such a line an entry before it ends, at the latest: a missing brace costs that entry alone.
_NEXT: Final = re.compile(
    r"^[ \t]{0,8}@[ \t]{0,20}[A-Za-z][\w-]{0,60}\s{0,20}[{(]\s{0,20}"
    r"[^\s,={}\"#]{1,200}\s{0,20}[,=]",
    re.MULTILINE,
)
_KEY: Final = re.compile(r"\s*([^,={}\n]{0,400}?)\s*([,=}])")
_NAME: Final = re.compile(r"[\s,]*([^\s=,{}()\"#]{1,100})\s*=\s*")
_GAP: Final = re.compile(r"[\s,]*")
_BARE: Final = re.compile(r"[^\s,#{}()\"=]{1,200}")
_JOIN: Final = re.compile(r"\s*#\s*")
# BibTeX counts each brace; other programs do not count those behind a backslash.
_BRACES: Final = (re.compile(r"[{}]"), re.compile(r"(?<!\\)[{}]"))
_QUOTES: Final = (re.compile(r"[{}\"]"), re.compile(r"(?<!\\)[{}\"]"))
_MACROS_MAX: Final = 10_000
_MACRO_CHARS_MAX: Final = 10_000
_ENCODING: Final = re.compile(r"^%?\s*Encoding: .*$", re.MULTILINE)
_AND: Final = re.compile(r"\band\b", re.IGNORECASE)
_NO_ENTRIES: Final = ("comment", "preamble", "string")
_PLACES: Final = ("doi", "url", "eprint", "isbn", "issn", "pmid")
_PLACE_SIGN: Final = re.compile(r"\\url(?=\{)|\\([&%$#_{}~])|[{}]")
_TEXTS: Final = ("abstract", "note", "annote", "annotation")
_KEYWORDS: Final = ("keywords", "keyword", "tags", "mendeley-tags")
# What a program keeps for itself.
_KEPT: Final = (
    *("file", "local-url", "owner", "timestamp", "date-added", "date-modified", "__markedentry"),
)
_SAID: Final = frozenset(
    ("title", "subtitle", "author", "editor", *_KEYWORDS, *_TEXTS, *_KEPT),
)
_MONTHS: Final = (
    *("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec"),
)

Fields = dict[str, str]


class _Entry(Struct, frozen=True, kw_only=True):
    kind: str
    key: str
    fields: Fields
    data: str
    is_changed: bool
    """Whether the text alone does not say what the fields say."""


class _Damage(Exception):
    """An entry has no end, or is none."""


def read(data: bytes, name: str, charset: str | None = None) -> Canonical:
    """The entries in the order of the file; of one its title, its day and its tags.

    Several entries are records. What `@string` defines and an entry of `crossref` has is said where
    it is used; comments are left out. A file without an entry is plain text.

    Raises:
        EmptySource: there is no text in it.
    """
    decoded, warning = decode_text(data, (charset,) if charset else ())
    scanner = _BibtexReader(clean_text(decoded))
    entries = list(scanner.entries())
    if not entries and not scanner.damaged:
        return plain.read(data, name, charset)
    by_key = {entry.key.lower(): entry for entry in reversed(entries) if entry.key}
    return library(
        [_reference(scanner.inherited(entry, by_key)) for entry in entries],
        scanner.damaged,
        scanner.remarks,
        name=name,
        mime=MIME,
        ending="bib",
        warning=warning,
    )


class _BibtexReader:
    """Goes through a library once, entry by entry."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._macros: dict[str, str] = {}
        self._chars = 0
        self._next = -1
        self._is_comment_open = False
        self.damaged: list[DamagedEntry] = []
        self.remarks: list[str] = []
        """What stands between the entries."""

    def entries(self) -> Iterator[_Entry]:
        """The entries that can be read."""
        text = self._text
        at = begin = lines = counted = 0
        while match := _START.search(text, at):
            before = text[max(text.rfind("\n", at, match.start()) + 1, at) : match.start()]
            if before.strip(" \t,})\ufeff"):
                at = match.end()
                continue
            self._remark(text[begin : match.start()])
            kind = match[1].lower()
            limit = self._limit(match)
            try:
                entry, at = self._entry(kind, match, limit)
                if entry is not None:
                    yield entry
            except _Damage:
                at = match.end() if kind == "comment" else limit
                if kind != "comment":
                    lines += text.count("\n", counted, match.start())
                    counted = match.start()
                    self._damage(text[match.start() : limit], lines + 1)
            begin = at
        self._remark(text[begin:])

    def inherited(self, entry: _Entry, by_key: Mapping[str, _Entry]) -> _Entry:
        """An entry with what it does not say itself and the one that it refers to says."""
        parent = by_key.get(entry.fields.get("crossref", "").strip().lower())
        if parent is None or parent is entry:
            return entry
        fields = {("booktitle" if k == "title" else k): v for k, v in parent.fields.items()}
        fields = {key: value for key, value in fields.items() if key not in entry.fields}
        self._count(fields)
        return structs.replace(entry, fields=entry.fields | fields, is_changed=True)

    def _limit(self, match: re.Match[str]) -> int:
        if self._next <= match.start():
            found = _NEXT.search(self._text, match.end())
            self._next = found.start() if found else len(self._text)
        return self._next

    def _entry(self, kind: str, match: re.Match[str], limit: int) -> tuple[_Entry | None, int]:
        text, start = self._text, match.end()
        if kind in ("comment", "preamble"):
            # What is commented out may hold entries; only one comment may be without its end.
            if kind == "comment" and not self._is_comment_open:
                limit = len(text)
            try:
                return None, _closing(text, start, limit, _BRACES[0])
            except _Damage:
                self._is_comment_open = True
                raise
        limit = min(limit, match.start() + ENTRY_CHARS_MAX)
        closer = "}" if match[2] == "{" else ")"
        try:
            fields = _EntryFields(text, limit, closer, self._macros, 0)
            key, end = fields.read(start, has_key=kind != "string")
        except _Damage:
            fields = _EntryFields(text, limit, closer, self._macros, 1)
            key, end = fields.read(start, has_key=kind != "string")
        self._count(fields.values)
        if kind == "string":
            if len(self._macros) < _MACROS_MAX:
                cut = {name: value[:_MACRO_CHARS_MAX] for name, value in fields.values.items()}
                self._macros.update(cut)
            return None, end
        entry = _Entry(
            kind=kind,
            key=" ".join(key.split()),
            fields=fields.values,
            data=text[match.start() : end],
            is_changed=fields.has_macros,
        )
        return entry, end

    def _count(self, fields: Fields) -> None:
        self._chars += sum(map(len, fields.values()))
        if self._chars > TEXT_CHARS_MAX:
            raise TextTooLong

    def _damage(self, text: str, line: int) -> None:
        opened = _START.match(text)
        key = _KEY.match(text, opened.end() if opened else 0)
        named = key[1] if key and key[2] == "," else ""
        name = one_line(named or text, chars_max=60)
        self.damaged.append(DamagedEntry(name=name, line=line, text=text.strip()))

    def _remark(self, text: str) -> None:
        words = _ENCODING.sub("", text).lstrip(" \t\n,})\ufeff").rstrip()
        if words:
            self.remarks.append(words)


class _EntryFields:
    """The key and the fields of one entry."""

    def __init__(
        self, text: str, limit: int, closer: str, macros: Mapping[str, str], escapes: int
    ) -> None:
        self.values: Fields = {}
        self.has_macros = False
        self._text = text
        self._limit = limit
        self._closer = closer
        self._macros = macros
        self._escapes = escapes

    def read(self, at: int, *, has_key: bool) -> tuple[str, int]:
        """The key, and where the entry ends. Raises _Damage."""
        key = ""
        if has_key:
            match = _KEY.match(self._text, at, self._limit)
            if match is None:
                raise _Damage
            if match[2] == ",":
                key, at = match[1], match.end()
            elif match[2] == "}":
                key, at = match[1], match.end() - 1
        while True:
            gap = _GAP.match(self._text, at, self._limit)
            at = gap.end() if gap else at
            if self._text.startswith(self._closer, at) and at < self._limit:
                return key, at + 1
            named = _NAME.match(self._text, at, self._limit)
            if named is None:
                raise _Damage
            value, at = self._value(named.end())
            if value.strip():
                self.values.setdefault(named[1].lower(), value)

    def _value(self, at: int) -> tuple[str, int]:
        parts: list[str] = []
        chars = 0
        while True:
            part, at = self._part(at)
            parts.append(part)
            chars += len(part)
            joined = _JOIN.match(self._text, at, self._limit)
            if joined is None or chars > ENTRY_CHARS_MAX:
                return "".join(parts), at
            at = joined.end()

    def _part(self, at: int) -> tuple[str, int]:
        text = self._text
        if text.startswith("{", at):
            end = _closing(text, at + 1, self._limit, _BRACES[self._escapes])
            return text[at + 1 : end - 1], end
        if text.startswith('"', at):
            end = self._quote_end(at + 1)
            return text[at + 1 : end - 1], end
        bare = _BARE.match(text, at, self._limit)
        if bare is None:
            raise _Damage
        word = bare[0].lower()
        if word in self._macros:
            self.has_macros = True
            return self._macros[word], bare.end()
        return bare[0], bare.end()

    def _quote_end(self, at: int) -> int:
        depth = 0
        for sign in _QUOTES[self._escapes].finditer(self._text, at, self._limit):
            if sign[0] == '"' and depth <= 0:
                return sign.end()
            depth += {"{": 1, "}": -1}.get(sign[0], 0)
        raise _Damage


def _closing(text: str, at: int, limit: int, braces: re.Pattern[str]) -> int:
    """Behind the brace that closes what is open at `at`."""
    depth = 1
    for brace in braces.finditer(text, at, limit):
        depth += 1 if brace[0] == "{" else -1
        if not depth:
            return brace.end()
    raise _Damage


def _reference(entry: _Entry) -> LibraryEntry:
    fields = {name: _said(name, value) for name, value in entry.fields.items()}
    title = ": ".join(filter(None, (fields.get("title", ""), fields.get("subtitle", ""))))
    authors, editors = (_people(entry.fields.get(name, "")) for name in ("author", "editor"))
    date = as_date(fields.get("date", ""), _year_and_month(fields), fields.get("year", ""))
    facts = [
        f"type: {entry.kind}",
        f"citation key: {entry.key}" if entry.key else "",
        f"editors: {', '.join(editors)}" if authors and editors else "",
        *(
            f"{name}: {one_line(said, chars_max=2_000)}"
            for name, said in fields.items()
            if name not in _SAID and not name.startswith("bdsk-")
        ),
    ]
    doi = doi_of(fields.get("doi", ""))
    work = work_key(title, date or "", *(authors or editors))
    return LibraryEntry(
        title=one_line(title),
        people=authors or editors,
        date=date,
        tags=as_tags(fields[name] for name in _KEYWORDS if name in fields),
        facts=tuple(filter(None, facts)),
        texts=tuple(fields[name] for name in _TEXTS if name in fields),
        keys=(entry.key, f"{entry.key} {doi}".strip(), f"{entry.key} {work}".strip()),
        aliases=(entry.key,) if entry.key else (),
        data=_written(entry) if entry.is_changed else entry.data,
    )


def _said(name: str, value: str) -> str:
    if name in _PLACES:
        # An address has tildes and hyphens of its own.
        return " ".join(_PLACE_SIGN.sub(lambda sign: sign[1] or "", value).split())
    return as_text(words_of(value))


def _people(value: str) -> tuple[str, ...]:
    """The names between each ` and ` that stands in no braces."""
    names: list[str] = []
    start = depth = 0
    for sign in re.finditer(r"[{}]|\s+and\s+", value):
        if sign[0] in "{}":
            depth += 1 if sign[0] == "{" else -1
        elif not depth:
            names.append(value[start : sign.start()])
            start = sign.end()
    names.append(value[start:])
    is_body = [name.strip().startswith("{") and name.strip().endswith("}") for name in names]
    said = [as_text(words_of(name)) for name in names]
    said = [
        name.replace(",", "\u201a") if body else name
        for name, body in zip(said, is_body, strict=True)
    ]
    people = (name.replace("\u201a", ",") for name in as_people(said))
    return tuple("et al." if name == "others" else name for name in people)


def _year_and_month(fields: Mapping[str, str]) -> str:
    year, month = fields.get("year", ""), fields.get("month", "").lower()
    if month[:3] in _MONTHS:
        month = str(_MONTHS.index(month[:3]) + 1)
    day = fields.get("day", "")
    return "-".join(filter(None, (year, month, day))) if month.isdecimal() else year


def _written(entry: _Entry) -> str:
    """The entry with all that it says in its own text."""
    lines = [f"  {name} = {{{value}}}," for name, value in entry.fields.items()]
    return "\n".join((f"@{entry.kind}{{{entry.key},", *lines, "}"))
