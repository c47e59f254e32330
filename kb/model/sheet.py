"""Where in a workbook do the rows of a markdown table stand?"""

import re
from collections.abc import Iterable
from typing import Final

from msgspec import Struct

_PLAIN_NAME: Final = r"\w+"
_NAMED_MAX: Final = 3


class SheetRows(Struct, frozen=True, kw_only=True):
    """Rows of a sheet that follow each other, and the lines of the markdown that hold them."""

    sheet: str
    left: str
    """The first column of the sheet that has a value, such as `A`."""
    right: str
    row: int
    """The number of the first row, from 1, as the sheet counts."""
    line: int
    """The line of the markdown that holds it, from 1; each row is a line."""
    count: int


def cells_at(rows: Iterable[SheetRows], first_line: int, last_line: int) -> str | None:
    """The cells that some lines of the markdown hold, as `Costs!A1:F40`; None if they hold none.

    Of more than three sheets the first three are named.
    """
    ranges: dict[tuple[str, str, str], tuple[int, int]] = {}
    for part in rows:
        low, high = max(part.line, first_line), min(part.line + part.count - 1, last_line)
        if low > high:
            continue
        first, last = part.row + low - part.line, part.row + high - part.line
        key = (part.sheet, part.left, part.right)
        ranges[key] = (ranges[key][0] if key in ranges else first, last)
    named = [
        f"{_quoted(sheet)}!{left}{first}:{right}{last}"
        for (sheet, left, right), (first, last) in ranges.items()
    ]
    return ", ".join(named[:_NAMED_MAX]) or None


def _quoted(sheet: str) -> str:
    """A name as formulas write it: in quotes unless it is one word."""
    return sheet if re.fullmatch(_PLAIN_NAME, sheet) else "'" + sheet.replace("'", "''") + "'"
