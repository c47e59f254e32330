"""Split text into sentences: prose of any script, lists, and code. Pure.

A missed boundary joins two sentences; a wrong one leaves half a sentence without its citation. So
in doubt there is no boundary.
"""

import re
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from kb.knowledge.answers.citations import CITATION, without_citations, without_code

_FENCE: Final = re.compile(r" {0,3}(```|~~~)")
_BULLET: Final = re.compile(r"[ \t]{0,12}(?:[-*+•–]|\d{1,3}[.)]|[A-Za-z]\))[ \t]+|[ \t]*(?:> ?)+")
_HEADING: Final = re.compile(r" {0,3}#{1,6}[ \t]")
_ROW: Final = re.compile(r"[ \t]*\|")
_CITED: Final = rf"(?:\s{{0,4}}{CITATION}){{0,16}}"
_CITED_FIRST: Final = re.compile(rf"(?:\s{{0,4}}{CITATION}){{1,16}}")
_END: Final = re.compile(
    rf"(?P<latin>[.!?…]{{1,8}})[\"'”’»)\]*_]{{0,4}}{_CITED}(?=\s|\Z)"
    rf"|[。！？｡]{{1,8}}(?:{_CITED_FIRST.pattern}|(?![\"'”’」』）】*_])"
    rf"|[\"'”’」』）】*_]{{1,4}}(?:{_CITED_FIRST.pattern}|(?=\s|\Z)))"
)
_LAST_WORD: Final = re.compile(r"[\w.]{0,20}\Z")
_DOTTED: Final = re.compile(r"(?:[^\W\d_]\.)+[^\W\d_]")
_NEXT: Final = re.compile(r"\s*[\"'“‘„«(*_]*(\S?)")
# A full stop after these ends no sentence; after the second group only if a number follows.
_OPEN: Final = frozenset(
    ("approx", "cf", "dr", "e.g", "eq", "fig", "i.e", "mr", "mrs", "ms", "prof", "st", "vs", "z.b")
)
_NUMBERED: Final = frozenset(("art", "ca", "ch", "no", "nos", "nr", "p", "pp", "sec", "v", "vol"))


class SentenceSpan(Struct, frozen=True, kw_only=True):
    """A sentence: text[start:end], without white space around it."""

    start: int
    end: int


def sentences(text: str) -> list[SentenceSpan]:
    """The sentences of a text, in order, disjoint; together they hold all but white space.

    Citations after a full stop belong to the sentence before, even on a line of their own. An item
    of a list, a heading, a row of a table and fenced code each begin a sentence.
    """
    masked = without_code(text)
    spans: list[SentenceSpan] = []
    is_behind_code = False
    for start, end, is_code_block in _blocks(text):
        at = start
        if is_code_block:
            spans.append(SentenceSpan(start=start, end=end))
        elif is_behind_code and (marks := _CITED_FIRST.match(masked, start, end)):
            at = marks.end()
            spans[-1] = SentenceSpan(start=spans[-1].start, end=at)
        for span in () if is_code_block else _of_block(masked, at, end):
            is_mark = spans and not without_citations(text[span.start : span.end])
            first = spans.pop().start if is_mark else span.start
            spans.append(SentenceSpan(start=first, end=span.end))
        is_behind_code = is_code_block or (is_behind_code and not text[start:end].strip())
    return spans


def plain(text: str) -> str:
    """A sentence on one line, without a list's or heading's mark in front."""
    mark = _BULLET.match(text) or _HEADING.match(text)
    return " ".join((text[mark.end() :] if mark else text).split())


def is_code(text: str) -> bool:
    """Whether a sentence is fenced code."""
    return _FENCE.match(text) is not None


def is_prose(text: str) -> bool:
    """Whether a sentence is prose: not code, not a heading, not a row of a table."""
    return not any(pattern.match(text) for pattern in (_HEADING, _ROW, _FENCE))


def _blocks(text: str) -> Iterator[tuple[int, int, bool]]:
    """Paragraphs, items, headings, rows and fenced code: start, end, and whether it is code."""
    at = start = 0
    fence = ""
    for line in text.splitlines(keepends=True):
        mark = _FENCE.match(line)
        if fence:
            if mark and mark[1] == fence:
                yield start, at + len(line.rstrip()), True
                fence, start = "", at + len(line)
        elif mark:
            yield start, at, False
            fence, start = mark[1], at
        elif not line.strip() or _HEADING.match(line) or _ROW.match(line):
            yield start, at, False
            yield at, at + len(line), False
            start = at + len(line)
        elif _BULLET.match(line):
            yield start, at, False
            start = at
        at += len(line)
    yield start, len(text.rstrip()) if fence else len(text), bool(fence)


def _of_block(masked: str, start: int, end: int) -> Iterator[SentenceSpan]:
    block = masked[start:end]
    mark = _BULLET.match(block)
    at = 0
    for stop in _END.finditer(block, mark.end() if mark else 0):
        if stop["latin"] and not _is_end(block, stop):
            continue
        yield from _trimmed(block, at, stop.end(), start)
        at = stop.end()
    yield from _trimmed(block, at, len(block), start)


def _trimmed(block: str, at: int, stop: int, offset: int) -> Iterator[SentenceSpan]:
    part = block[at:stop]
    if inner := part.strip():
        first = offset + at + len(part) - len(part.lstrip())
        yield SentenceSpan(start=first, end=first + len(inner))


def _is_end(block: str, stop: re.Match[str]) -> bool:
    """Whether a full stop, question or exclamation mark ends its sentence."""
    following = _NEXT.match(block, stop.end())
    follower = following[1] if following else ""
    if follower.islower():
        return False
    if stop["latin"] != "." or stop[0].endswith(("]", "】")):
        return True
    last = _LAST_WORD.search(block, max(0, stop.start() - 20), stop.start())
    word = last[0].lower() if last else ""
    if word in _OPEN or (word in _NUMBERED and follower.isdigit()):
        return False
    # An initial, as in J. R. Smith; but a lone letter before anything else may well be the end.
    is_initial = len(word) == 1 and word.isalpha() and follower.isupper()
    return not (is_initial or (_DOTTED.fullmatch(word) and not follower.isupper() and follower))
