"""What fits nothing is said to, by the real command with the model that ships."""

import json
from pathlib import Path
from typing import Any

import pytest
from commands import KB, Ran, run

NOTES = {
    "bread": "# Sourdough bread\n\nFeed the starter the evening before. Bake at 230 degrees.",
    "bike": "# Bicycle repair\n\nThe rear derailleur needs a new cable. Ask Tom about the chain.",
    "tax": "# Tax return 2025\n\nSend the forms to the accountant by the end of May.",
    "lisbon": "# Holiday in Lisbon\n\nFly on the third of June. Tram 28 is crowded.",
    "garden": "# Garden plan\n\nTomatoes along the south wall, beans next to the shed.",
}
FITTING = (
    "Bicycle repair",
    "Garden plan",
    "how do I make bread rise",
    "when do we fly to Portugal",
    "where should the vegetables go",
    "tax deadline",
    "derailleur",
)
FOREIGN = (
    "flurbelgrmpf",
    "president of Mars",
    "who is the president of Mars",
    "what is the capital of Mongolia",
    "quantum chromodynamics on a lattice",
)


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A stranger's small home."""
    root = tmp_path_factory.mktemp("weak")
    for name, text in NOTES.items():
        (root / f"{name}.md").write_text(f"{text}\n")
    added = kb(root / "home", "add", *root.glob("*.md"))
    assert added.code == 0, added.err
    return root / "home"


def kb(home: Path, *args: object, stdin: str = "") -> Ran:
    return run([KB, "--home", str(home), *map(str, args)], stdin=stdin)


def found(home: Path, *options: object) -> dict[str, list[Any]]:
    """The hits of every question."""
    asked = (*FITTING, *FOREIGN)
    lines = "".join(json.dumps({"_id": one, "text": one}) + "\n" for one in asked)
    ran = kb(home, "search", "--batch", "-", *options, stdin=lines)
    assert ran.code == 0, ran.err
    rows = [json.loads(line) for line in ran.out.splitlines()]
    return {row["_id"]: row["hits"] for row in rows}


def test_what_fits_nothing_is_weak_and_scores_less(home: Path) -> None:
    """Each hit of such a query is weak and scores below 0.5; else the best one is neither."""
    hits = found(home)
    for one in FITTING:
        assert not hits[one][0]["weak"], one
        assert hits[one][0]["score"] > 0.5, one
    for one in FOREIGN:
        assert all(hit["weak"] and hit["score"] < 0.5 for hit in hits[one]), one
        scores = [hit["score"] for hit in hits[one]]
        assert scores == sorted(scores, reverse=True)


def test_a_least_score_gives_silence(home: Path) -> None:
    """With --min-score 0.5 such a query finds nothing, and what fits is still found."""
    hits = found(home, "--min-score", "0.5")
    assert all(hits[one] for one in FITTING)
    assert not any(hits[one] for one in FOREIGN)
    silent = kb(home, "search", "flurbelgrmpf", "--min-score", "0.5")
    assert (silent.code, silent.out) == (0, "")
    assert "nothing found" in silent.err
    assert kb(home, "search", "tea", "--min-score", "2").code == 2


def test_a_person_is_told(home: Path) -> None:
    """Weak hits are marked, and a line says that nothing fits."""
    said = kb(home, "search", "flurbelgrmpf")
    assert "weak" in said.out
    assert "nothing here fits the query" in said.err
    assert "nothing here fits" not in kb(home, "search", "Garden plan").err


def test_extracts_are_found_where_they_fit(home: Path) -> None:
    """Without a model no weak passage is quoted; they are named as the nearest there are."""
    none = kb(home, "ask", "--no-model", "who is the president of Mars", "--json").json
    assert (none["found"], none["sentences"]) == (False, [])
    assert none["answer"] == "nothing was found that could answer this"
    assert none["sources"]
    assert all(source["weak"] for source in none["sources"])
    some = kb(home, "ask", "--no-model", "when is the tax return due?", "--json").json
    assert some["found"]
    cited = {n for one in some["sentences"] for n in one["citations"]}
    assert not any(source["weak"] for source in some["sources"] if source["n"] in cited)
