"""Docs by their own dates, of a day, a month or a year."""

import datetime as dt
import random
from pathlib import Path

import msgspec
import pytest
from commands import Home
from homes import SmallHome

from kb.model.doc import OPERATOR
from kb.model.search import Filters
from kb.search.filters import allowed_sources, matches_filters
from kb.store.docs import is_dated

FIRST, LAST = dt.date(2023, 11, 1), dt.date(2025, 2, 28)
DAYS = [FIRST + dt.timedelta(n) for n in range((LAST - FIRST).days + 1)]
LENGTHS = (4, 7, 10)


def days_of(date: str) -> set[dt.date]:
    """The days that a date may be."""
    return {day for day in DAYS if day.isoformat().startswith(date)}


def test_a_date_is_within_where_one_of_its_days_is() -> None:
    """Against the days themselves, dates and limits cut to a day, a month or a year."""
    draw = random.Random(2026)
    for _ in range(300):
        date, since, until = (
            draw.choice(DAYS).isoformat()[: draw.choice(LENGTHS)] for _ in range(3)
        )
        for filters in (
            Filters(since=since),
            Filters(until=until),
            Filters(since=since, until=until),
        ):
            first = min(days_of(filters.since)) if filters.since else FIRST
            last = max(days_of(filters.until)) if filters.until else LAST
            may_be = any(first <= day <= last for day in days_of(date)) and first <= last
            if first <= last:
                assert is_dated(date, filters) is may_be, (date, filters)
    assert not is_dated(None, Filters(since="2023"))


@pytest.mark.parametrize("text", ["2024-13", "2024-00", "2024-01-32", "2024-1", "24", "x"])
def test_what_is_no_date_is_refused(tmp_path: Path, text: str) -> None:
    """A month has a number from 1 to 12, a day from 1 to 31."""
    result = Home(tmp_path).run("search", "keel", "--since", text)
    assert result.code == 2
    assert "--since" in result.err


def test_the_facets_let_through_what_the_docs_do(tmp_path: Path) -> None:
    """What is found among the candidates is what a look at every doc finds."""
    home = SmallHome(tmp_path / "home")
    dates = [None, "2024", "2024-05", "2024-05-01", "2024-05-31", "2024-06-01", "2023-12-31"]
    for number, date in enumerate(dates):
        request = home.request(f"{number}.md", f"# Note {number}\n\nA keel.\n")
        canonical = msgspec.structs.replace(request.canonical, date=date)
        home.commit(home.ingestor.stage(msgspec.structs.replace(request, canonical=canonical)))
    with home.store.read() as txn:
        from kb.store import docs

        every = list(docs.all_latest(txn))
        for filters in (
            Filters(since="2024-05"),
            Filters(until="2024-05"),
            Filters(since="2024-05-31", until="2024-06"),
            Filters(until="2023"),
        ):
            expected = {doc.source_no for doc in every if matches_filters(doc, filters)}
            assert allowed_sources(txn, filters, OPERATOR) == expected
            assert 0 < len(expected) < len(dates)
    home.close()


def test_a_command_takes_dates(tmp_path: Path) -> None:
    """Search, ask and ls alike; what is no date is refused with the option's name."""
    home = Home(tmp_path / "home")
    for name, date in (("old", "2023-04-05"), ("new", "2025-01-02")):
        (tmp_path / f"{name}.md").write_text(
            f"---\ndate: {date}\n---\n# {name}\n\nA keel of oak.\n"
        )
        assert home.run("add", tmp_path / f"{name}.md").code == 0
    titles = {
        hit["title"] for hit in home.run("search", "oak", "--since", "2024", "--json").json["hits"]
    }
    assert titles == {"new"}
    rows = home.run("ls", "--until", "2023-04", "--json").json["docs"]
    assert [row["title"] for row in rows] == ["old"]
    sources = home.run("ask", "What is of oak?", "--until", "2023", "--json").json["sources"]
    assert {source["title"] for source in sources} == {"old"}
    refused = home.run("search", "oak", "--since", "2024-13")
    assert (refused.code, "--since: a date is written as" in refused.err) == (2, True)
