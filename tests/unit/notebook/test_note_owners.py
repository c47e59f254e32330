"""Notes of several people in one notebook: whose they are, and what may touch them."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from notebooks import NoteHome

from kb.knowledge.notebook import NotebookChanges, look, tidy
from kb.knowledge.notebook.owners import folder_of
from kb.knowledge.notebook.paths import is_folder


@pytest.fixture
def home(tmp_path: Path) -> Iterator[NoteHome]:
    home = NoteHome(tmp_path)
    yield home
    home.close()


@pytest.mark.parametrize(
    ("owner", "folder"),
    [
        ("ada", "from-ada"),
        ("Ada", "from-ada-99a563ab"),
        ("ada@example.org", "from-ada-example-org-cfe00dde"),
        ("../x", "from-x-d6b96a97"),
    ],
)
def test_a_users_folder(owner: str, folder: str) -> None:
    """It is named after them, on one level, and names that look alike have two."""
    assert folder_of(owner) == folder
    assert is_folder(folder)


@pytest.mark.parametrize("owner", ["x" * 64, "标" * 64, "İ" * 64, "!" * 64, "a" * 47 + "-标" * 8])
def test_a_long_name_has_a_folder(owner: str) -> None:
    """Whatever a user is called, notes can be put there."""
    assert is_folder(f"{folder_of(owner)}/inbox")


def test_the_same_note_of_two_people_is_two_jobs(home: NoteHome) -> None:
    """One person's again is the same job; who it is of goes with it to the engine."""
    jobs = [home.hand_in("# One\n", owner=owner) for owner in ("ada", "bob", None, "ada")]
    assert len(set(jobs)) == 3
    assert jobs[0] == jobs[3]
    home.organizer.work(home.claims())
    paths = [home.report(job).path for job in jobs[:3]]
    assert paths == ["from-ada/inbox/one.md", "from-bob/inbox/one.md", "inbox/one.md"]
    assert [home.report(job).owner for job in jobs[:3]] == ["ada", "bob", None]
    (arrival,) = home.arrivals
    owners = dict(zip(paths, ("ada", "bob", "local"), strict=True))
    assert arrival == NotebookChanges(added=dict.fromkeys(owners, ()), owners=owners)


def test_a_model_neither_sees_nor_moves_what_is_anothers(tmp_path: Path) -> None:
    """It is not asked about theirs, and may propose nothing in their folders for one's own."""
    asked: list[str] = []
    proposed = {"target_path": "from-bob/mine.md", "updated_index": "", "refactors": []}

    def complete(_: str, user: str) -> str:
        asked.append(user)
        return json.dumps(proposed)

    home = NoteHome(tmp_path, complete)
    theirs = home.place("# Theirs\n", "work", owner="bob")
    assert (theirs.path, asked) == ("from-bob/work/theirs.md", [])
    mine = home.place("# Mine\n", "work")
    assert mine.path == "work/mine.md"
    assert "somebody else's folder" in (mine.reason or "")
    move = {"from": "from-bob/work/theirs.md", "to": "work/theirs.md"}
    proposed |= {"target_path": "work/more.md", "refactors": [move]}
    assert "belongs to somebody else" in (home.place("# More\n", "work").reason or "")
    assert "from-bob/work/theirs.md" in home.committed()
    home.close()


def test_a_rule_puts_nothing_of_ones_own_among_others(home: NoteHome) -> None:
    """Neither words of a hint nor likeness lead into a folder of another's."""
    home.place("# Oars\n", "boats", owner="bob")
    home.like = [("from-bob/boats/oars.md", 0.9)]
    assert home.place("# Mine\n").path == "inbox/mine.md"
    assert home.place("# Other\n", "something on boats").path == "inbox/other.md"


def test_notes_of_two_people_are_not_merged(home: NoteHome) -> None:
    """That they are alike is said, and why they stay."""
    text = "# Keel\n\nThe keel is made of old oak from the hills, and was laid in the spring.\n"
    home.place(text, "boats")
    home.place(text, "boats", owner="bob")
    home.apart = {"from-bob/boats/keel.md"}
    (pair,) = look(home.root, home.may_merge).duplicates
    assert "not of one person" in (pair.held_back or "")
    assert tidy(home.root, home.home.clock, home.take_in, home.may_merge).commit is None
