"""Where in its file does a chunk stand that has no page? Its cells, its slide, its time."""

import re
from typing import Final

from kb.model.doc import Doc
from kb.model.sheet import cells_at
from kb.model.text import Chunk

_SLIDE_MIMES: Final = frozenset(
    (
        "application/vnd.openxmlformats-officedocument.presentationml.presentation",
        "application/vnd.oasis.opendocument.presentation",
        "application/vnd.ms-powerpoint",
    )
)
_SUBTITLE_MIMES: Final = frozenset(("application/x-subrip", "text/vtt"))
_TIME: Final = r"(?m)^\[(\d{1,3}:\d\d:\d\d)\] "
_SLIDE: Final = r"(?m)^# Slide (\d{1,6})(?=:|$)"


def locator_of(doc: Doc, first: Chunk, text: str) -> str | None:
    """`Costs!A1:F40` of a workbook, `slides 3 to 5` of a show, `at 0:27:18` of a film; else None.

    A show in a pack is markdown, whose headings are told by their form.

    `text` begins with the chunk `first`, and may go on after it.
    """
    if doc.sheet_rows:
        return cells_at(doc.sheet_rows, first.line, first.line + text.count("\n"))
    if doc.mime in _SUBTITLE_MIMES:
        time = re.search(_TIME, text)
        return f"at {time[1]}" if time else None
    if doc.mime not in _SLIDE_MIMES and doc.pack is None:
        return None
    headings = [f"# {part}" for part in first.heading[:1]]
    numbers = re.findall(_SLIDE, "\n".join((*headings, text)))
    if not numbers:
        return None
    low, high = numbers[0], numbers[-1]
    return f"slide {low}" if low == high else f"slides {low} to {high}"
