"""Notes on a home in a database: several machines, one notebook."""

import os
import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from commands import run
from nodes import Node
from postgres_server import PostgresServer


@pytest.fixture
def node(postgres: PostgresServer, tmp_path: Path) -> Node:
    return Node(tmp_path / "one", postgres.home())


@pytest.fixture
def other(node: Node, tmp_path: Path) -> Node:
    """Another machine with the same home."""
    return Node(tmp_path / "two", node.home)


def noted(node: Node, title: str, hint: str = "work") -> None:
    text = f"# {title}\n\nWords on {title}.\n"
    ran = node.run("note", "add", "--wait", "--hint", hint, text)
    assert ran.code == 0, ran.err


def subjects(node: Node) -> list[str]:
    """What each commit did, the newest first, once this machine has followed the others."""
    log = node.run("note", "log")
    assert log.code == 0, log.err
    git = run(["git", "-C", str(node.local / "notebook"), "log", "--format=%s"])
    return [line.partition(": ")[2] or line for line in git.out.splitlines()]


def notes_of(node: Node) -> dict[str, bytes]:
    folder = node.local / "notebook"
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*.md")}


def test_two_machines_write_one_notebook(node: Node, other: Node) -> None:
    """Each follows the other, has every note once, and a copy that is lost is made anew."""
    for number in range(3):
        noted(node, f"Alpha {number}")
        noted(other, f"Beta {number}")
    assert subjects(node) == subjects(other)
    assert len(subjects(node)) == 7
    assert notes_of(node) == notes_of(other)
    assert len(notes_of(node)) == 7
    docs = node.run("ls", "--json").json["docs"]
    assert sorted(row["title"] for row in docs) == [
        *("Alpha 0", "Alpha 1", "Alpha 2", "Beta 0", "Beta 1", "Beta 2"),
    ]
    assert next(hit["title"] for hit in node.hits("words on Beta 2")) == "Beta 2"
    shutil.rmtree(node.local)
    noted(node, "Gamma")
    assert subjects(other)[0] == subjects(node)[0] == "work/gamma.md"
    assert notes_of(node) == notes_of(other)
    status = run(["git", "-C", str(node.local / "notebook"), "status", "--porcelain"])
    assert (status.code, status.out) == (0, "")
    fsck = run(["git", "-C", str(node.local / "notebook"), "fsck", "--strict"])
    assert fsck.code == 0, fsck.err
    for machine in (node, other):
        assert machine.run("sync-all", "--interval-min", "0").code == 0
        assert machine.run("check").code == 0
    assert len(node.run("ls", "--json").json["docs"]) == 7


def test_undo_and_tidy_reach_the_other_machine(node: Node, other: Node) -> None:
    """A note that is taken back on one machine is gone on both, and so is its doc."""
    noted(node, "Keep")
    added = node.run("note", "add", "--wait", "--json", "# Drop\n\nDrop it.\n")
    assert added.code == 0, added.err
    undone = other.run("note", "undo", added.json["job_id"])
    assert undone.code == 0, undone.err
    assert [row["title"] for row in node.run("ls", "--json").json["docs"]] == ["Keep"]
    assert node.run("note", "tidy").code == 0
    assert notes_of(node) == notes_of(other)
    assert not any("drop" in path for path in notes_of(node))


@pytest.mark.parametrize(
    "point",
    ["after_objects", "after_share", "before_ref", "after_ref", "after_level", "after_intake"],
)
def test_a_machine_that_dies_leaves_one_note(node: Node, other: Node, point: str) -> None:
    """Whatever step it dies at, another machine places the note, once, and both are level."""
    noted(node, "First")
    text = "# Second\n\nIt was to be placed.\n"
    assert node.run("note", "add", "--hint", "work", text).code == 0
    env = {**node.env, "KB_FAILPOINTS": f"notebook.{point}=kill"}
    died = subprocess.run(node.argv("worker", "--drain"), env=env, capture_output=True, check=False)
    assert died.returncode == -signal.SIGKILL
    # On the same host a dead holder is found out at once.
    assert other.run("worker", "--drain").code == 0
    noted(node, "Third")
    assert subjects(node) == subjects(other)
    assert sum("second" in subject for subject in subjects(node)) == 1
    assert notes_of(node) == notes_of(other)
    titles = sorted(row["title"] for row in other.run("ls", "--json").json["docs"])
    assert titles == ["First", "Second", "Third"]


def test_commits_of_a_person_are_not_lost(node: Node, other: Node) -> None:
    """A machine whose copy has commits of its own places no notes, and says what to do."""
    noted(node, "First")
    folder = str(node.local / "notebook")
    (node.local / "notebook" / "mine.md").write_text("# Mine\n")
    git = ["git", "-C", folder, "-c", "user.name=x", "-c", "user.email=x@y"]
    assert run([*git, "add", "mine.md"]).code == 0
    assert run([*git, "commit", "-m", "mine"]).code == 0
    noted(other, "Second")
    log = node.run("note", "log")
    assert (log.code, "refs/kb/shared" in log.err) == (1, True), log.err
    assert run([*git, "reset", "--keep", "refs/kb/shared"]).code == 0
    noted(node, "Third")
    assert subjects(node) == subjects(other)
    assert os.path.lexists(folder)
