"""`kb note` and `kb job`: from a thought to a file that is found, with git beside it."""

from pathlib import Path
from typing import Any

import pytest
from commands import Home
from crash_rig import Rig
from notebooks import commit_file, git, needs_git


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


def book(home: Home) -> Path:
    return home.root / "notebook"


def hits(home: Home, words: str, *options: str) -> list[Any]:
    found = home.run("search", words, "--mode", "lexical", "--json", *options)
    assert found.code == 0, found
    return list(found.json["hits"])


def note(home: Home, text: str, *options: str) -> dict[str, Any]:
    added = home.run("note", "add", text, "--wait", "--json", *options)
    assert (added.code, added.err) == (0, "")
    return dict(added.json)


def test_a_note_goes_through_its_ends(home: Home) -> None:
    """Handed in on standard input, it waits, is placed by a worker, found, read and listed."""
    added = home.run("note", "add", "--tag", "boats", stdin="# Keel\n\nThe keel is oak.\n")
    assert (added.code, added.err) == (0, "")
    job = added.out.strip()
    assert home.run("job", job).out.startswith(f"{job}  organize queued  n")
    assert hits(home, "oak") == []
    assert home.run("worker", "--drain").code == 0
    said = home.run("job", job, "--json").json
    assert (said["status"], said["path"]) == ("done", "boats/keel.md")
    (hit,) = hits(home, "oak", "--kind", "notebook", "--tag", "boats")
    assert hit["source"] == str(book(home) / "boats/keel.md")
    assert home.run("note", "get", "boats/keel.md").out == "# Keel\n\nThe keel is oak.\n"
    assert "- [Keel](boats/keel.md) — The keel is oak.\n" in home.run("note", "get", "INDEX.md").out
    log = home.run("note", "log", "-n", "1").out
    assert log.endswith(f"  store({job}): boats/keel.md\n")
    assert home.run("check").code == 0


def test_notes_are_listed(home: Home) -> None:
    """By the paths that `kb note get` takes, the newest first; without any it says what to do."""
    home.run("init")
    none = home.run("note", "ls")
    assert (none.code, none.out, none.err) == (
        0,
        "",
        "kb: no notes yet; kb note add TEXT makes the first\n",
    )
    note(home, "# Keel\n\nOak.", "--tag", "boats")
    note(home, "# Soup\n\nSalt.", "--hint", "kitchen")
    assert home.run("note", "ls").out == "kitchen/soup.md  Soup\nboats/keel.md  Keel  #boats\n"
    tagged = home.run("note", "ls", "--tag", "boats", "--json").json
    assert [row["path"] for row in tagged["notes"]] == ["boats/keel.md"]
    short = home.run("note", "ls", "--limit", "1")
    assert short.out == "kitchen/soup.md  Soup\n"
    assert short.err == "kb: 1 more note; --limit 0 lists all\n"
    assert home.run("note", "ls", "--tag", "cars").err == "kb: no notes match\n"


def test_waiting_for_a_note(home: Home) -> None:
    """With --wait the path is printed, and a search finds it at once."""
    added = home.run("note", "add", "--wait", "--hint", "kitchen", "Soup needs salt.")
    assert (added.code, added.out) == (0, "kitchen/soup-needs-salt.md\n")
    assert len(hits(home, "salt")) == 1


def test_a_note_that_is_like_others(home: Home) -> None:
    """Without a hint it goes to the notes that it is like."""
    text = "The sails of the boat are torn, and the mast of the boat is bent."
    note(home, text, "--hint", "harbour")
    near = "The sails of the boat are torn, and the mast of the boat is lost."
    assert note(home, near)["path"].startswith("harbour/")
    assert note(home, "Quarterly tax form.")["path"].startswith("inbox/")


def test_taking_a_note_back(home: Home) -> None:
    """Its file, its entry and its hits go; what another note says stays; once is enough."""
    first = note(home, "# One\n\nunicorn\n", "--hint", "work")
    note(home, "# Two\n\ngriffin\n", "--hint", "work")
    undone = home.run("note", "undo", first["job_id"])
    assert undone.code == 0
    assert undone.out.startswith("work/one.md: taken back by ")
    assert (hits(home, "unicorn"), len(hits(home, "griffin"))) == ([], 1)
    assert not (book(home) / "work/one.md").exists()
    again = home.run("note", "undo", first["job_id"])
    assert again.code == 1
    assert again.err.startswith(f"kb: {first['job_id']} cannot be undone: ")
    assert home.run("check").code == 0


