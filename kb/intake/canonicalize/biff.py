"""Which cells of an old workbook show a percentage or a currency? As their styles say.

The records of BIFF8 are walked once: [MS-XLS] names them.
"""

import struct
from collections.abc import Iterator
from typing import Final

from kb.intake.canonicalize.number_formats import PERCENT_FORMATS, Unit, unit_of

_STREAMS: Final = ("Workbook", "WORKBOOK", "workbook")
_BIFF8: Final = 0x0600
_BEGIN, _END, _FORMAT, _STYLE, _SHEET = 0x809, 0x0A, 0x41E, 0xE0, 0x85
# A cell with a number: its row, its column and its style begin the record.
_NUMBERS: Final = frozenset((0x203, 0x27E, 0x06))
_NUMBERS_IN_ROW: Final = 0xBD
_WORKSHEET: Final = 0x10
_RECORDS_MAX: Final = 4_000_000

Units = dict[int, dict[tuple[int, int], Unit]]
"""By the place of a sheet in the list of sheets, and by row and column from 0."""


def units_of(data: bytes) -> Units:
    """The units of cells; empty for a workbook of another version, or one that is damaged."""
    import io

    import olefile

    try:
        with olefile.OleFileIO(io.BytesIO(data)) as ole:
            name = next((name for name in _STREAMS if ole.exists(name)), None)
            stream = ole.openstream(name).read() if name else b""
        return _units(stream)
    except (OSError, ValueError, IndexError, OverflowError, struct.error):
        return {}


def _units(stream: bytes) -> Units:
    codes: dict[int, str] = {}
    styles: list[int] = []
    sheets: dict[int, int] = {}
    for kind, body in _records(stream, 0):
        if kind == _BEGIN and struct.unpack_from("<H", body)[0] != _BIFF8:
            return {}
        if kind == _FORMAT:
            codes[struct.unpack_from("<H", body)[0]] = _text(body[2:])
        elif kind == _STYLE:
            styles.append(struct.unpack_from("<H", body, 2)[0])
        elif kind == _SHEET:
            sheets[len(sheets)] = struct.unpack_from("<I", body)[0]
    units: dict[int, Unit] = dict(PERCENT_FORMATS)
    for number, code in codes.items():
        if (unit := unit_of(code)) is not None:
            units[number] = unit
    shown = {at: units[number] for at, number in enumerate(styles) if number in units}
    if not shown:
        return {}
    return {at: dict(_cells(stream, start, shown)) for at, start in sheets.items()}


def _cells(
    stream: bytes, start: int, shown: dict[int, Unit]
) -> Iterator[tuple[tuple[int, int], Unit]]:
    for kind, body in _records(stream, start):
        if kind in _NUMBERS:
            row, column, style = struct.unpack_from("<HHH", body)
            if style in shown:
                yield (row, column), shown[style]
        elif kind == _NUMBERS_IN_ROW:
            row, first = struct.unpack_from("<HH", body)
            for at in range((len(body) - 6) // 6):
                style = struct.unpack_from("<H", body, 4 + 6 * at)[0]
                if style in shown:
                    yield (row, first + at), shown[style]


def _records(stream: bytes, at: int) -> Iterator[tuple[int, bytes]]:
    """The records of one part of the stream, up to its end; charts in a sheet are parts in it."""
    depth = 0
    for _ in range(_RECORDS_MAX):
        if at + 4 > len(stream):
            return
        kind, size = struct.unpack_from("<HH", stream, at)
        depth += (kind == _BEGIN) - (kind == _END)
        if depth <= 1:
            yield kind, stream[at + 4 : at + 4 + size]
        if depth <= 0:
            return
        at += 4 + size


def _text(stored: bytes) -> str:
    """A string with the count of its letters and a sign of how wide they are."""
    count, wide = struct.unpack_from("<HB", stored)
    return (
        stored[3 : 3 + 2 * count].decode("utf-16-le")
        if wide & 1
        else stored[3 : 3 + count].decode("latin-1")
    )
