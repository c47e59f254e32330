"""What does a reader of PDFs find on a page? Its lines with their places, and what is pinned on."""

import re
from typing import Final, Protocol, Self

from msgspec import Struct

from kb.intake.canonicalize.decode import clean_text

CELL_MARK: Final = " | "
# Typesetting, not spelling: one glyph for letters that a search types one by one.
_LIGATURES: Final = str.maketrans(
    {"ﬀ": "ff", "ﬁ": "fi", "ﬂ": "fl", "ﬃ": "ffi", "ﬄ": "ffl", "ﬅ": "st", "ﬆ": "st"}
)
_LIGATURE: Final = re.compile("[ﬀ-ﬆ]")


class Box(Struct, frozen=True):
    """A rectangle on the page, in points from its lower left corner."""

    left: float
    bottom: float
    right: float
    top: float


class Line(Struct, frozen=True):
    """A line of text; its cells where wide gaps part it, else one cell that is all of it."""

    cells: tuple[str, ...]
    boxes: tuple[Box, ...]
    """One for each cell; none where the reader does not know where the line is."""

    @property
    def text(self) -> str:
        """All cells, as a line of a table where there are several."""
        return CELL_MARK.join(filter(None, self.cells))


class PdfPage(Struct, frozen=True, kw_only=True):
    """A page as a reader gives it, in the order of its content."""

    lines: list[Line]
    pinned: tuple[str, ...] = ()
    """What stands in fields of forms and in notes on the page, a line each."""


class Bookmark(Struct, frozen=True, kw_only=True):
    """An entry of the table of contents that the file carries for its viewer."""

    level: int
    """From 0 on."""
    title: str
    page: int
    """From 0 on."""


class PdfFacts(Struct, frozen=True, kw_only=True):
    """What the file says of itself."""

    title: str = ""
    date: str = ""
    """As it is written there."""
    attached: tuple[str, ...] = ()
    """Names of the files in it."""
    bookmarks: tuple[Bookmark, ...] = ()
    """In the order of the file."""


class PdfFile(Protocol):
    """An open PDF. Any method may raise anything on a bad file; `close` raises nothing."""

    @property
    def page_count(self) -> int:
        """How many pages it says it has."""
        ...

    def read_page(self, number: int) -> PdfPage:
        """The page of that number, from 0 on."""
        ...

    def facts(self) -> PdfFacts:
        """What it says of itself."""
        ...

    def close(self) -> None:
        """Free what it holds."""
        ...

    def __enter__(self) -> Self:
        """The file itself."""
        ...

    def __exit__(self, *_: object) -> None:
        """As `close`."""
        ...


def clean_line(text: str) -> str:
    """The text with ligatures spelled out, controls and spaces at its end gone."""
    text = clean_text(text).replace("\n", " ")
    if not text.isascii() and _LIGATURE.search(text):
        text = text.translate(_LIGATURES)
    return text.rstrip()
