"""Which part of a passage to show? The rows around its matched words. Pure."""

import re
from collections.abc import Iterator, Sequence
from typing import Final

import msgspec
from msgspec import Struct

from kb.operations.search import Mark
from kb_cli.output import cells

# What the ellipses before the first and after the last row take.
_ELLIPSES: Final = 4
# A shorter line was ended on purpose, as those of verses and addresses.
_WRAPPED_CHARS_MIN: Final = 45
_BLOCK: Final = r"\s|$|#|>|\||<|:|```|~~~|[-=*+]{2}|[-*+]\s|\d+[.)]\s"
_CJK_FIRST: Final = "\u2e80"


class Row(Struct, frozen=True, kw_only=True):
    """One row of a passage: text[start:end], the matched words in it, and whether more is near."""

    start: int
    end: int
    spans: tuple[Mark, ...] = ()
    cut_before: bool = False
    cut_after: bool = False


def snippet(
    text: str,
    spans: Sequence[Mark],
    width: int,
    *,
    rows_max: int | None,
    shown: Mark | None = None,
) -> list[Row]:
    """At most `rows_max` rows of `width` columns: of `shown` and what is around it.

    Without `shown` those with most of the words in their middle. `spans` are those of the words,
    ascending and disjoint. Blank lines are left out.
    """
    rows = [
        Row(start=start, end=end, spans=_within(spans, start, end))
        for start, end in wrapped(text, width - _ELLIPSES)
    ]
    if rows_max is None or len(rows) <= rows_max:
        return rows
    first = _around(rows, shown, rows_max) if shown else _best(text, rows, rows_max)
    window = rows[first : first + rows_max]
    if first:
        window[0] = msgspec.structs.replace(window[0], cut_before=True)
    if first + rows_max < len(rows):
        window[-1] = msgspec.structs.replace(window[-1], cut_after=True)
    return window


def _around(rows: list[Row], shown: Mark, count: int) -> int:
    """The first of `count` rows that have `shown` in their middle, and its beginning at least."""
    start, end = shown
    places = [place for place, row in enumerate(rows) if row.start < end and row.end > start]
    before = max(0, count - len(places)) // 2
    return max(0, min(places[0] - before, len(rows) - count)) if places else 0


def _within(spans: Sequence[Mark], start: int, end: int) -> tuple[Mark, ...]:
    return tuple((max(a, start), min(b, end)) for a, b in spans if a < end and b > start)


def flowed(text: str) -> str:
    """The text with the line ends inside its paragraphs made spaces, so its length stays.

    Lines of code, tables, headings and lists, and short lines, end where they did.
    """
    lines = text.split("\n")
    is_block = re.compile(_BLOCK).match
    parts: list[str] = []
    in_code = False
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        is_fence = line.startswith(("```", "~~~"))
        in_code ^= is_fence
        is_prose = not in_code and not is_fence and not line.startswith(("#", "|"))
        joins = (
            is_prose
            and len(line) >= _WRAPPED_CHARS_MIN
            and not is_block(following)
            and max(line[-1], following[0]) < _CJK_FIRST
            and not line[-1].isspace()
        )
        parts += [line, " " if joins else "\n"]
    return "".join(parts[:-1])


def wrapped(text: str, width: int) -> Iterator[tuple[int, int]]:
    """Rows of at most `width` columns, as start and end: broken at spaces where there are any."""
    place = 0
    for line in text.split("\n"):
        start, end = place, place + len(line)
        place = end + 1
        while start < end:
            stop = _row_end(text, start, end, width)
            if text[start:stop].strip():
                yield start, stop
            start = stop
            while start < end and text[start] == " ":
                start += 1


def _row_end(text: str, start: int, end: int, width: int) -> int:
    used, space = 0, 0
    for at in range(start, end):
        used += cells(text[at])
        if used > width and at > start:
            # A row that would be nearly empty is broken in the word.
            return space if space - start > width // 3 else at
        if text[at] == " ":
            space = at
    return end


def _best(text: str, rows: list[Row], count: int) -> int:
    """The first of `count` rows that hold most of the words, in the middle where it can be had."""

    def worth(first: int) -> tuple[int, int, int]:
        window = rows[first : first + count]
        words = {text[a:b].casefold() for row in window for a, b in row.spans}
        matched = [place for place, row in enumerate(window) if row.spans]
        off = abs(2 * (sum(matched) // len(matched)) - (count - 1)) if matched else 0
        return len(words), -off, -first

    return max(range(len(rows) - count + 1), key=worth)