def test_jobs_of_all_kinds_are_listed(home: Home, tmp_path: Path) -> None:
    """With what they are about and how they stand."""
    (tmp_path / "a.md").write_text("text\n", "utf-8")
    done = note(home, "# One\n", "--hint", "work")
    home.run("add", "--no-wait", tmp_path / "a.md")
    queued = home.run("note", "add", "# Two\n").out.strip()
    rows = home.run("job", "ls", "--json").json["jobs"]
    assert [(row["kind"], row["status"], row["path"]) for row in rows] == [
        ("organize", "done", "work/one.md"),
        ("chunk", "queued", None),
        ("organize", "queued", None),
    ]
    assert (rows[0]["job_id"], rows[2]["job_id"]) == (done["job_id"], queued)


@pytest.mark.parametrize(
    ("args", "code", "words"),
    [
        (("note", "add", ""), 2, "empty"),
        (("note", "add", "a\udcffb"), 2, "not UTF-8"),
        (("note", "add", "x", "--tag", ""), 2, "a tag is"),
        (("note", "get", "none.md"), 4, "no note none.md"),
        (("note", "get", "../home/kb.toml"), 4, "no note"),
        (("note", "get", ".git/HEAD"), 4, "no note"),
        (("note", "undo", "j000000000009"), 4, "no job"),
        (("job", "j000000000009"), 4, "no job"),
        (("note", "log"), 0, "no notes yet"),
        (("job", "ls"), 0, "no jobs"),
    ],
)
def test_what_cannot_be_answered(
    tmp_path: Path, args: tuple[str, ...], code: int, words: str
) -> None:
    """Each wrong call has its exit code, and one clear line."""
    rig = Rig(tmp_path)
    rig.call("init")
    ran = rig.call(*args)
    assert ran.code == code
    assert words in ran.err
    assert ran.err.count("\n") == 1


def test_a_folder_that_is_somebody_elses(home: Home, tmp_path: Path) -> None:
    """Files and no repository: nothing is touched, the note waits, and the way out is said."""
    (tmp_path / "papers").mkdir()
    (tmp_path / "papers/mine.txt").write_text("mine", "utf-8")
    said = ("--cfg", f"notebook.path={tmp_path}/papers")
    ran = home.run(*said, "note", "add", "--wait", "A note.")
    assert ran.code == 1
    assert "neither empty nor a git repository" in ran.err
    assert [path.name for path in (tmp_path / "papers").iterdir()] == ["mine.txt"]


@needs_git
def test_git_beside_the_notebook(home: Home) -> None:
    """A person edits, moves and commits; `kb sync-all` follows, and notes go on."""
    note(home, "# One\n\nunicorn\n", "--hint", "work")
    (before,) = hits(home, "unicorn")
    root = book(home)
    assert git(root, "status", "--porcelain") == ""
    git(root, "mv", "work/one.md", "work/eins.md")
    git(root, "commit", "-q", "-m", "Rename")
    commit_file(root, "mine/own.md", "# Own\n\nphoenix\n")
    assert home.run("sync-all", "--interval-min", "0").code == 0
    (after,) = hits(home, "unicorn")
    assert (after["doc_id"], Path(after["source"]).name) == (before["doc_id"], "eins.md")
    (own,) = hits(home, "phoenix")
    assert own["kind"] == "notebook"
    (root / "mine/own.md").write_text("# Own\n\nnot committed yet\n", "utf-8")
    assert note(home, "# Two\n", "--hint", "mine")["path"] == "mine/two.md"
    assert git(root, "status", "--porcelain") == " M mine/own.md\n"
    assert git(root, "fsck", "--strict", "--no-dangling") == ""
    assert home.run("check").code == 0


@needs_git
def test_a_repository_of_ones_own(home: Home, tmp_path: Path) -> None:
    """A repository that is there is taken over as it is, with its branch and its words."""
    root = tmp_path / "own"
    root.mkdir()
    git(root, "init", "-q", "-b", "trunk")
    commit_file(root, "old/note.md", "# Old\n\nphoenix\n")
    (home.root).mkdir()
    (home.root / "kb.toml").write_text(f'[notebook]\npath = "{root}"\n', "utf-8")
    assert note(home, "# New\n", "--hint", "old")["path"] == "old/new.md"
    assert git(root, "symbolic-ref", "--short", "HEAD") == "trunk\n"
    assert home.run("sync-all").code == 0
    assert len(hits(home, "phoenix")) == 1


def test_a_home_that_was_moved(home: Home, tmp_path: Path) -> None:
    """Its notebook is with it: the same docs, in the new place, and nothing of the old one."""
    note(home, "# One\n\nunicorn\n", "--hint", "work")
    (before,) = hits(home, "unicorn")
    moved = Home(home.root.rename(tmp_path / "elsewhere"))
    synced = moved.run("sync-all", "--interval-min", "0")
    assert synced.code == 0, synced
    (after,) = hits(moved, "unicorn")
    assert after["doc_id"] == before["doc_id"]
    assert after["source"] == str(book(moved) / "work/one.md")
    (origin,) = moved.run("sources", "--json").json["sources"]
    assert (origin["kind"], origin["location"]) == ("notebook", str(book(moved)))
