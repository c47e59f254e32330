"""What does a workbook say? Each sheet as a table below its name."""

import re
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from kb.errors import Unparsable
from kb.intake.canonicalize.archive import ZippedDocument, attribute
from kb.intake.canonicalize.blocks import core_properties, finish, without_text
from kb.intake.canonicalize.parsers import TEXT_CHARS_MAX, TextTooLong
from kb.intake.canonicalize.sheets import COLUMNS_MAX, Row, Sheets
from kb.model.text import Canonical

if TYPE_CHECKING:
    from lxml.etree import _Element

MIME: Final = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
CELLS_MAX: Final = 2_000_000
_COLUMN: Final = re.compile(r"([A-Z]{1,3})[0-9]{1,7}$")
_DATE_FORMATS: Final = frozenset([*range(14, 23), *range(27, 37), *range(45, 48), *range(50, 59)])
_PERCENT_FORMATS: Final = {"9": 0, "10": 2}
_PERCENT: Final = re.compile(r"[0#](?:\.([0#?]{1,15}))? ?%")
# `"€"`, `[$€-407]`, `[$CHF]` or a bare sign; a sign on its own depends on the reader's system.
_CURRENCY: Final = re.compile(r"\[\$([^\]-]{1,8})[^\]]*\]|\"? ?([$€£¥₹₽₩]) ?\"?")
_FORMAT_NOISE: Final = re.compile(r'"[^"]*"|\[[^\]]*\]|\\.')
_DATE_LETTERS: Final = re.compile(r"[ymdhs]", re.IGNORECASE)
_EPOCH: Final = datetime(1899, 12, 30)
_EPOCH_1904_DAYS: Final = 1_462
_DAYS_MAX: Final = 2_958_465


def read(data: bytes, name: str, charset: str | None = None) -> Canonical:  # noqa: ARG001
    """Every sheet in order, by its stored values; the first row that is not empty is its header.

    Dates are ISO 8601, shares have
    their percent sign and amounts their currency; other numbers stand as they are stored. A
    workbook without values is known by its name.

    Raises:
        Encrypted: it needs a password.
        Unparsable: it is damaged, has too many cells, or unpacks to far more than its size.
    """
    archive = ZippedDocument(data, name)
    main = next(
        (part for kind, part in archive.relations("").values() if kind == "officeDocument"),
        "xl/workbook.xml",
    )
    root = archive.need_xml(main)
    related = archive.relations(main)
    book = _Book(archive, root, dict(related.values()))
    sheets = Sheets()
    for sheet in root.iter("{*}sheet"):
        target = related.get(
            sheet.get("{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id")
            or attribute(sheet, "id"),
            ("", ""),
        )[1]
        page = archive.xml(target)
        if page is None:
            continue
        sheets.add(sheet.get("name", ""), book.rows(page), _comments(archive, target))
    title, date = core_properties(archive)
    return finish(
        sheets.blocks,
        name,
        MIME,
        title=title,
        date=date,
        sheet_rows=sheets.places,
        is_titled=False,
        wordless=without_text("Workbook", archive),
    )


