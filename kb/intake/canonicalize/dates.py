"""When does it say it was written? Dates as sources write them become ISO 8601."""

import re
from datetime import date, datetime
from typing import Final

_CHARS_MAX: Final = 64
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
_DAY_FIRST: Final = re.compile(
    r"(?:[a-z]{3,9},?\s+)?(?P<d>\d{1,2})(?:st|nd|rd|th)?\.?\s+(?P<mon>[a-z]{3,9})\.?,?\s+(?P<y>\d{4})\b",
    re.ASCII | re.IGNORECASE,
)
_MONTH_FIRST: Final = re.compile(
    r"(?:[a-z]{3,9},?\s+)?(?P<mon>[a-z]{3,9})\.?\s+(?P<d>\d{1,2})(?:st|nd|rd|th)?,?\s+(?P<y>\d{4})\b",
    re.ASCII | re.IGNORECASE,
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
