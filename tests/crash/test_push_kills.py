"""A kill in the middle of a push, and what the next one makes of it."""

import signal
from pathlib import Path
from typing import Final

import pytest
from crash_rig import Rig
from git_host import bare, tip
from notebooks import git, needs_git

from kb.model import failpoints

pytestmark = needs_git

KILLED: Final = -signal.SIGKILL
POINTS: Final = [name for name in failpoints.NAMES if name.startswith("push.")]


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    """A home whose notebook has a note, and a remote that has nothing."""
    rig = Rig(tmp_path)
    assert rig.call("note", "add", "--wait", "# One\n").code == 0
    git(rig.home / "notebook", "remote", "add", "origin", str(bare(tmp_path)))
    return rig


def assert_goes_on(rig: Rig) -> None:
    """The next push brings the remote level; both sides are whole."""
    remote = rig.root / "notes.git"
    pushed = rig.call("note", "push", "--json")
    assert (pushed.code, pushed.json["state"], pushed.json["behind"]) == (0, "pushed", 0)
    assert tip(remote) == tip(rig.home / "notebook")
    for repo in (remote, rig.home / "notebook"):
        assert git(repo, "fsck", "--strict", "--no-dangling") == ""
        assert not list(repo.rglob("*.lock"))
    rig.check()


def test_killed_before_the_state_is_kept(rig: Rig) -> None:
    """The remote has the commits and the home does not know: the next push finds it."""
    assert rig.run("note", "push", armed="push.after_send=kill").code == KILLED
    assert tip(rig.root / "notes.git") == tip(rig.home / "notebook")
    assert rig.stats()["push"] is None
    assert_goes_on(rig)


def test_the_sender_is_killed(rig: Rig) -> None:
    """The remote has nothing; the push counts as one that missed, and is tried again."""
    said = rig.run("note", "push", "--json", armed="push.before_send=kill")
    assert (said.code, said.json["state"], said.json["attempts"]) == (1, "waiting", 1)
    assert git(rig.root / "notes.git", "branch", "--list") == ""
    assert_goes_on(rig)


@pytest.mark.parametrize("name", ["store.before_commit", "store.after_commit"])
def test_killed_while_the_state_is_kept(rig: Rig, name: str) -> None:
    """Kept or not, the next push is as if nothing had been."""
    assert rig.run("note", "push", armed=f"{name}=kill").code == KILLED
    assert (rig.stats()["push"] is None) == (name == "store.before_commit")
    assert_goes_on(rig)


def test_a_worker_that_is_killed_pushes_later(rig: Rig) -> None:
    """Work that is done is pushed by the next worker."""
    push = ("notebook.push=true",)
    assert rig.call("note", "add", "# Two\n").code == 0
    killed = rig.run("worker", "--drain", armed="push.after_send=kill", cfg=push)
    assert killed.code == KILLED
    assert rig.call("note", "add", "# Three\n").code == 0
    assert rig.call("worker", "--drain", cfg=push).code == 0
    assert tip(rig.root / "notes.git") == tip(rig.home / "notebook")
    assert_goes_on(rig)


def test_every_failpoint_of_a_push_fires(rig: Rig) -> None:
    """Each is in the way of a push, and is armed above."""
    assert rig.run("note", "push").code == 0
    assert POINTS == ["push.before_send", "push.after_send"]
    assert [name for name in rig.hit() if name in POINTS] == POINTS
