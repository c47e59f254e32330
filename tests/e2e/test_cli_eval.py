"""Questions with known answers, asked of one's own notes by the real command."""

import json
from pathlib import Path

import pytest
from commands import Home, surroundings

NOTES = {
    "lease.md": "# Lease\n\nOne cat may live in the flat.",
    "boiler.md": "# Boiler\n\nFault F28 means that no gas arrives.",
    "tea.md": "# Tea\n\nWater for green tea has eighty degrees.",
}


@pytest.fixture
def home(tmp_path: Path) -> Home:
    """A home with three notes."""
    folder = tmp_path / "notes"
    folder.mkdir()
    for name, text in NOTES.items():
        (folder / name).write_text(text)
    home = Home(tmp_path / "home")
    assert home.run("add", folder).code == 0
    return home


def questions(tmp_path: Path, *rows: object) -> Path:
    """A file with these rows; text is written as it is."""
    lines = (row if isinstance(row, str) else json.dumps(row) for row in rows)
    file = tmp_path / "questions.jsonl"
    file.write_text("\n".join(lines))
    return file


def test_figures_are_those_of_the_rankings(home: Home, tmp_path: Path) -> None:
    """By path and by id; a doc that only other words name is not found by words alone."""
    notes = tmp_path / "notes"
    file = questions(
        tmp_path,
        {"query": "cat lease", "docs": [str(notes / "lease.md")]},
        {"query": "fault F28", "docs": {home.ids()["boiler.md"]: 2}},
        {"query": "cat lease", "docs": [str(notes / "tea.md")]},
    )
    report = home.run("eval", file, "--json").json
    assert report["questions"] == 3
    assert report["problems"] == []
    set_row, words, _ = report["rows"]
    assert (set_row["better"], set_row["worse"]) == (0, 0)
    # Two are first, and by words alone the third is not found at all.
    assert words["recall_at_100"] == pytest.approx(2 / 3)
    assert words["ndcg_at_10"] == pytest.approx(2 / 3)
    assert words["mrr_at_10"] == pytest.approx(2 / 3)
    lost = [row for row in report["changed"] if row["variant"] == "words alone"]
    assert [(row["query"], row["after"]) for row in lost] == [("cat lease", None)]


def test_other_settings_are_another_row(home: Home, tmp_path: Path) -> None:
    """They are tried and not kept; one that is none is named with those that there are."""
    file = questions(tmp_path, {"query": "cat", "docs": [str(tmp_path / "notes/lease.md")]})
    ran = home.run("eval", file, "--try", "lexical_weight=1,rrf_k=5", "--try", "search.rrf_k=9")
    lines = ran.out.splitlines()
    assert lines[0] == "1 question"
    assert [line.split("  ")[0] for line in lines[-2:]] == [
        "lexical_weight=1,rrf_k=5",
        "search.rrf_k=9",
    ]
    unknown = home.run("eval", file, "--try", "rrf=5")
    assert unknown.code == 2
    assert "no setting search.rrf; there are fusion, rrf_k" in unknown.err
    wrong = home.run("eval", file, "--try", "rrf_k=0")
    assert wrong.code == 2


def test_what_cannot_be_asked_is_told(home: Home, tmp_path: Path) -> None:
    """Bad lines and docs that are not here are named, and the rest counts."""
    good = {"query": "cat", "docs": [str(tmp_path / "notes/lease.md")]}
    file = questions(tmp_path, good, "no json", {"query": "x", "docs": ["gone.md"]})
    ran = home.run("eval", file, "--json")
    assert ran.code == 3
    assert ran.json["questions"] == 1
    assert len(ran.json["problems"]) == 2
    none = home.run("eval", questions(tmp_path, "{}"))
    assert none.code == 2
    assert "no question has a doc that is here" in none.err
    assert home.run("eval", tmp_path / "missing.jsonl").code == 2


def test_another_model_is_compared_and_not_taken(home: Home, tmp_path: Path) -> None:
    """Its rankings are its own, and searches go on with the model in use."""
    notes = tmp_path / "notes"
    rows = [
        {"query": "kitten", "docs": [str(notes / "lease.md")]},
        {"query": "hot drink", "docs": [str(notes / "tea.md")]},
        {"query": "the furnace is broken", "docs": [str(notes / "boiler.md")]},
    ]
    file = questions(tmp_path, *rows)
    used = home.run("embedder", "--json").json
    ran = home.run("eval", file, "--model", "hashing", "--model", "builtin", "--json")
    figures = {row["variant"]: row["ndcg_at_10"] for row in ran.json["rows"]}
    assert figures["as it is set"] == figures["model hashing"] < figures["model builtin"] == 1.0
    assert "builtin embeds every passage first" in ran.err
    assert home.run("embedder", "--json").json == used
    # A change to it begins with what it made, and what comes meanwhile is embedded, too.
    assert home.run("embedder", "set", "builtin", "--no-wait").code == 0
    (notes / "rain.md").write_text("# Rain\n\nTake an umbrella along.")
    assert home.run("add", notes).code == 0
    found = home.run("search", "brolly", "--mode", "dense", "--json").json["hits"]
    assert found[0]["source"].endswith("rain.md")
    assert home.run("check").code == 0
    # Where sentence-transformers is installed, it would look for the name on its hub for a minute.
    offline = surroundings(HF_HUB_OFFLINE="1")
    missing = home.run("eval", file, "--model", "no-such-model", env=offline)
    assert missing.code != 0
    assert "no-such-model" in missing.err
