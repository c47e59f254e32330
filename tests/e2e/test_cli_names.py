"""Docs found by what their files are called, however people write names."""

from pathlib import Path

import pytest
from commands import Home

NOTES = {
    "Projects/Harbour Bridge/2026-03-01 Kickoff meeting.md": "# Agenda\n\nBudget, then people.",
    "Projects/notes.md": "# Kickoff meeting of something else\n\nA kickoff meeting, kickoff.",
    "parseConfig.md": "# How settings are read\n\nLine by line.",
    "http_server.md": "# Who listens\n\nOn one port.",
    "Café.md": "# Where we eat\n\nSoup.",
    "Invoice.md": "# What we ask for\n\nA sum and a date.",
    "Invoices.md": "# Every invoice\n\nThe invoice of May, the invoice of June: all invoices.",
    "docs.md": "# Documents\n\nparse config, http server, café, docs: words of all the others.",
    **{f"filler{n}.md": f"# Filler {n}\n\nThe config of a server, parse {n}." for n in range(12)},
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of notes, whose headings say other things than their names."""
    folder = tmp_path_factory.mktemp("names") / "notes"
    for name, text in NOTES.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


@pytest.fixture(scope="module")
def home(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Home:
    """A home with these notes."""
    home = Home(tmp_path_factory.mktemp("home"))
    assert home.run("add", "-r", folder).code == 0
    return home


def _sources(home: Home, query: str, *options: str) -> list[str]:
    hits = home.run("search", query, *options, "--json").json["hits"]
    return list(dict.fromkeys(Path(hit["source"]).name for hit in hits))


@pytest.mark.parametrize("mode", ["hybrid", "lexical"])
@pytest.mark.parametrize(
    ("query", "name"),
    [
        ("parseConfig", "parseConfig.md"),
        ("parse config", "parseConfig.md"),
        ("parse_config", "parseConfig.md"),
        ("parseconfig", "parseConfig.md"),
        ("parseConfig.md", "parseConfig.md"),
        ("http server", "http_server.md"),
        ("httpServer", "http_server.md"),
        ("http-server", "http_server.md"),
        ("cafe", "Café.md"),
        ("docs", "docs.md"),
        ("invoice", "Invoice.md"),
        ("Invoice.md", "Invoice.md"),
        ("invoices", "Invoices.md"),
        ("2026-03-01 kickoff meeting", "2026-03-01 Kickoff meeting.md"),
    ],
)
def test_who_types_a_name_gets_that_file_first(
    home: Home, query: str, name: str, mode: str
) -> None:
    """Case, accents and what stands between words make no difference."""
    assert _sources(home, query, "--mode", mode)[0] == name


def test_folders_are_words_too(home: Home) -> None:
    """No text says "harbour bridge": a folder does."""
    assert _sources(home, "harbour bridge", "--mode", "lexical")[0].startswith("2026-03-01")


def test_a_moved_file_is_found_by_its_new_name_only(folder: Path, tmp_path: Path) -> None:
    """The index follows a move, and is then the same as one that is built anew."""
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "ledger.md").write_text("# Sums\n\nIn and out.")
    (notes / "other.md").write_text("# Other\n\nNothing.")
    home = Home(tmp_path / "home")
    assert home.run("add", "-r", notes).code == 0
    assert _sources(home, "ledger", "--mode", "lexical") == ["ledger.md"]
    (notes / "ledger.md").rename(notes / "cashbook.md")
    assert home.run("sync-all", "--interval-min", "0").code == 0
    assert _sources(home, "cashbook", "--mode", "lexical") == ["cashbook.md"]
    assert _sources(home, "ledger", "--mode", "lexical") == []


def test_a_hit_by_name_alone_is_no_weak_hit(home: Home) -> None:
    """The name of a file counts as much as its text when hits are weighed against the query."""
    hits = home.run("search", "http server", "--json").json["hits"]
    assert not hits[0].get("weak")
