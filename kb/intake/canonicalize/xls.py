"""What does a workbook of an old Excel say? Each sheet as a table below its name, as of xlsx."""

import io
from collections.abc import Mapping
from datetime import date, datetime, time, timedelta
from itertools import islice
from typing import TYPE_CHECKING, Final

from kb.errors import Encrypted, Unparsable
from kb.intake.canonicalize.biff import units_of
from kb.intake.canonicalize.blocks import finish
from kb.intake.canonicalize.number_formats import Unit, elapsed, with_unit
from kb.intake.canonicalize.sheets import COLUMNS_MAX, Row, Sheets
from kb.intake.canonicalize.xlsx import CELLS_MAX
from kb.model.text import Canonical

if TYPE_CHECKING:
    from python_calamine import CalamineSheet

MIME: Final = "application/vnd.ms-excel"

Cell = int | float | str | bool | time | date | datetime | timedelta


def read(data: bytes, name: str, charset: str | None = None) -> Canonical:  # noqa: ARG001
    """Every sheet in order, by its stored values; the first row that is not empty is its header.

    Dates are ISO 8601, shares have their percent sign and amounts their currency; other numbers
    stand as they are stored.

    Raises:
        Encrypted: it needs a password.
        Unparsable: it is damaged, or has too many cells.
    """
    from python_calamine import CalamineError, CalamineWorkbook, PasswordError

    try:
        book = CalamineWorkbook.from_filelike(io.BytesIO(data))
        sheets = Sheets()
        left = CELLS_MAX
        units = units_of(data)
        for at, title in enumerate(book.sheet_names):
            rows = _rows(book.get_sheet_by_name(title), left, units.get(at, {}))
            left -= sum(len(cells) for _, cells in rows)
            if left <= 0:
                raise Unparsable(f"it has more than {CELLS_MAX} cells; split it", source=name)
            sheets.add(title, rows)
    except PasswordError:
        raise Encrypted("it needs a password; save it without one", source=name) from None
    except CalamineError:
        raise Unparsable("it is damaged; save it again as xlsx", source=name) from None
    return finish(
        sheets.blocks,
        name,
        MIME,
        sheet_rows=sheets.places,
        is_titled=False,
        wordless="Workbook without text",
    )


def _rows(
    sheet: "CalamineSheet", cells_max: int, units: Mapping[tuple[int, int], Unit]
) -> list[Row]:
    """The rows that have values, until there are too many."""
    rows: list[Row] = []
    count = 0
    for number, row in enumerate(sheet.iter_rows(), start=1):
        cells = [
            _text(cell, units.get((number - 1, at)))
            for at, cell in enumerate(islice(row, COLUMNS_MAX))
        ]
        while cells and not cells[-1]:
            cells.pop()
        if cells:
            rows.append((number, cells))
            count += len(cells)
            if count > cells_max:
                break
    return rows


def _text(cell: Cell, unit: Unit | None) -> str:
    match cell:
        case bool():
            return "TRUE" if cell else "FALSE"
        case float() | int():
            return with_unit(repr(cell).removesuffix(".0"), cell, unit)
        case timedelta():
            return elapsed(cell.total_seconds() / 86_400)
        case datetime():
            return cell.isoformat(" ").removesuffix(" 00:00:00")
        case date() | time():
            return cell.isoformat()
        case _:
            return str(cell)
