"""Pages of hits and their scores, by the real command."""

import json
from pathlib import Path

import pytest
from commands import KB, Ran, run

ROOMS = ("kitchen", "cellar", "attic", "hall", "garden", "porch", "study")


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("pages")
    for number, room in enumerate(ROOMS):
        text = f"# The {room}\n\nThe boiler in the {room} was serviced {number + 2} times.\n"
        (root / f"{room}.md").write_text(text)
    assert kb(root / "home", "add", *root.glob("*.md")).code == 0
    return root / "home"


def kb(home: Path, *args: object) -> Ran:
    return run([KB, "--home", str(home), *map(str, args)])


def test_pages_go_on_where_the_page_before_ended(home: Path) -> None:
    """By offset for people, whose ranks go on, and by cursor for programs."""
    whole = kb(home, "search", "boiler service", "--json").json
    assert whole["next_cursor"] is None
    page = kb(home, "search", "boiler service", "-k", 3, "--json").json
    assert page["hits"] == whole["hits"][:3]
    following = kb(
        home, "search", "boiler service", "--limit", 9, "--cursor", page["next_cursor"], "--json"
    ).json
    assert following["hits"] == whole["hits"][3:]
    shown = kb(home, "search", "boiler service", "-k", 3, "--offset", 3).out
    assert [line[:3] for line in shown.splitlines() if line[:3].strip()] == [" 4.", " 5.", " 6."]


def test_a_page_that_cannot_be_says_so(home: Path) -> None:
    """Behind the end, of another query, or of no query at all."""
    beyond = kb(home, "search", "boiler", "--offset", 40)
    assert (beyond.code, beyond.out) == (0, "")
    assert f"no page begins at hit 41: there are {len(ROOMS)} hits" in beyond.err
    cursor = kb(home, "search", "boiler", "-k", 2, "--json").json["next_cursor"]
    other = kb(home, "search", "attic", "--cursor", cursor)
    assert other.code == 2
    assert "the cursor is of another query" in other.err
    assert kb(home, "search", "boiler", "--cursor", "next").code == 2
    assert kb(home, "search", "boiler", "--cursor", cursor, "--offset", 2).code == 2


def test_scores_compare_between_queries(home: Path) -> None:
    """What fits better scores more, whatever else was found; the order has a number of its own."""
    scores = {}
    for query in ("the boiler in the attic", "attic insulation costs", "tax return of 2019"):
        hits = kb(home, "search", query, "--json", "--explain").json["hits"]
        assert [hit["score"] for hit in hits] == sorted((h["score"] for h in hits), reverse=True)
        assert json.dumps(hits[0]["explain"]).count("rank_score") == 1
        scores[query] = hits[0]["score"]
    assert list(scores.values()) == sorted(scores.values(), reverse=True)
    best, related, foreign = scores.values()
    assert best > 0.7 > related
    assert foreign < 0.5


def test_a_long_passage_is_shown_where_it_says_why(tmp_path: Path) -> None:
    """By its best sentence, which --json has with its place."""
    filler = " ".join(f"On day {day} the weather was fine and nothing broke." for day in range(14))
    text = f"# Diary\n\n{filler} The samovar was repaired by Olga. {filler}\n"
    (tmp_path / "diary.md").write_text(text)
    home = tmp_path / "home"
    assert kb(home, "add", tmp_path / "diary.md").code == 0
    shown = " ".join(kb(home, "search", "who repaired the samovar", "-k", 1).out.split())
    assert "The samovar was repaired by Olga." in shown
    assert "# Diary" not in shown
    hit = kb(home, "search", "who repaired the samovar", "-k", 1, "--json").json["hits"][0]
    snippet = hit["snippet"]
    assert snippet["text"] == "The samovar was repaired by Olga."
    assert hit["text"][snippet["start"] : snippet["end"]] == snippet["text"]
