"""Histories of ordinary commands that lost or mixed up docs once, by the real command."""

from pathlib import Path
from typing import Any

import pytest
from commands import Home


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "s"
    folder.mkdir()
    return folder


def done(home: Home, *args: object) -> None:
    ran = home.run(*args)
    assert ran.code == 0, ran


def listed(home: Home) -> dict[str, Any]:
    """The active docs by file name; each name once."""
    rows = home.run("ls", "--json", "--limit", "0").json["docs"]
    found = {Path(row["source"]).name: row for row in rows}
    assert len(found) == len(rows) == len({row["doc_id"] for row in rows}), rows
    return found


def found(home: Home, word: str) -> list[tuple[str, str]]:
    """Name and title of each doc that holds the word."""
    hits = home.run("search", word, "--mode", "lexical", "--json").json["hits"]
    return sorted((Path(hit["source"]).name, hit["title"]) for hit in hits)


def sync(home: Home) -> Any:
    ran = home.run("sync-all", "--interval-min", "0", "--json")
    assert ran.code == 0, ran
    return ran.json


def test_a_new_file_under_an_old_name_is_another_doc(home: Home, folder: Path) -> None:
    """A doc that was edited, compacted and renamed is not overwritten by what comes after it."""
    (folder / "a.md").write_text("# Alpha\nfirst\n")
    done(home, "add", "-r", folder)
    (folder / "a.md").write_text("# Alpha\nsecond, harbour\n")
    done(home, "add", "-r", folder)
    done(home, "compact")
    (folder / "a.md").rename(folder / "b.md")
    sync(home)
    (folder / "a.md").write_text("# New\n")
    done(home, "add", "-r", folder)
    (folder / "a.md").write_text("# New edited\n")
    done(home, "add", "-r", folder)
    docs = listed(home)
    assert {name: row["title"] for name, row in docs.items()} == {
        "a.md": "New edited",
        "b.md": "Alpha",
    }
    assert found(home, "harbour") == [("b.md", "Alpha")]
    assert found(home, "edited") == [("a.md", "New edited")]
    done(home, "check")
