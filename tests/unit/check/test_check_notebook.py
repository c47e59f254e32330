"""`kb check`, `kb doctor` and `kb note log` on a notebook: what they say, and what is mended."""

import shutil
from pathlib import Path

import pytest
from crash_rig import Called, Rig
from notebooks import commit_file, git, needs_git

pytestmark = needs_git


@pytest.fixture
def home(tmp_path: Path) -> Rig:
    """A home whose notebook has two notes."""
    made = Rig(tmp_path, cfg=("embed.kind=hashing",))
    for name in ("One", "Two"):
        text = f"# {name}\n\nHere stands {name}.\n"
        assert made.call("note", "add", "--wait", "--hint", "work", text).code == 0
    return made


def book(home: Rig) -> Path:
    return home.home / "notebook"


def found(home: Rig, *options: str) -> list[str]:
    told = home.call("check", "--json", *options)
    assert told.code == (0 if told.json["sound"] else 5)
    return [f"{one['place']}: {one['problem']}" for one in told.json["findings"]]


def mended(home: Rig) -> list[str]:
    """What a repair did away with; the home is whole after it."""
    told = home.call("check", "--repair", "--json")
    assert told.code == 0, told
    assert found(home) == []
    return [one["place"] for one in told.json["findings"]]


def docs(home: Rig) -> set[str]:
    rows = home.call("ls", "--json", "--limit", 0).json["docs"]
    return {Path(row["source"]).name for row in rows}


def advised(home: Rig) -> Called:
    return home.call("doctor")


def test_a_whole_notebook_is_no_finding(home: Rig) -> None:
    """Nor are edits that are not committed: the doctor says them."""
    assert found(home) == []
    (book(home) / "work/one.md").write_text("# One\n\nEdited.\n", "utf-8")
    assert found(home) == []
    assert "work/one.md is changed but not committed" in advised(home).out


@pytest.mark.parametrize("is_all", [False, True])
def test_a_repository_that_is_gone(home: Rig, is_all: bool) -> None:
    """It is said by everybody, with the way back; no note begins a new one in its place."""
    shutil.rmtree(book(home) if is_all else book(home) / ".git")
    words = "its folder is missing" if is_all else "the .git of "
    (line,) = found(home)
    assert line.startswith(f"notebook: {words}")
    log = home.call("note", "log")
    assert (log.code, log.out) == (5, "")
    assert "bring it back from a copy, or from its remote" in log.err
    assert words in advised(home).out
    waits = home.call("note", "add", "--wait", "# Three\n")
    assert waits.code == 1
    assert not (book(home) / ".git").exists()
    # `--repair` makes none either.
    assert home.call("check", "--repair").code == 5
    assert not (book(home) / ".git").exists()
    (book(home)).mkdir(exist_ok=True)
    git(book(home), "init", "-q", "-b", "main")
    assert home.call("note", "add", "--wait", "# Four\n").code == 0
    assert (book(home) / "inbox/four.md").is_file()


@pytest.mark.parametrize("how", ["gone", "damaged"])
def test_an_index_is_made_anew(home: Rig, how: str) -> None:
    """A damaged one is kept aside, and an edit of a person's stays an edit."""
    index = book(home) / ".git/index"
    (book(home) / "work/one.md").write_text("# One\n\nEdited.\n", "utf-8")
    if how == "gone":
        index.unlink()
    else:
        index.write_bytes(index.read_bytes()[:-30])
    assert mended(home) == ["notebook/.git/index"]
    assert (book(home) / ".git/index.damaged").exists() == (how == "damaged")
    assert git(book(home), "status", "--porcelain") == " M work/one.md\n"
    assert "Edited" in (book(home) / "work/one.md").read_text("utf-8")
    assert home.call("note", "add", "--wait", "# Three\n").code == 0


def test_files_come_back(home: Rig) -> None:
    """Those of the newest commit, where nothing stands; their docs are as they were."""
    shutil.rmtree(book(home) / "work")
    (book(home) / "INDEX.md").unlink()
    (line,) = found(home)
    assert "INDEX.md, work/one.md, work/two.md are in the newest commit" in line
    assert "notebook" in mended(home)
    assert git(book(home), "status", "--porcelain") == ""
    assert docs(home) == {"one.md", "two.md"}


def test_a_removal_that_is_committed_is_no_damage(home: Rig) -> None:
    """What a person removed stays removed; its doc goes."""
    git(book(home), "rm", "-q", "work/one.md")
    git(book(home), "commit", "-q", "-m", "Remove")
    (line,) = found(home)
    assert "its note is gone" in line
    assert len(mended(home)) == 1
    assert docs(home) == {"two.md"}


def test_a_note_that_no_search_finds(home: Rig) -> None:
    """A commit from outside is taken in."""
    commit_file(book(home), "work/mine.md", "# Mine\n\nThe harbour.\n")
    assert found(home) == ["notebook/work/mine.md: a note that no search finds"]
    assert mended(home) == ["notebook/work/mine.md"]
    assert docs(home) == {"one.md", "two.md", "mine.md"}


def test_a_home_that_was_moved_has_its_notes_still(home: Rig, tmp_path: Path) -> None:
    """Docs are named by their places; until the next sync those are where the home was."""
    moved = home.copied(tmp_path / "moved")
    assert found(moved) == []


def test_what_was_begun_is_ended_by_the_next_note(home: Rig) -> None:
    """A kill between the move of the branch and the folder leaves work, and no damage."""
    root = book(home)
    old, new = (git(root, "rev-parse", what).strip() for what in ("HEAD~1", "HEAD"))
    (root / ".git/kb/intent").write_text(f'{{"from": "{old}", "to": "{new}"}}', "utf-8")
    assert found(home) == []
    assert "begun but not finished" in advised(home).out
    assert home.call("note", "add", "--wait", "# Three\n").code == 0
    assert not (root / ".git/kb/intent").exists()


def test_what_is_lost_is_said_and_left(home: Rig) -> None:
    """A missing object is nothing that kb can make again."""
    root = book(home)
    name = git(root, "rev-parse", "HEAD:work/one.md").strip()
    (root / ".git/objects" / name[:2] / name[2:]).unlink()
    told = home.call("check", "--repair", "--json")
    assert told.code == 5
    (finding,) = told.json["findings"]
    assert finding["place"] == "notebook/.git/objects"
    assert "for one.md, names it" in finding["problem"]
    assert "git fsck" in finding["mend"]
    assert docs(home) == {"one.md", "two.md"}


def test_whoever_looks_may_die_of_it(home: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """The look is a process of its own: its death is a finding."""
    monkeypatch.setattr("kb.knowledge.notebook.fsck._MODULE", "kb.knowledge.notebook.none")
    assert found(home) == ["notebook/.git: reading it crashes the process"]


def test_a_home_without_notes(tmp_path: Path) -> None:
    """Nothing is looked at, and nothing said."""
    made = Rig(tmp_path, cfg=("embed.kind=hashing",))
    (made.sources / "a.md").write_text("# A\n", "utf-8")
    assert made.call("add", made.sources / "a.md").code == 0
    assert found(made) == []
    assert made.call("note", "log").code == 0
