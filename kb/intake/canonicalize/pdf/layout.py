"""In which order is a page read? Lines become text."""

from itertools import islice, pairwise
from typing import Final

from msgspec import Struct

from kb.intake.canonicalize.pdf.page import Box, Line, PdfPage

_SENTENCE_ENDS: Final = tuple(".!?:;。！？：；…")
# Of a line's height: more is a line above it, less may be a raised letter.
_ABOVE: Final = 0.8
# A page whose lines climb this often is not in reading order.
_CLIMBS_MIN: Final = 3
_CLIMBS_SHARE: Final = 0.2
# Rows with text on both sides of a gap, and the words of a cell there, that make columns of them.
_COLUMN_ROWS_MIN: Final = 3
_COLUMN_WORDS_MIN: Final = 3.5
_ROWS_MAX: Final = 200
_GAPS_MAX: Final = 20
# Of the usual distance of lines: more is a new paragraph.
_PARAGRAPH: Final = 1.4
_PARAGRAPH_HEIGHTS: Final = 1.5
_MARK_CHARS_MAX: Final = 5
# Heads and feet have no more lines than this.
_EDGE_LINES: Final = 3
# Of the lower one's height: how much a raised letter is beside its word, and how near to it.
_OVERLAP: Final = 0.25
_TOUCH: Final = 0.2
_SMALL: Final = 0.9
_NOTE_MARK_CHARS_MAX: Final = 3


class _Gutter(Struct, frozen=True):
    """White space between two columns, and the rows along it: `rows[start:end]`."""

    left: float
    right: float
    end: int


class LaidPage(Struct, frozen=True):
    """A page's lines as they are read; an empty one where a paragraph ends."""

    lines: list[str]
    edges: tuple[int, ...]
    """Which of them are at the top or at the bottom of the page, where heads and feet are."""
    pinned: str = ""
    """The lines of what is pinned on the page; empty where they say nothing."""


def laid_out(page: PdfPage) -> LaidPage:
    """The page's lines in reading order, and what is pinned on it."""
    ordered = reading_order(page.lines)
    at_edge = _at_edge(ordered)
    lines: list[str] = []
    edges: list[int] = []
    for number, (line, is_first) in enumerate(zip(ordered, _paragraphs(ordered), strict=True)):
        if is_first and lines:
            lines.append("")
        if number in at_edge:
            edges.append(len(lines))
        lines.append(line.text)
    pinned = "\n".join(page.pinned)
    return LaidPage(lines, tuple(edges), pinned if any(map(str.isalnum, pinned)) else "")


def page_text(page: LaidPage) -> str:
    """The page's text, mended, then what is pinned on it; empty without a letter or digit."""
    text = mended(page.lines)
    return f"{text}\n\n{page.pinned}" if text and page.pinned else text or page.pinned


def reading_order(lines: list[Line]) -> list[Line]:
    """The lines as they are read: columns one after the other, rows of tables whole.

    Lines without a place come last; where most have none, the order is that of the content.
    """
    placed = [line for line in lines if line.boxes]
    unplaced = [line for line in lines if not line.boxes]
    if len(placed) < len(unplaced):
        return lines
    placed = _rejoined(placed)
    if _is_disordered(placed):
        placed = _rows(placed)
    if any(len(line.boxes) > 1 for line in placed):
        placed = _columns_parted(placed)
    return placed + unplaced


def mended(lines: list[str]) -> str:
    """One page's lines, mended; empty where there is no letter or digit on it."""
    kept: list[str] = []
    for line in lines:
        if kept and _runs_on(kept[-1], line):
            last = kept[-1]
            kept[-1] = last[:-1] + line if last[-1] in "-\u00ad" else f"{last} {line.lstrip()}"
        else:
            kept.append(line)
    text = "\n".join(kept).strip("\n")
    return text if any(map(str.isalnum, text)) else ""


def _runs_on(last: str, line: str) -> bool:
    """Whether `line` continues the sentence, or the broken word, that ends `last`."""
    start = line.lstrip()[:1]
    if not last or not start.islower() or " | " in last or " | " in line:
        return False
    if last[-1] in "-\u00ad":
        return last[-2:-1].islower() and line[:1] == start
    return not last.endswith(_SENTENCE_ENDS)


