"""A vault of notes as people keep them: tags, names, links both ways, comments and days."""

import datetime as dt
import os
from pathlib import Path

import pytest
from commands import Home

NOTES = {
    "Home.md": """---
tags: [start, Area/Work]
aliases: [Main page]
created: 2024-02-03
updated: 2025-01-01
---
Do this #todo and #project/alpha, not `#code`, #123 or a#b. See [[Plan]], [[Projects/Plan|it]],
[x](Projects/Other.md), ![[picture.png]] and [[Missing]]. %%a hidden secret%%

```python
#incode [[Nowhere]]
```
%%
more hidden
lines
%%
The last line.
""",
    "Projects/Plan.md": "# The plan\n\nBack to [[home#Top]]. #Area/Home",
    "Projects/Other.md": "Up to [home](../Home.md).",
    "Archive/Plan.md": "An old one, which nobody means.",
    "2026-11-22 Meeting.md": "Who came. [[The plan]]",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The vault."""
    folder = tmp_path_factory.mktemp("vault") / "notes"
    for name, text in NOTES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        then = dt.datetime(2023, 5, 6, 12, tzinfo=dt.UTC).timestamp()
        os.utime(path, (then, then))
    return folder


@pytest.fixture(scope="module")
def home(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Home:
    """A home with the vault."""
    home = Home(tmp_path_factory.mktemp("home"))
    assert home.run("add", "-r", folder).code == 0
    return home


def _listed(home: Home, *options: str) -> list[str]:
    docs = home.run("ls", *options, "--json").json["docs"]
    return [Path(doc["source"]).name for doc in docs]


def _shown(home: Home, name: str) -> dict[str, list[str]]:
    shown = home.run("show", name, "--json").json
    return {
        way: sorted("/".join(Path(row["source"]).parts[-2:]) for row in shown[way] if row["doc_id"])
        for way in ("links", "backlinks")
    }


def test_tags_stand_in_the_front_matter_and_in_the_text(home: Home) -> None:
    """Not in code, not inside of a word, and not of digits alone."""
    tags = home.run("show", "Home.md", "--json").json["doc"]["tags"]
    assert tags == ["start", "Area/Work", "todo", "project/alpha"]


@pytest.mark.parametrize(
    ("tag", "names"),
    [
        ("area", {"Home.md", "Plan.md"}),
        ("AREA/work", {"Home.md"}),
        ("project", {"Home.md"}),
        ("proj", set()),
    ],
)
def test_a_tag_finds_those_below_it_in_any_case(home: Home, tag: str, names: set[str]) -> None:
    """In lists as in searches."""
    assert set(_listed(home, "--tag", tag)) == names
    hits = home.run("search", "the", "--tag", tag, "--json").json["hits"]
    assert {Path(hit["source"]).name for hit in hits} == names


def test_links_lead_both_ways(home: Home, folder: Path) -> None:
    """By name, path and title; the nearest of two notes of one name is meant."""
    assert _shown(home, "Home.md") == {
        "links": ["Archive/Plan.md", "Projects/Other.md", "Projects/Plan.md"],
        "backlinks": ["Projects/Other.md", "Projects/Plan.md"],
    }
    assert _shown(home, str(folder / "Projects/Plan.md"))["backlinks"][0].startswith("notes/2026")
    text = home.run("show", "Home.md").out
    assert "Missing, which is not here" in text
    assert "Nowhere" not in text


def test_links_filter(home: Home) -> None:
    """What links to a doc, and what a doc links to."""
    assert sorted(_listed(home, "--linked-to", "Home.md")) == ["Other.md", "Plan.md"]
    assert sorted(_listed(home, "--links-from", "Projects/Other.md")) == ["Home.md"]
    assert home.run("ls", "--linked-to", "nothing-like-it").code == 4


def test_an_alias_is_a_name(home: Home) -> None:
    """It is found first by who types it."""
    hits = home.run("search", "main page", "--json").json["hits"]
    assert Path(hits[0]["source"]).name == "Home.md"


def test_comments_are_left_out_and_lines_stay(home: Home) -> None:
    """What a person hides is not found; a hit still says the line of its file."""
    assert home.run("search", "hidden secret", "--mode", "lexical", "--json").json["hits"] == []
    text = home.run("export", "Home.md", "--to", "-").out
    assert "The last line." in text
    assert "hidden" not in text
    assert (
        text.split("\n").index("The last line.") + 7
        == NOTES["Home.md"].split("\n").index("The last line.") + 1
    )


@pytest.mark.parametrize(
    ("options", "names"),
    [
        (("--on", "2024-02"), {"Home.md"}),
        (("--on", "2026-11-22"), {"2026-11-22 Meeting.md"}),
        (("--on", "2023-05-06"), {"Plan.md", "Other.md"}),
        (("--since", "2024"), {"Home.md", "2026-11-22 Meeting.md"}),
        (("--until", "2023"), {"Plan.md", "Other.md"}),
        (("--since", "100 years ago", "--until", "2023"), {"Plan.md", "Other.md"}),
    ],
)
def test_days(home: Home, options: tuple[str, ...], names: set[str]) -> None:
    """A note's own day, else that of its name, else when its file was last changed."""
    assert set(_listed(home, *options)) == names


def test_words_that_are_no_day(home: Home) -> None:
    """The refusal says what would be one."""
    ran = home.run("ls", "--since", "three fortnights")
    assert ran.code == 2
    assert "3 days ago" in ran.err


def test_the_newest_first(home: Home) -> None:
    """Lists and hits can be sorted by day."""
    assert _listed(home, "--sort", "date")[:2] == ["2026-11-22 Meeting.md", "Home.md"]
    assert _listed(home, "--sort", "title")[0] == "2026-11-22 Meeting.md"
    hits = home.run("search", "plan", "--sort", "date", "--json").json["hits"]
    dates = [hit["date"] for hit in hits]
    assert len(dates) > 2
    assert dates == sorted(dates, reverse=True)
    assert "2026-11-22" in home.run("search", "meeting").out


def test_a_moved_note_keeps_its_links(tmp_path: Path) -> None:
    """Paths in it are taken from where it is now, and what links to its name finds it."""
    notes = tmp_path / "notes"
    (notes / "a").mkdir(parents=True)
    (notes / "b").mkdir()
    (notes / "a/one.md").write_text("To [two](two.md) and [[three]].")
    (notes / "a/two.md").write_text("Two.")
    (notes / "b/two.md").write_text("Another two.")
    (notes / "three.md").write_text("From [[one]].")
    home = Home(tmp_path / "home")
    assert home.run("add", "-r", notes).code == 0
    assert _shown(home, "one.md") == {
        "links": ["a/two.md", "notes/three.md"],
        "backlinks": ["notes/three.md"],
    }
    (notes / "a/one.md").rename(notes / "b/one.md")
    assert home.run("sync-all", "--interval-min", "0").code == 0
    assert _shown(home, "one.md") == {
        "links": ["b/two.md", "notes/three.md"],
        "backlinks": ["notes/three.md"],
    }
    assert home.run("check").code == 0
