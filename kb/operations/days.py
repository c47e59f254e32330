"""Days as people say them: `last week`, `3 days ago`, `2026-10`. Pure."""

import datetime as dt
import re
from collections.abc import Mapping
from typing import Any, Final

from kb.errors import UsageError
from kb.model.search import DATE_FORM

Span = tuple[str, str]
"""The first and the last day, month or year."""

_FORM: Final = f"{DATE_FORM}, or as yesterday, monday, last week, last 7 days or 3 days ago"
_AGO: Final = re.compile(r"(\d{1,4}|an?|one|two|three) (day|week|month|year)s? ago")
_LAST_DAYS: Final = re.compile(r"(?:the )?(?:last|past) (\d{1,4}) (day|week|month|year)s?")
_PERIOD: Final = re.compile(r"(this|last|past) (week|month|year)")
_WORDS: Final = {"a": 1, "an": 1, "one": 1, "two": 2, "three": 3}
_WEEKDAYS: Final = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")


def with_days(options: Mapping[str, Any], today: dt.date) -> dict[str, Any]:
    """Options with `since` and `until` as requests have them; `on` a period is from and to it.

    Raises UsageError for words that are no date.
    """
    changed = dict(options)
    spans = {
        name: _span(options[name], today, f"--{name}")
        for name in ("since", "until", "on")
        if options[name]
    }
    on = spans.pop("on", None)
    firsts = [span[0] for span in (spans.get("since"), on) if span]
    lasts = [span[1] for span in (spans.get("until"), on) if span]
    changed["since"] = max(firsts, default=None)
    changed["until"] = min(lasts, default=None)
    return changed


def _span(words: str, today: dt.date, named: str) -> Span:
    # The request judges what begins as a date does.
    return (words, words) if words[:4].isdigit() else span_of(words, today, named)


def span_of(words: str, today: dt.date, named: str) -> Span:
    """The days that words mean, seen from today. Raises UsageError, which starts with `named`."""
    said = " ".join(words.casefold().split())
    for way in (_day, _ago, _last_days, _period):
        try:
            span = way(said, today)
        except (OverflowError, ValueError):
            span = None
        if span is not None:
            return span
    raise UsageError(f"{named}: {_FORM}")


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
    match = _AGO.fullmatch(said)
    if match is None:
        return None
    day = _back(today, _WORDS.get(match[1]) or int(match[1]), match[2]).isoformat()
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
