"""What do the sheets of a workbook say? Each a table below its name, and the places of its rows."""

from collections.abc import Iterable, Sequence
from typing import Final

from kb.intake.canonicalize.blocks import cell_text, heading, table
from kb.model.sheet import SheetRows

COLUMNS_MAX: Final = 1_024
# They are kept with the doc, which is read with each hit. A sheet without gaps has two.
_PLACES_MAX: Final = 400
_NAME_CHARS_MAX: Final = 100
# The header of a table of two columns may have one cell.
_TITLED_COLUMNS_MIN: Final = 3

Row = tuple[int, Sequence[str]]
"""The number of a row, from 1, and its cells, from the first column on."""


class Sheets:
    """Sheets as blocks of markdown, and where their rows stand in both.

    Only the first rows of a workbook with many gaps have places.
    """

    def __init__(self) -> None:
        self.blocks: list[str] = []
        self.places: list[SheetRows] = []
        self._line = 1

    def add(self, name: str, rows: Iterable[Row], notes: Iterable[str] = ()) -> None:
        """The next sheet, unless it says nothing.

        Rows of one cell above a wider table are paragraphs. The first row after them is its header.
        """
        filled = [(number, cells) for number, cells in rows if any(map(str.strip, cells))]
        columns = _columns(filled)
        titles = _titles(filled) if len(columns) >= _TITLED_COLUMNS_MIN else 0
        said = [_paragraph(cells) for _, cells in filled[:titles]]
        cells = table([cells for _, cells in filled[titles:]])
        body = list(filter(None, (*said, cells, *notes)))
        if not body:
            return
        self._add_block(heading(1, name))
        at = [self._line + 2 * number for number in range(titles)]
        if cells:
            # The header has a line of dashes below it.
            first = self._line + 2 * titles
            at += [first, *range(first + 2, first + len(filled) - titles + 1)]
        if columns:
            left, right = column_name(columns[0]), column_name(columns[-1])
            sheet = " ".join(name.split())[:_NAME_CHARS_MAX]
            self._place(sheet, left, right, [number for number, _ in filled], at)
        for block in body:
            self._add_block(block)

    def _add_block(self, block: str) -> None:
        if block:
            self.blocks.append(block)
            # Blocks are parted by an empty line.
            self._line += block.count("\n") + 2

    def _place(
        self, sheet: str, left: str, right: str, numbers: Sequence[int], lines: Sequence[int]
    ) -> None:
        """Where rows with these numbers stand, as runs of both numbers and lines."""
        first = 0
        for at in range(1, len(numbers) + 1):
            if at < len(numbers) and (numbers[at], lines[at]) == (
                numbers[at - 1] + 1,
                lines[at - 1] + 1,
            ):
                continue
            if len(self.places) == _PLACES_MAX:
                return
            self.places.append(
                SheetRows(
                    sheet=sheet,
                    left=left,
                    right=right,
                    row=numbers[first],
                    line=lines[first],
                    count=at - first,
                )
            )
            first = at


def _paragraph(cells: Sequence[str]) -> str:
    """A row as a paragraph, whose first sign means nothing to markdown."""
    text = cell_text(" ".join(cells))
    return "\\" + text if text.startswith(("#", "`", "~", ">")) else text


def _columns(filled: Sequence[Row]) -> list[int]:
    """The columns that have a value, in order."""
    return sorted({at for _, cells in filled for at, cell in enumerate(cells) if cell.strip()})


def _titles(filled: Sequence[Row]) -> int:
    """How many of the first rows have one cell alone."""
    is_alone = (sum(map(bool, map(str.strip, cells))) == 1 for _, cells in filled)
    return next((number for number, alone in enumerate(is_alone) if not alone), 0)


def column_name(at: int) -> str:
    """What sheets call a column, counted from 0: `A`, `Z`, `AA`."""
    name = ""
    at += 1
    while at:
        at, letter = divmod(at - 1, 26)
        name = chr(65 + letter) + name
    return name