class _Book:
    """What the cells of all sheets refer to."""

    def __init__(self, archive: ZippedDocument, root: "_Element", related: dict[str, str]) -> None:
        self._name = archive.name
        self._cells = self._chars = 0
        strings = archive.xml(related.get("sharedStrings", ""))
        self._strings = [] if strings is None else [_rich(item) for item in strings]
        styles = archive.xml(related.get("styles", ""))
        self._dates = set() if styles is None else _date_styles(styles)
        self._units = {} if styles is None else _unit_styles(styles)
        properties = root.find("{*}workbookPr")
        is_1904 = properties is not None and properties.get("date1904") in {"1", "true"}
        self._offset = _EPOCH_1904_DAYS if is_1904 else 0

    def rows(self, sheet: "_Element") -> list[Row]:
        """The rows that have values; no empty row or column is made."""
        rows: list[Row] = []
        number = 0
        for row in sheet.iter("{*}row"):
            number = _row_number(row.get("r", ""), number + 1)
            cells: list[str] = []
            for cell in row.iterchildren("{*}c"):
                text = self._text(cell)
                if not text:
                    continue
                at = _column(cell.get("r", ""), len(cells))
                if at >= COLUMNS_MAX:
                    continue
                cells += [""] * (at - len(cells) + 1)
                cells[at] = text
                self._chars += len(text)
            self._cells += len(cells)
            if self._cells > CELLS_MAX:
                raise Unparsable(f"it has more than {CELLS_MAX} cells; split it", source=self._name)
            if self._chars > TEXT_CHARS_MAX:
                # One string may stand in all of them.
                raise TextTooLong
            if cells:
                rows.append((number, cells))
        return rows

    def _text(self, cell: "_Element") -> str:
        kind = cell.get("t", "n")
        inline = cell.find("{*}is")
        if kind == "inlineStr" and inline is not None:
            return _rich(inline)
        value = cell.find("{*}v")
        text = (value.text or "") if value is not None else ""
        if kind == "s":
            at = int(text) if text.isascii() and text.isdecimal() and len(text) < 9 else -1
            return self._strings[at] if 0 <= at < len(self._strings) else ""
        if kind == "b":
            return "TRUE" if text == "1" else "FALSE"
        return self._number(text, cell.get("s", "0")) if kind == "n" else text

    def _number(self, text: str, style: str) -> str:
        try:
            value = float(text)
        except ValueError:
            return text
        if style in self._dates and 0 <= value + self._offset <= _DAYS_MAX:
            when = _EPOCH + timedelta(days=self._offset, seconds=round(value * 86_400))
            if value < 1:
                return when.time().isoformat()
            day = when.date().isoformat()
            return day if value == int(value) else f"{day} {when.time().isoformat()}"
        unit = self._units.get(style, "")
        if isinstance(unit, int):
            return f"{value:.{unit}%}"
        return unit + (repr(value).removesuffix(".0") if "." in text else text)


def _rich(item: "_Element") -> str:
    """The words of a string, without its phonetic reading."""
    return "".join(
        run.text or ""
        for run in item.iter("{*}t")
        if next(run.iterancestors("{*}rPh"), None) is None
    )


def _row_number(reference: str, default: int) -> int:
    is_number = reference.isascii() and reference.isdecimal() and len(reference) < 9
    return int(reference) if is_number else default


def _column(reference: str, default: int) -> int:
    match = _COLUMN.match(reference)
    if match is None:
        return default
    number = 0
    for letter in match[1]:
        number = number * 26 + ord(letter) - 64
    return number - 1


def _date_styles(styles: "_Element") -> set[str]:
    """The numbers of the cell styles that show a date or a time."""
    own = {
        form.get("numFmtId", "")
        for form in styles.iter("{*}numFmt")
        if _DATE_LETTERS.search(_FORMAT_NOISE.sub("", form.get("formatCode", "")))
        and "general" not in form.get("formatCode", "").lower()
    }
    dates = own | {str(number) for number in _DATE_FORMATS}
    found = styles.find("{*}cellXfs")
    forms = () if found is None else found
    return {str(i) for i, form in enumerate(forms) if form.get("numFmtId") in dates}


def _unit_styles(styles: "_Element") -> dict[str, int | str]:
    """By the number of a cell style: the decimals of a percentage, or the currency."""
    units: dict[str, int | str] = dict(_PERCENT_FORMATS)
    for form in styles.iter("{*}numFmt"):
        # A format may have sections, of which the first is for positive numbers.
        code = form.get("formatCode", "").partition(";")[0]
        if percent := _PERCENT.search(code):
            units[form.get("numFmtId", "")] = len(percent[1] or "")
        elif currency := _CURRENCY.search(code):
            sign = (currency[1] or currency[2]).strip()
            units[form.get("numFmtId", "")] = sign + " " if sign.isalpha() else sign
    found = styles.find("{*}cellXfs")
    forms = (form.get("numFmtId", "") for form in (() if found is None else found))
    return {str(i): units[number] for i, number in enumerate(forms) if number in units}


def _comments(archive: ZippedDocument, sheet: str) -> list[str]:
    lines: list[str] = []
    for kind, part in archive.relations(sheet).values():
        root = archive.xml(part) if kind == "comments" else None
        notes = () if root is None else root.iter("{*}comment")
        lines += [f"- {note.get('ref', '')}: {' '.join(_rich(note).split())}" for note in notes]
    return lines
