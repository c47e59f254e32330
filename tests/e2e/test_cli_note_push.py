"""`kb note push` and the setting: when the notebook is pushed, what is told of it, and by whom."""

from pathlib import Path
from typing import Final

import pytest
from crash_rig import Rig
from git_host import bare, tip
from http_server import ConfiguredHome, serving, until
from notebooks import commit_file, git, needs_git

pytestmark = needs_git

PUSHES: Final = ("notebook.push=true",)


@pytest.fixture
def home(tmp_path: Path) -> Rig:
    """A home whose notebook has one note and a remote that has nothing yet."""
    made = Rig(tmp_path)
    assert made.call("note", "add", "--wait", "# One\n").code == 0
    git(book(made), "remote", "add", "origin", str(bare(tmp_path)))
    return made


def book(home: Rig) -> Path:
    return home.home / "notebook"


def is_level(home: Rig, remote: Path) -> bool:
    return git(remote, "branch", "--list") != "" and tip(remote) == tip(book(home))


def diverge(home: Rig, remote: Path) -> None:
    """Somebody else pushes a commit, and a note comes here."""
    other = remote.parent / "other"
    git(remote.parent, "clone", "-q", str(remote), str(other))
    commit_file(other, "theirs.md", "# Theirs\n")
    git(other, "push", "-q", "origin", "main")
    assert home.call("note", "add", "--wait", "# Two\n").code == 0


def test_pushing_by_hand(home: Rig, tmp_path: Path) -> None:
    """It says how it went; log, stats and doctor say how it stands."""
    remote = tmp_path / "notes.git"
    assert home.call("note", "log").err == ""
    assert home.call("stats", "--json").json["push"] is None
    pushed = home.call("note", "push")
    assert (pushed.code, pushed.out, pushed.err) == (0, f"{remote} has every commit\n", "")
    assert is_level(home, remote)
    diverge(home, remote)
    assert home.call("note", "log").err == f"kb: {remote} is 1 commit behind\n"
    refused = home.call("note", "push", "--json")
    assert (refused.code, refused.json["state"], refused.json["behind"]) == (1, "diverged", 1)
    assert refused.err.startswith(f"kb: {remote}: not pushed: diverged: the remote has commits ")
    told = home.call("note", "log").err
    assert told.startswith(f"kb: {remote} is 1 commit behind; diverged: ")
    assert "tried again" not in told
    assert f"notebook  {remote} is 1 commit behind; diverged: " in home.call("stats").out
    assert f"notebook: {remote} is 1 commit behind: " in home.call("doctor").out
    git(book(home), "pull", "-q", "--no-rebase", "--no-edit", "origin", "main")
    assert home.call("note", "push").code == 0
    assert not home.call("doctor").out.startswith("notebook:")


def test_nothing_is_pushed_unasked(home: Rig, tmp_path: Path) -> None:
    """Without the setting no worker does it, and with it no command that places a note."""
    remote = tmp_path / "notes.git"
    assert home.call("worker", "--drain").code == 0
    assert home.call("note", "add", "--wait", "# Two\n", cfg=PUSHES).code == 0
    assert git(remote, "branch", "--list") == ""


def test_a_worker_that_drains_pushes_once(home: Rig, tmp_path: Path) -> None:
    """After the work; where it fails that is told, and the work counts as done."""
    remote = tmp_path / "notes.git"
    assert home.call("note", "add", "# Two\n").code == 0
    drained = home.call("worker", "--drain", cfg=PUSHES)
    assert (drained.code, drained.err) == (0, "")
    assert is_level(home, remote)
    diverge(home, remote)
    drained = home.call("worker", "--drain", cfg=PUSHES)
    assert (drained.code, drained.out) == (0, "0 jobs left, 0 failed\n")
    assert drained.err.startswith(f"kb: {remote} is 1 commit behind; diverged: ")
    assert "; tried again at 2" in drained.err


def test_a_server_pushes_what_it_places(home: Rig, tmp_path: Path) -> None:
    """A note that is handed in over HTTP is at the remote a little later; SIGTERM ends it soon."""
    remote = tmp_path / "notes.git"
    with serving(ConfiguredHome(home.home, ("--cfg", *PUSHES)), env=home.env()) as server:
        assert server.post("/content", {"content": "# Two\n", "hint": "work"}).status == 202
        until(lambda: (book(home) / "work/two.md").exists() and is_level(home, remote))
        # The remote has it a moment before that is written down here.
        until(lambda: home.call("note", "log").err == f"kb: {remote} has every commit\n")
        assert server.stop()[0] == 0


def test_what_a_project_brings_sends_nothing(tmp_path: Path) -> None:
    """A project cannot ask for it, and its notebook is pushed by hand alone."""
    home = Rig(tmp_path)
    home.home = tmp_path / "cloned/.kb"
    assert home.call("note", "add", "--wait", "# Mine\n").code == 0
    remote = bare(tmp_path)
    git(book(home), "remote", "add", "origin", str(remote))
    assert home.call("worker", "--drain", cfg=PUSHES).code == 0
    assert git(remote, "branch", "--list") == ""
    (home.home / "kb.toml").write_text("[notebook]\npush = true\n")
    told = home.call("worker", "--drain")
    assert "kb.toml: notebook.push comes with the project" in told.err
    assert git(remote, "branch", "--list") == ""
    assert home.call("note", "push", "--yes").code == 0
    assert is_level(home, remote)


def test_no_login_is_told(home: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """Neither of an address nor from the environment, in any output or in the store."""
    git(book(home), "config", "remote.origin.url", "https://ada:s3cret@127.0.0.1:1/n.git")
    monkeypatch.setenv("KB_NOTEBOOK_TOKEN", "t0ken")
    said = [home.call("note", "push")]
    git(book(home), "config", "remote.origin.url", "https://127.0.0.1:1/n.git")
    said += [home.call(*words) for words in (("note", "push"), ("stats",), ("doctor",))]
    assert [one.code for one in said] == [1, 1, 0, 0]
    told = "".join(one.out + one.err for one in said)
    assert "https://127.0.0.1:1/n.git" in told
    assert "s3cret" not in told
    assert "t0ken" not in told
    stored = (home.home / "store/data.mdb").read_bytes()
    assert b"s3cret" not in stored
    assert b"t0ken" not in stored
