"""Days as people say them: `last week`, `3 days ago`, `7d`, `2026-10`. Pure."""

import datetime as dt
import re
from typing import Final, TypeVar

import msgspec

from kb.errors import UsageError
from kb.model.search import DATE_FORM, Filters

F = TypeVar("F", bound=Filters)
Span = tuple[str, str]
"""The first and the last day, month or year."""

_DATE: Final = re.compile(r"\d{4}(-(0[1-9]|1[0-2])(-(0[1-9]|[12]\d|3[01]))?)?", re.ASCII)
_TIME: Final = re.compile(
    r"(.{10})[t ]([01]\d|2[0-3]):[0-5]\d(:[0-5]\d([.,]\d{1,9})?)?(z|[+-]\d\d(:?\d\d)?)?", re.ASCII
)
_SPAN: Final = re.compile(r"(\d{1,4})([dwmy])", re.ASCII)
_UNITS: Final = {"d": "day", "w": "week", "m": "month", "y": "year"}
_AGO: Final = re.compile(r"(\d{1,4}|an?|one|two|three) (day|week|month|year)s? ago")
_LAST_DAYS: Final = re.compile(r"(?:the )?(?:last|past) (\d{1,4}) (day|week|month|year)s?")
_PERIOD: Final = re.compile(r"(this|last|past) (week|month|year)")
_WORDS: Final = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3}
_WEEKDAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


def dated(filters: F, today: dt.date) -> F:
    """The filters with `since` and `until` as dates. Raises UsageError, which names the field."""
    since, until = filters.since, filters.until
    return msgspec.structs.replace(
        filters,
        since=span_of(since, today, "field `since`")[0] if since is not None else None,
        until=span_of(until, today, "field `until`")[1] if until is not None else None,
    )


def span_of(words: str, today: dt.date, named: str) -> Span:
    """The days that words mean, seen from today. Raises UsageError, which starts with `named`."""
    span = find_span(words, today)
    if span is None:
        raise UsageError(f"{named}: {DATE_FORM}")
    return span


def find_span(words: str, today: dt.date) -> Span | None:
    """The days that words mean, seen from today; None where they mean none."""
    said = " ".join(words.casefold().split())
    for way in (_date, _day, _ago, _last_days, _period):
        try:
            span = way(said, today)
        except (OverflowError, ValueError):
            span = None
        if span is not None:
            return span
    return None


def _date(said: str, _: dt.date) -> Span | None:
    timed = _TIME.fullmatch(said)
    date = timed[1] if timed else said
    return (date, date) if _DATE.fullmatch(date) else None


def _day(said: str, today: dt.date) -> Span | None:
    days = {"today": 0, "yesterday": 1}
    weekday = said.removeprefix("last ").removeprefix("on ")
    if weekday in _WEEKDAYS:
        # The last one that is over.
        days[said] = (today.weekday() - _WEEKDAYS.index(weekday) - 1) % 7 + 1
    if said not in days:
        return None
    day = (today - dt.timedelta(days=days[said])).isoformat()
    return day, day


def _ago(said: str, today: dt.date) -> Span | None:
    match = _AGO.fullmatch(said) or _SPAN.fullmatch(said)
    if match is None:
        return None
    count = _WORDS.get(match[1]) or int(match[1])
    day = _back(today, count, _UNITS.get(match[2], match[2])).isoformat()
    return day, day


def _last_days(said: str, today: dt.date) -> Span | None:
    match = _LAST_DAYS.fullmatch(said)
    if match is None:
        return None
    start = _back(today, int(match[1]), match[2])
    return (start + dt.timedelta(days=1)).isoformat(), today.isoformat()


def _period(said: str, today: dt.date) -> Span | None:
    match = _PERIOD.fullmatch(said)
    if match is None:
        return None
    back = 0 if match[1] == "this" else 1
    if match[2] == "week":
        monday = today - dt.timedelta(days=today.weekday() + 7 * back)
        return monday.isoformat(), (monday + dt.timedelta(days=6)).isoformat()
    start = _back(today.replace(day=1), back, match[2])
    whole = start.isoformat()[:7] if match[2] == "month" else f"{start.year:04d}"
    return whole, whole


def _back(day: dt.date, count: int, unit: str) -> dt.date:
    """A day so many units earlier; of a month that is too short its last day."""
    if unit in ("day", "week"):
        return day - dt.timedelta(days=count * (7 if unit == "week" else 1))
    months = day.year * 12 + day.month - 1 - count * (12 if unit == "year" else 1)
    for last in range(day.day, 27, -1):
        try:
            return dt.date(months // 12, months % 12 + 1, last)
        except ValueError:
            continue
    return dt.date(months // 12, months % 12 + 1, day.day)
