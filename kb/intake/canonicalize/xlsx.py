"""What does a workbook say? Each sheet as a table below its name."""

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final

from kb.errors import Unparsable
from kb.intake.canonicalize.archive import ZippedDocument, attribute, local
from kb.intake.canonicalize.blocks import core_properties, finish, without_text
from kb.intake.canonicalize.number_formats import (
    PERCENT_FORMATS,
    Unit,
    elapsed,
    is_elapsed,
    unit_of,
    with_unit,
)
from kb.intake.canonicalize.parsers import TEXT_CHARS_MAX, TextTooLong
from kb.intake.canonicalize.sheets import COLUMNS_MAX, Row, Sheets
from kb.model.text import Canonical

if TYPE_CHECKING:
    from lxml.etree import _Element

_DRAWING: Final = "http://schemas.openxmlformats.org/drawingml/2006/main"
MIME: Final = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
CELLS_MAX: Final = 2_000_000
_COLUMN: Final = re.compile(r"([A-Z]{1,3})[0-9]{1,7}$")
_DATE_FORMATS: Final = frozenset([*range(14, 23), *range(27, 37), *range(45, 48), *range(50, 59)])
_ELAPSED_FORMAT: Final = "46"
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
        beside = [*_boxes(archive, target), *_comments(archive, target)]
        sheets.add(sheet.get("name", ""), book.rows(page), beside)
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
        self._elapsed = set() if styles is None else _elapsed_styles(styles)
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
        if style in self._elapsed and 0 <= value <= _DAYS_MAX:
            return elapsed(value)
        if style in self._dates and 0 <= value + self._offset <= _DAYS_MAX:
            when = _EPOCH + timedelta(days=self._offset, seconds=round(value * 86_400))
            if value < 1:
                return when.time().isoformat()
            day = when.date().isoformat()
            return day if value == int(value) else f"{day} {when.time().isoformat()}"
        text = repr(value).removesuffix(".0") if "." in text else text
        return with_unit(text, value, self._units.get(style))


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
    return _styles_with(styles, own | {str(number) for number in _DATE_FORMATS})


def _elapsed_styles(styles: "_Element") -> set[str]:
    """The numbers of the cell styles that show a length of time."""
    own = {
        form.get("numFmtId", "")
        for form in styles.iter("{*}numFmt")
        if is_elapsed(form.get("formatCode", ""))
    }
    return _styles_with(styles, own | {_ELAPSED_FORMAT})


def _styles_with(styles: "_Element", formats: set[str]) -> set[str]:
    found = styles.find("{*}cellXfs")
    forms = () if found is None else found
    return {str(i) for i, form in enumerate(forms) if form.get("numFmtId") in formats}


def _unit_styles(styles: "_Element") -> dict[str, Unit]:
    """By the number of a cell style: the decimals of a percentage, or the currency."""
    units: dict[str, Unit] = {str(number): unit for number, unit in PERCENT_FORMATS.items()}
    for form in styles.iter("{*}numFmt"):
        if (unit := unit_of(form.get("formatCode", ""))) is not None:
            units[form.get("numFmtId", "")] = unit
    found = styles.find("{*}cellXfs")
    forms = (form.get("numFmtId", "") for form in (() if found is None else found))
    return {str(i): units[number] for i, number in enumerate(forms) if number in units}


def _comments(archive: ZippedDocument, sheet: str) -> list[str]:
    """The notes of cells; of a thread what each person said, not Excel's advice beside it."""
    notes: dict[str, list[str]] = {}
    threads: dict[str, list[str]] = {}
    for kind, part in archive.relations(sheet).values():
        root = archive.xml(part) if kind in ("comments", "threadedComment") else None
        for note in () if root is None else root.iter("{*}comment", "{*}threadedComment"):
            texts = notes if local(note) == "comment" else threads
            words = _rich(note) if texts is notes else "".join(_said(note))
            texts.setdefault(note.get("ref", ""), []).append(" ".join(words.split()))
    return [f"- {ref}: {text}" for ref, said in (notes | threads).items() for text in said]


def _said(comment: "_Element") -> Iterator[str]:
    return (text.text or "" for text in comment.iterchildren("{*}text"))


def _boxes(archive: ZippedDocument, sheet: str) -> list[str]:
    """The words of the text boxes and shapes that lie on a sheet."""
    texts: list[str] = []
    for kind, part in archive.relations(sheet).values():
        root = archive.xml(part) if kind == "drawing" else None
        # The second form of a shape says the same again.
        texts += (
            "".join(text.text or "" for text in paragraph.iter("{*}t"))
            for paragraph in (() if root is None else root.iter(f"{{{_DRAWING}}}p"))
            if next(paragraph.iterancestors("{*}Fallback"), None) is None
        )
    return [" ".join(text.split()) for text in texts if text.strip()]
