"""Which words of a query say more than what is looked for? `-word`, `"a phrase"`, `-tag:x`. Pure.

Whatever is not an operator is text, so that no query is an error.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Final, cast, get_args

import msgspec
from msgspec import Struct

from kb.model.search import NO_FILTERS, Filters, WantedKind

if TYPE_CHECKING:
    import datetime as dt

_OPERATORS_MAX: Final = 32
_WORD: Final = r'[^\s"]{1,400}'
_QUOTED: Final = r'"(?P<quoted>[^"]{1,400})"'
_FILTER: Final = (
    r"(?<!\S)(?P<sign>-?)(?P<field>tag|source|kind|version|since|until|from|to):"
    rf"(?:{_QUOTED}|(?P<word>{_WORD}))(?!\S)"
)
# Behind a closing quote the mark that ends a sentence may stand.
_NEEDLE: Final = (
    rf"(?<!\S)(?P<sign>-?(?:title|source):|-|)"
    rf"(?:{_QUOTED}(?=[?!.,;:)]*(?:\s|\Z))|(?<=[-:])(?P<word>{_WORD})(?!\S))"
)
# Options, as in `tar -x`, and numbers are no words to be left out.
_LEFT_OUT: Final = r"[^\W\d_][\w.@/-]+"


class Needles(Struct, frozen=True, kw_only=True):
    """What a query asks for that only the words of chunks and the names of sources tell."""

    text: str
    """What is looked for, by words and by meaning; phrases are part of it."""
    phrases: tuple[str, ...] = ()
    """each chunk must hold all of them; letter case and accents make no difference."""
    without: tuple[str, ...] = ()
    """Words and phrases: no doc that holds one of them is wanted."""
    titles: tuple[str, ...] = ()
    """The title of each doc must have the words of all of them."""
    places: tuple[str, ...] = ()
    """Names of files and folders, of which one must be, or hold, each doc."""
    other_titles: tuple[str, ...] = ()
    """No doc is wanted whose title has the words of one of them."""
    other_places: tuple[str, ...] = ()
    """Names of files and folders, of which none may be, or hold, a doc."""

    @property
    def are_there(self) -> bool:
        """Whether it asks for anything but text."""
        narrowing = self.phrases or self.titles or self.places
        return bool(narrowing or self.without or self.other_titles or self.other_places)


def split_filters(query: str, filters: Filters, today: "dt.date") -> tuple[str, Filters]:
    """A query without its filters (`tag:`, `kind:`, dates, people and so on), and these.

    They narrow `filters`, whose dates are dates, and each with a minus leaves out what it would
    let through by itself. A kind or a date that is none is text, and a source that is named in
    part stays. Where nothing else stands in a query all of it is also its text.
    """
    found: dict[str, list[str]] = {}
    without: list[Filters] = []
    pieces: list[str] = []
    at = 0
    for match in _first(re.finditer(_FILTER, query)) if ":" in query else ():
        value = (match["quoted"] or match["word"]).strip()
        if not _is_valid(match["field"], value, today):
            continue
        if match["sign"]:
            without.append(_narrowed(NO_FILTERS, {match["field"]: [value]}, today))
        else:
            found.setdefault(match["field"], []).append(value)
        pieces.append(query[at : match.start()])
        at = match.end()
    if not pieces:
        return query, filters
    text = _joined([*pieces, query[at:]])
    filters = _narrowed(filters, found, today)
    if without:
        from kb.model.left_out import QueryFilters

        fields = {name: getattr(filters, name) for name in Filters.__struct_fields__}
        filters = QueryFilters(**fields, without=tuple(without))
    return (text if _has_words(needles(text).text) else query), filters


def needles(query: str) -> Needles:
    """The text of a query and what else it asks for: `"a phrase"`, `-word`, `-title:`, `source:`.

    Where nothing else is left to look for, it is the title or the source, or else all of it; then
    `-word` is text alone.
    """
    found: dict[str, list[str]] = {}
    pieces: list[str] = []
    at = 0
    may_have = any(sign in query for sign in '"-:')
    for match in _first(re.finditer(_NEEDLE, query)) if may_have else ():
        sign, quoted = match["sign"], match["quoted"]
        value = (quoted or match["word"]).strip()
        is_word = sign == "-" and quoted is None
        if not _has_words(value) or (is_word and not re.fullmatch(_LEFT_OUT, value)):
            continue
        found.setdefault(sign, []).append(value)
        if sign:
            pieces.append(query[at : match.start()])
            at = match.end()
    text = _joined([*pieces, query[at:]]) if pieces else query
    if not _has_words(text):
        text = " ".join((*found.get("title:", ()), *found.get("source:", ())))
    left_out = [] if not text else found.get("-", [])
    return Needles(
        text=text or query,
        phrases=tuple(found.get("", ())),
        without=tuple(left_out),
        titles=tuple(found.get("title:", ())),
        places=tuple(found.get("source:", ())),
        other_titles=tuple(found.get("-title:", ())),
        other_places=tuple(found.get("-source:", ())),
    )


def _first(matches: "Iterable[re.Match[str]]") -> "Iterable[re.Match[str]]":
    return (match for match, _ in zip(matches, range(_OPERATORS_MAX), strict=False))


def _joined(pieces: Sequence[str]) -> str:
    return " ".join(" ".join(pieces).split())


def _has_words(text: str) -> bool:
    return any(map(str.isalnum, text))


def _is_valid(field: str, value: str, today: "dt.date") -> bool:
    if field == "kind":
        return value in get_args(WantedKind)
    if field == "source":
        return value.startswith(("/", "~")) or "://" in value
    if field in ("since", "until"):
        from kb.model.days import find_span

        return find_span(value, today) is not None
    return bool(value)


def _narrowed(filters: Filters, found: Mapping[str, Sequence[str]], today: "dt.date") -> Filters:
    from kb.model.days import span_of

    kinds = cast("tuple[WantedKind, ...]", tuple(found.get("kind", ())))
    starts, ends = (
        [span_of(words, today, name)[place] for words in found.get(name, ())]
        for place, name in enumerate(("since", "until"))
    )
    return msgspec.structs.replace(
        filters,
        tags=(*filters.tags, *(tag.removeprefix("#") for tag in found.get("tag", ()))),
        kinds=filters.kinds or kinds,
        site_versions=filters.site_versions or tuple(found.get("version", ())),
        sources=filters.sources or tuple(found.get("source", ())),
        sender=filters.sender or next(iter(found.get("from", ())), None),
        recipient=filters.recipient or next(iter(found.get("to", ())), None),
        since=max(filter(None, (filters.since, *starts)), default=None),
        until=min(filter(None, (filters.until, *ends)), default=None),
    )