def _rejoined(lines: list[Line]) -> list[Line]:
    """The lines, with pieces that stand beside the last one put to it, as raised letters do."""
    joined: list[Line] = []
    for line in lines:
        if joined and joined[-1].boxes and line.boxes:
            last, box = joined[-1].boxes[-1], line.boxes[0]
            gap = box.left - last.right
            lower = min(last.top - last.bottom, box.top - box.bottom)
            overlap = min(last.top, box.top) - max(last.bottom, box.bottom)
            if overlap > _OVERLAP * lower and -_TOUCH * lower < gap < lower:
                touches = gap < _TOUCH * lower and not _is_note_mark(joined[-1], box)
                joined[-1] = _put_to(joined[-1], line, "" if touches else " ")
                continue
        joined.append(line)
    return joined


def _is_note_mark(line: Line, following: Box) -> bool:
    """Whether the line is but the small number of a note, whose text follows."""
    height = line.boxes[0].top - line.boxes[0].bottom
    is_small = height < _SMALL * (following.top - following.bottom)
    return is_small and len(line.cells) == 1 and len(line.cells[0]) <= _NOTE_MARK_CHARS_MAX


def _put_to(line: Line, piece: Line, between: str) -> Line:
    last, box = line.boxes[-1], piece.boxes[0]
    whole = Box(last.left, last.bottom, max(last.right, box.right), last.top)
    return Line(
        (*line.cells[:-1], line.cells[-1] + between + piece.cells[0], *piece.cells[1:]),
        (*line.boxes[:-1], whole, *piece.boxes[1:]),
    )


def _is_disordered(lines: list[Line]) -> bool:
    """Whether the next line often is above the last one, and not in a column beside it."""
    boxes = [line.boxes[0] for line in lines if line.boxes]
    climbs = sum(
        _is_above(below, above) and below.left < above.right for above, below in pairwise(boxes)
    )
    return climbs >= max(_CLIMBS_MIN, _CLIMBS_SHARE * len(boxes))


def _rows(lines: list[Line]) -> list[Line]:
    """All cells from the top down; those at one height are one line."""
    cells = [
        (box, cell) for line in lines for box, cell in zip(line.boxes, line.cells, strict=False)
    ]
    cells.sort(key=lambda placed: (-placed[0].bottom, placed[0].left))
    rows: list[list[tuple[Box, str]]] = []
    for box, cell in cells:
        if rows and _at_one_height(rows[-1][0][0], box):
            rows[-1].append((box, cell))
        else:
            rows.append([(box, cell)])
    return [_row(sorted(row, key=lambda placed: placed[0].left)) for row in rows]


def _row(placed: list[tuple[Box, str]]) -> Line:
    """The pieces as one line, those with no wide gap between them as one cell."""
    box, cell = placed[0]
    row = Line((cell,), (box,))
    for box, cell in placed[1:]:
        last = row.boxes[-1]
        piece = Line((cell,), (box,))
        if box.left - last.right < min(last.top - last.bottom, box.top - box.bottom):
            row = _put_to(row, piece, " ")
        else:
            row = Line((*row.cells, cell), (*row.boxes, box))
    return row


def _is_above(one: Box, other: Box) -> bool:
    return one.bottom - other.bottom > _ABOVE * (other.top - other.bottom)


def _at_one_height(one: Box, other: Box) -> bool:
    lower = min(one.top - one.bottom, other.top - other.bottom)
    return abs(one.bottom - other.bottom) < 0.5 * lower


def _columns_parted(lines: list[Line]) -> list[Line]:
    """Rows along a gutter become the lines left of it, then those right of it."""
    ordered: list[Line] = []
    at = 0
    while at < len(lines):
        gutter = _gutter(lines, at)
        if gutter is None:
            ordered.append(_marked(lines[at]))
            at += 1
            continue
        sides: tuple[list[Line], list[Line]] = ([], [])
        for line in lines[at : gutter.end]:
            for side, part in zip(sides, _cut(line, gutter), strict=True):
                if part.boxes:
                    side.append(part)
        # The left side has no gutter of its own at this place, the right one may.
        ordered += [*map(_marked, sides[0]), *_columns_parted(sides[1])]
        at = gutter.end
    return ordered


