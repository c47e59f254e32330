"""Snippets: which sentence of a hit shows why it was found? Pure.

Sentences are found without patterns, for a search on the command line compiles as few as it can.
"""

import math
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Final

from kb.model.search import Snippet
from kb.search.index.analysis import first_highlight, terms_in
from kb.search.term_places import TermPlaces, is_held_by_parts, term_places

_CHARS_MAX: Final = 300
# More sentences than these are not looked at.
_SENTENCES_MAX: Final = 200
_ENDS: Final = (". ", "! ", "? ", ".\n", "!\n", "?\n", "。", "！", "？", "؟ ", "। ")
_WORDS_BEFORE: Final = frozenset(("dr", "mr", "mrs", "ms", "st", "no", "vs", "fig", "cf", "approx"))
# A line that begins so is no part of the line before it.
_STARTS: Final = "#|>-*+="
_WHOLE_LINES: Final = "#|"


def snippet_of(text: str, weights: Mapping[str, float], *, is_code: bool = False) -> Snippet | None:
    """The sentence that holds most of the terms by weight, the first of equals.

    Of a long one 300 characters around the first term. A line of code, a row of a table and an item
    of a list count as sentences; a heading does only where nothing else is there. Without any term
    it is the first sentence; None without a text.
    """
    terms = frozenset(weights)
    places = term_places(text, terms)
    if places.starts is None and is_held_by_parts(terms):
        terms = places.held
    best: tuple[bool, float] | None = None
    start = end = 0
    for a, b in islice(_worth_a_look(text, places, is_code=is_code), _SENTENCES_MAX):
        is_body = is_code or text[a] != "#"
        if places.starts is not None:
            held = places.between(a, b)
        else:
            held = _possible(text[a:b], terms)
            if best is not None and (is_body, _weight(held, weights)) <= best:
                continue
            held = terms_in(text[a:b], held)
        worth = (is_body, _weight(held, weights))
        if best is None or worth > best:
            best, start, end = worth, a, b
    if best is None:
        return None
    if end - start > _CHARS_MAX:
        first = _first(text, start, end, terms, places)
        start, end = _around(text, start, end, first)
    return Snippet(text=text[start:end], start=start, end=end)


def _worth_a_look(text: str, places: TermPlaces, *, is_code: bool) -> Iterator[tuple[int, int]]:
    """The sentences but those of paragraphs without any term, after the first that is no heading.

    They hold nothing that the first one lacks.
    """
    has_body = False
    for start, end in _units(text, is_code=is_code):
        if has_body and places.starts is not None and places.first(start, end) is None:
            continue
        for a, b in _sentences_of(text, start, end, is_code=is_code):
            has_body = has_body or is_code or text[a] != "#"
            yield a, b


def _first(text: str, start: int, end: int, terms: frozenset[str], places: TermPlaces) -> int:
    """Where the first term of a sentence begins, or else the sentence."""
    if places.starts is None:
        return start + (first_highlight(text[start:end], terms) or 0)
    first = places.first(start, end)
    return start if first is None else first


def _weight(terms: frozenset[str], weights: Mapping[str, float]) -> float:
    return round(math.fsum(weights[term] for term in terms), 9)


def _possible(sentence: str, terms: frozenset[str]) -> frozenset[str]:
    """The terms that a sentence may contain: a look that costs less than its analysis."""
    if not sentence.isascii():
        return terms
    text = sentence.lower()
    # A stem differs from its word at the end alone.
    return frozenset(term for term in terms if term[: 3 if len(term) > 4 else 2] in text)


def sentences(text: str, *, is_code: bool = False) -> Iterator[tuple[int, int]]:
    """Start and end of each sentence, without white space at its edges; none is empty."""
    for start, end in _units(text, is_code=is_code):
        yield from _sentences_of(text, start, end, is_code=is_code)


def _sentences_of(text: str, start: int, end: int, *, is_code: bool) -> Iterator[tuple[int, int]]:
    at = start
    # A row of a table has no sentences of its own.
    for cut in [] if is_code or text[start] in _WHOLE_LINES else _cuts(text, start, end):
        yield from _trimmed(text, at, cut)
        at = cut
    yield from _trimmed(text, at, end)


def _units(text: str, *, is_code: bool) -> Iterator[tuple[int, int]]:
    """The paragraphs, items, rows, headings and lines of code."""
    start = place = 0
    in_code = is_code
    is_whole = False
    for line in text.splitlines(keepends=True):
        first = line.lstrip()[:1]
        is_fence = line.lstrip().startswith(("```", "~~~"))
        if not first or is_whole or in_code or is_fence or first in _STARTS:
            if text[start:place].strip():
                yield start, place
            start = place
        in_code = in_code ^ is_fence if not is_code else True
        is_whole = first != "" and first in _WHOLE_LINES
        place += len(line)
        if is_fence:
            # The marks around code say nothing.
            start = place
    if text[start:].strip():
        yield start, len(text)


def _cuts(text: str, start: int, end: int) -> list[int]:
    cuts: list[int] = []
    for mark in _ENDS:
        at = text.find(mark, start, end)
        while at >= 0:
            if mark[0] != "." or not _is_abbreviated(text, at):
                cuts.append(at + 1)
            at = text.find(mark, at + 1, end)
    return sorted(cuts)


def _is_abbreviated(text: str, at: int) -> bool:
    """Whether a full stop ends a word, and not a sentence."""
    if text[at + 1 : at + 4].lstrip()[:1].islower():
        return True
    begin = at
    while begin and at - begin < 8 and text[begin - 1].isalnum():
        begin -= 1
    word = text[begin:at].lower()
    return (len(word) == 1 and word.isalpha()) or word in _WORDS_BEFORE


def _trimmed(text: str, start: int, end: int) -> Iterator[tuple[int, int]]:
    part = text[start:end]
    inner = part.strip()
    if inner:
        begin = start + len(part) - len(part.lstrip())
        yield begin, begin + len(inner)


def _around(text: str, start: int, end: int, first: int) -> tuple[int, int]:
    """The part of a long sentence around its first term, begun and ended between words."""
    begin = max(start, min(first - _CHARS_MAX // 4, end - _CHARS_MAX))
    if begin > start:
        space = text.find(" ", begin, first)
        begin = space + 1 if space >= 0 else begin
    stop = min(end, begin + _CHARS_MAX)
    if stop < end:
        space = text.rfind(" ", begin + _CHARS_MAX // 2, stop)
        stop = space if space >= 0 else stop
    return begin, stop
