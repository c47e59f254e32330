"""When does it say it was written? Dates as sources write them become ISO 8601."""

import re
from datetime import date, datetime
from typing import Final

_CHARS_MAX: Final = 64
_LINE_CHARS_MAX: Final = 500
_NUMERIC: Final = re.compile(
    r"(?P<y>\d{4})(?:(?P<sep>[-/.])(?P<m>\d{1,2})(?:(?P=sep)(?P<d>\d{1,2})(?P<rest>.*))?)?",
    re.ASCII,
)
_COMPACT: Final = re.compile(r"(?P<y>\d{4})(?P<m>\d{2})(?P<d>\d{2})(?P<rest>T\d.*)?", re.ASCII)
_TIME: Final = re.compile(
    r"(?:T|\s+)(?P<h>\d{1,2}):?(?P<min>\d{2})(?::?(?P<s>\d{2})(?:[.,]\d{1,9})?)?"
    r"\s*(?P<zone>Z|[+-]\d{2}(?::?\d{2})?)?",
    re.ASCII | re.IGNORECASE,
)
_EUROPEAN: Final = re.compile(
    r"(?<!\d)(?P<d>\d{1,2})\.\s?(?P<m>\d{1,2})\.\s?(?P<y>(?:19|20)\d{2})(?!\d)", re.ASCII
)
_ISO_IN: Final = re.compile(r"(?<![\d-])(?:19|20)\d{2}-\d{2}-\d{2}(?![\d-])", re.ASCII)
_DAY_FIRST: Final = re.compile(
    r"(?:[a-z]{3,9},?\s+)?(?P<d>\d{1,2})(?:st|nd|rd|th)?\.?\s+(?P<mon>[a-z]{3,9})\.?,?\s+(?P<y>\d{4})\b",
    re.ASCII | re.IGNORECASE,
)
_MONTH_FIRST: Final = re.compile(
    r"(?:[a-z]{3,9},?\s+)?(?P<mon>[a-z]{3,9})\.?\s+(?P<d>\d{1,2})(?:st|nd|rd|th)?,?\s+(?P<y>\d{4})\b",
    re.ASCII | re.IGNORECASE,
)
# How the months begin in German, French, Spanish, Italian, Portuguese and Dutch.
_MONTHS_ELSEWHERE: Final = """
    jän ene gen janv|fév fév feb fev|mär maart mars marz març|avr abr|mai mag mei may|juin giu|juil
    lug|août aou ago|set|okt ott out|nov|dez déc dic
"""
_DAY_ELSEWHERE: Final = re.compile(
    r"(?<!\d)(?P<d>\d{1,2})(?:\.|er|º)?\s+(?:de\s+)?(?P<mon>[^\W\d_]{3,10})\.?,?\s+(?:de\s+)?"
    r"(?P<y>(?:19|20)\d{2})(?!\d)"
)
_HAN: Final = re.compile(
    r"(?P<y>(?:19|20)\d{2})[年년]\s?(?P<m>\d{1,2})[月월]\s?(?P<d>\d{1,2})[日일]"
)
_MONTH_NAMES: Final = "jan feb mar apr may jun jul aug sep oct nov dec"
_MONTHS: Final = {name: i for i, name in enumerate(_MONTH_NAMES.split(), start=1)}


def iso_date(text: str) -> str | None:
    """`text` as an ISO 8601 year, month, day or instant, whichever it names; None if none.

    Reads ISO forms, the same with slashes or dots, and English month names. Zones are kept as
    written, never converted; nothing is read from a clock.
    """
    text = " ".join(text[:_CHARS_MAX].split())
    try:
        if match := _COMPACT.fullmatch(text):
            return _day(match) + _time(match["rest"])
        if match := _NUMERIC.fullmatch(text):
            if match["d"] is not None:
                return _day(match) + _time(match["rest"])
            year = int(match["y"])
            month = match["m"]
            return date(year, int(month), 1).isoformat()[:7] if month else f"{year:04d}"
        if match := _DAY_FIRST.match(text) or _MONTH_FIRST.match(text):
            month_no = _MONTHS[match["mon"][:3].lower()]
            return date(int(match["y"]), month_no, int(match["d"])).isoformat()
    except (ValueError, KeyError):
        return None
    return None


def date_in(text: str) -> str | None:
    """The one day that stands in a line of text, in full; None if there is none, or more."""
    text = text[:_LINE_CHARS_MAX]
    days: set[str | None] = set()
    days.update(iso_date(match[0]) for match in _ISO_IN.finditer(text))
    days.update(iso_date(match[0]) for match in _MONTH_FIRST.finditer(text))
    for match in (*_EUROPEAN.finditer(text), *_HAN.finditer(text)):
        days.add(_valid(match["y"], int(match["m"]), match["d"]))
    for match in _DAY_ELSEWHERE.finditer(text):
        days.add(_valid(match["y"], _month(match["mon"].lower()), match["d"]))
    days.discard(None)
    return days.pop() if len(days) == 1 else None


def _month(name: str) -> int:
    """The number of a month by its name; 0 for any other word."""
    starts = enumerate(_MONTHS_ELSEWHERE.split("|"), start=1)
    elsewhere = (number for number, names in starts if name.startswith(tuple(names.split())))
    return next(elsewhere, _MONTHS.get(name[:3], 0))


def _valid(year: str, month: int, day: str) -> str | None:
    try:
        return date(int(year), month, int(day)).isoformat()
    except ValueError:
        return None


def _day(match: re.Match[str]) -> str:
    return date(int(match["y"]), int(match["m"]), int(match["d"])).isoformat()


def _time(rest: str | None) -> str:
    """The time part of ISO 8601; empty without one. Raises ValueError for what is no time."""
    if not rest or not rest.strip():
        return ""
    match = _TIME.fullmatch(rest)
    if match is None:
        raise ValueError(rest)
    zone = (match["zone"] or "").upper()
    if zone and zone != "Z":
        zone = zone[:3] + ":" + (zone[3:].lstrip(":") or "00")
    clock = f"{int(match['h']):02d}:{match['min']}:{match['s'] or '00'}"
    datetime.fromisoformat(f"2000-01-01T{clock}{zone}")
    return f"T{clock}{zone}"
