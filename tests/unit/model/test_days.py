"""Days in words, seen from one day."""

import datetime as dt

import pytest

from kb.errors import UsageError
from kb.model.days import span_of
from kb.operations.days import with_days

TODAY = dt.date(2026, 3, 31)  # a Tuesday


@pytest.mark.parametrize(
    ("words", "first", "last"),
    [
        ("today", "2026-03-31", "2026-03-31"),
        ("Yesterday", "2026-03-30", "2026-03-30"),
        ("monday", "2026-03-30", "2026-03-30"),
        ("tuesday", "2026-03-24", "2026-03-24"),
        ("last friday", "2026-03-27", "2026-03-27"),
        ("3 days ago", "2026-03-28", "2026-03-28"),
        ("a week ago", "2026-03-24", "2026-03-24"),
        ("1 month ago", "2026-02-28", "2026-02-28"),
        ("2 years ago", "2024-03-31", "2024-03-31"),
        ("last  week", "2026-03-23", "2026-03-29"),
        ("this week", "2026-03-30", "2026-04-05"),
        ("last month", "2026-02", "2026-02"),
        ("this year", "2026", "2026"),
        ("last year", "2025", "2025"),
        ("last 7 days", "2026-03-25", "2026-03-31"),
        ("7d", "2026-03-24", "2026-03-24"),
        ("2w", "2026-03-17", "2026-03-17"),
        ("1M", "2026-02-28", "2026-02-28"),
        ("1y", "2025-03-31", "2025-03-31"),
        ("2026-02-28", "2026-02-28", "2026-02-28"),
        ("2026-02-28T10:00", "2026-02-28", "2026-02-28"),
        ("2026-02-28 23:59:59.5Z", "2026-02-28", "2026-02-28"),
        ("2026-02-28T10:00:00+05:30", "2026-02-28", "2026-02-28"),
        (" 2026-02 ", "2026-02", "2026-02"),
    ],
)
def test_words_are_days(words: str, first: str, last: str) -> None:
    """A period has a first and a last day; months and years stand for all of theirs."""
    assert span_of(words, TODAY, "--on") == (first, last)


@pytest.mark.parametrize(
    "words",
    [
        "soon",
        "",
        "2026-13",
        "2026-1",
        "20261",
        "٢٠٢٦",
        "9999 years ago",
        "last fortnight",
        "0",
        "-1 days ago",
        "7",
        "7h",
        "-7d",
        "9999y",
        "2026-02T10:00",
        "2026-02-28T",
        "2026-02-28T25:00",
        "2026-02-28T10:60",
    ],
)
def test_what_is_no_day(words: str) -> None:
    """The refusal names the option."""
    with pytest.raises(UsageError, match=r"^--on: a date is written as"):
        span_of(words, TODAY, "--on")


def test_options_become_dates() -> None:
    """`on` a period is from its first to its last day, within what else is asked."""
    options = {"since": "2026-03-25", "until": None, "on": "last week", "k": 3}
    expected = {**options, "since": "2026-03-25", "until": "2026-03-29"}
    assert with_days(options, TODAY) == expected
    options = {"since": "2026", "until": "", "on": "2026-02"}
    assert with_days(options, TODAY) == {"since": "2026-02", "until": "2026-02", "on": "2026-02"}