def _gutter(lines: list[Line], at: int) -> _Gutter | None:
    """The leftmost gutter that starts at this line, if the text on both sides reads as columns."""
    boxes = lines[at].boxes
    for before, after in islice(pairwise(boxes), _GAPS_MAX):
        first = _Gutter(before.right, after.left, at + 1)
        if not all(map(_words, _cut(lines[at], first))):
            continue
        gutter = _followed(lines, at, before.right, after.left)
        if _are_columns(lines[at : gutter.end], gutter):
            return gutter
    return None


def _followed(lines: list[Line], at: int, left: float, right: float) -> _Gutter:
    """The white space between `left` and `right`, as far down as lines leave it free."""
    end = at + 1
    both = end
    last = lines[at].boxes[0]
    for line in lines[end : at + _ROWS_MAX]:
        if not line.boxes:
            end += 1
            continue
        lefts = [box.right for box in line.boxes if box.left < left]
        rights = [box.left for box in line.boxes if box.left >= left]
        narrowed = max([left, *lefts]), min([right, *rights])
        size = line.boxes[0].top - line.boxes[0].bottom
        if _is_above(line.boxes[0], last) or narrowed[1] - narrowed[0] < 0.5 * size:
            break
        left, right = narrowed
        end += 1
        both = end
        last = line.boxes[0]
    return _Gutter(left, right, both)


def _are_columns(rows: list[Line], gutter: _Gutter) -> bool:
    """Whether the cells of enough rows have words enough on both sides: prose, not a table."""
    words, cells, full = [0, 0], [0, 0], 0
    for row in rows:
        parts = _cut(row, gutter)
        if all(part.boxes for part in parts):
            full += 1
            for side, part in enumerate(parts):
                words[side] += _words(part)
                cells[side] += len(part.cells)
    return full >= _COLUMN_ROWS_MIN and all(
        words[side] >= _COLUMN_WORDS_MIN * cells[side] for side in (0, 1)
    )


def _words(line: Line) -> int:
    return sum(any(map(str.isalpha, word)) for cell in line.cells for word in cell.split())


def _cut(line: Line, gutter: _Gutter) -> tuple[Line, Line]:
    """The cells left and right of the gutter."""
    middle = (gutter.left + gutter.right) / 2
    at = sum(box.left < middle for box in line.boxes)
    return Line(line.cells[:at], line.boxes[:at]), Line(line.cells[at:], line.boxes[at:])


def _marked(line: Line) -> Line:
    """A list's mark or number and what it marks are one cell."""
    if len(line.cells) < 2:
        return line
    mark = line.cells[0]
    is_number = mark.isdecimal() and len(line.cells) == 2
    if not mark or len(mark) > _MARK_CHARS_MAX or (mark[-1].isalnum() and not is_number):
        return line
    first = Box(
        line.boxes[0].left,
        line.boxes[1].bottom,
        line.boxes[1].right,
        line.boxes[1].top,
    )
    return Line((f"{mark} {line.cells[1]}", *line.cells[2:]), (first, *line.boxes[2:]))


def _at_edge(lines: list[Line]) -> set[int]:
    """The places of the highest and the lowest lines; of the first and the last ones if unknown."""
    shown = [at for at, line in enumerate(lines) if line.boxes]
    if 2 * len(shown) >= len(lines):
        shown.sort(key=lambda at: -lines[at].boxes[0].bottom)
    else:
        shown = [at for at, line in enumerate(lines) if line.text.strip()]
    return {*shown[:_EDGE_LINES], *shown[-_EDGE_LINES:]}


def _paragraphs(lines: list[Line]) -> list[bool]:
    """For each line, whether a wide space is above it."""
    drops = [0.0, *(_drop(above, below) for above, below in pairwise(lines))][: len(lines)]
    usual = [drop for drop in drops if drop > 0]
    wide = _PARAGRAPH * sorted(usual)[len(usual) // 2] if usual else 0.0
    heights = [
        0.0,
        *(line.boxes[0].top - line.boxes[0].bottom if line.boxes else 0 for line in lines),
    ]
    # The lines of a heading are further apart, since it is larger.
    return [
        drop > max(wide, _PARAGRAPH_HEIGHTS * height)
        for drop, height in zip(drops, heights, strict=False)
    ]


def _drop(above: Line, below: Line) -> float:
    """How far the next line is below this one; 0 where it is not."""
    if not above.boxes or not below.boxes:
        return 0.0
    return max(0.0, above.boxes[0].bottom - below.boxes[0].bottom)
