"""Docs by month, against counting them by hand."""

import datetime as dt
import random
from collections import Counter
from pathlib import Path

from commands import Home


def test_docs_by_month_are_those_there_are(tmp_path: Path) -> None:
    """Dates of days, months and years, and none; with filters, a limit, and empty months."""
    home, draw = Home(tmp_path / "home"), random.Random(7)
    folder = tmp_path / "docs"
    folder.mkdir()
    dates: list[tuple[str, str]] = []
    for number in range(40):
        day = dt.date(2023, 1, 1) + dt.timedelta(draw.randrange(900))
        date = draw.choice([day.isoformat(), day.isoformat()[:7], str(day.year), ""])
        tag = draw.choice(["oak", "elm"])
        dates.append((date, tag))
        (folder / f"{number}.md").write_text(
            f"---\ntags: [{tag}]\ndate: {date}\n---\nNote {number}."
        )
    assert home.run("add", folder).code == 0
    for tag in ("oak", "elm", None):
        wanted = [date for date, of in dates if tag in (of, None)]
        expected = Counter(date[:7] for date in wanted if len(date) >= 7)
        args = ["--by", "date", "--limit", "100", *(["--tag", tag] if tag else [])]
        growth = home.run("growth", *args, "--json").json
        months = growth["months"]
        assert {row["month"]: row["docs"] for row in months if row["docs"]} == expected
        assert growth["without_month"] == len(wanted) - sum(expected.values())
        names = [row["month"] for row in months]
        first, last = (int(name[:4]) * 12 + int(name[5:]) for name in (min(names), max(names)))
        assert names == sorted(set(names))
        assert len(names) == last - first + 1
        sums = [sum(row["docs"] for row in months[: place + 1]) for place in range(len(months))]
        assert [row["total"] for row in months] == sums
    last_two = home.run("growth", "--by", "date", "--limit", "2", "--json").json["months"]
    assert last_two == months[-2:]
    (added,) = home.run("growth", "--json").json["months"]
    assert (added["docs"], added["total"]) == (40, 40)
    table = home.run("growth", "--by", "date").out
    assert f"  {months[-1]['month']}" in table


def test_where_no_doc_is_counted(tmp_path: Path) -> None:
    """A number that is nought is not shown, and an empty table says that it is one."""
    home = Home(tmp_path / "home")
    (tmp_path / "tea.md").write_text("Green tea.")
    assert home.run("add", tmp_path / "tea.md").code == 0
    ran = home.run("growth", "--tag", "oak")
    assert (ran.code, ran.out, ran.err) == (0, "", "kb: there is nothing to list\n")
    assert "without month" not in home.run("growth").out
    assert home.run("growth", "--by", "date").out == "without month: 1\n"
