"""The notebook pushed to folders: once, in time, never by force, and beside all other work."""

import shutil
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from git_host import bare, tip
from http_server import until
from notebooks import commit_file, git, needs_git
from push_home import PushHome

from kb.errors import NotPushed
from kb.knowledge.notebook import Pusher, Sender
from kb.knowledge.notebook.push import pushing
from kb.knowledge.notebook.sending import Outcome, PushAccepted, PushFailed, SendRequest

pytestmark = needs_git


@pytest.fixture
def home(tmp_path: Path) -> Iterator[PushHome]:
    home = PushHome(tmp_path)
    yield home
    home.close()


@pytest.mark.parametrize("form", ["{}", "file://{}", "../notes.git"])
def test_pushed_to_a_folder(home: PushHome, tmp_path: Path, form: str) -> None:
    """However many commits, one push; the remote is whole, and no hook has run on either side."""
    repo = bare(tmp_path)
    for folder in (repo / "hooks", home.root / ".git/hooks"):
        folder.mkdir(exist_ok=True)
        for name in ("pre-receive", "update", "post-receive", "post-update", "pre-push"):
            (folder / name).write_text(f"#!/bin/sh\ntouch '{tmp_path}/hooked'\nexit 1\n")
            (folder / name).chmod(0o755)
    found = home.tried(form.format(repo))
    assert (found.state, found.behind, found.last_error) == ("pushed", 0, None)
    for number in range(3):
        home.place(f"# Note {number}\n", "work")
    later = home.pusher.report()
    assert later is not None
    assert (later.state, later.behind) == ("pushed", 3)
    home.pusher.push_if_due()
    home.pusher.push_if_due()
    assert len(home.requests) == 2
    assert home.is_level(repo)
    assert git(repo, "fsck", "--strict", "--no-dangling") == ""
    assert not (tmp_path / "hooked").exists()
    assert git(home.root, "status", "--porcelain") == ""


def test_a_remote_that_has_moved_on(home: PushHome, tmp_path: Path) -> None:
    """Nothing is forced: it is said, notes go on, and once merged it is pushed."""
    repo = bare(tmp_path)
    home.tried(repo)
    git(tmp_path, "clone", "-q", str(repo), "other")
    commit_file(tmp_path / "other", "theirs.md", "# Theirs\n")
    git(tmp_path / "other", "push", "-q", "origin", "main")
    theirs = tip(repo)
    home.place("# Two\n", "work")
    home.pusher.push_if_due()
    found = home.pusher.report()
    assert found is not None
    assert (found.state, found.remote_commit, found.behind) == ("diverged", theirs, 1)
    assert tip(repo) == theirs
    assert home.place("# Three\n", "work").status == "done"
    home.pusher.push_if_due()
    assert len(home.requests) == 2
    git(home.root, "pull", "-q", "--no-rebase", "--no-edit", "origin", "main")
    home.home.clock.advance(60_000)
    home.pusher.push_if_due()
    assert home.is_level(repo)
    git(home.root, "reset", "-q", "--hard", "HEAD~1")
    assert home.pusher.push().state == "diverged"


@pytest.mark.parametrize(
    ("address", "state", "words"),
    [
        ("{}/none.git", "refused", "no git repository"),
        ("{}/book", "refused", "files checked out"),
        ("{}/other", "refused", "files checked out"),
        ("ext::sh -c 'touch {}/touched'", "refused", "helper programs"),
        ("git://127.0.0.1/n", "refused", "uses no such address for git"),
        ("https://ada:s3cret@example.org/n", "refused", "KB_NOTEBOOK_TOKEN"),
        ("http://127.0.0.1:1/n", "waiting", "cannot be reached"),
    ],
)
def test_a_remote_that_cannot_be_pushed_to(
    home: PushHome, tmp_path: Path, address: str, state: str, words: str
) -> None:
    """Why is kept and told, with no login in it; no program is started, and notes go on."""
    git(tmp_path, "init", "-q", "other")
    found = home.tried(address.format(tmp_path))
    assert (found.state, found.attempts) == (state, 1)
    assert found.last_error is not None
    assert words in found.last_error
    assert "s3cret" not in msgspec.json.encode(found).decode()
    assert not (tmp_path / "touched").exists()
    assert home.place("# Two\n", "work").status == "done"
    home.pusher.push_if_due()
    again = home.pusher.report()
    assert again is not None
    assert (again.attempts, again.behind) == (1, 3)


@pytest.mark.parametrize(
    ("key", "value", "words"),
    [
        ("remote.origin.pushurl", "/elsewhere", "pushurl"),
        ("url.ext::x.insteadOf", "/", "insteadOf"),
        ("url.ext::x.pushInsteadOf", "/", "insteadOf"),
    ],
)
def test_an_address_that_git_would_write_otherwise(
    home: PushHome, tmp_path: Path, key: str, value: str, words: str
) -> None:
    """What git's settings would make of it is not followed, but said."""
    repo = bare(tmp_path)
    git(home.root, "config", key, value)
    found = home.tried(repo)
    assert found.state == "refused"
    assert words in (found.last_error or "")


def test_without_a_remote(home: PushHome, tmp_path: Path) -> None:
    """Nothing is due, nothing is kept; asked for, it is said what is missing."""
    home.pusher.push_if_due()
    assert home.pusher.report() is None
    with pytest.raises(NotPushed, match="git remote add origin"):
        home.pusher.push()
    shutil.rmtree(home.root)
    with pytest.raises(NotPushed):
        home.pusher.push()
    git(tmp_path, "init", "-q", "book")
    home.origin("/nowhere")
    home.pusher.push_if_due()
    assert home.requests == []


def test_another_remote_begins_anew(home: PushHome, tmp_path: Path) -> None:
    """What is known of one address says nothing of the next."""
    home.tried("http://127.0.0.1:1/n")
    repo = bare(tmp_path)
    home.origin(repo)
    assert home.pusher.report() is None
    home.pusher.push_if_due()
    assert home.is_level(repo)


def test_a_dead_remote_touches_nothing(home: PushHome, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thread keeps the notebook level; what it waits for ends with the block, at once."""
    monkeypatch.setattr("kb.knowledge.notebook.push._LOOK_S", 0.01)
    with socket.socket() as deaf:
        deaf.bind(("127.0.0.1", 0))
        deaf.listen()
        home.origin(f"http://127.0.0.1:{deaf.getsockname()[1]}/n")
        began = threading.Event()
        sender = Sender()

        def send(request: SendRequest) -> Outcome | None:
            began.set()
            return sender(request)

        pusher = Pusher(home.home.store, home.root, home.root.parent / "l", lambda: 0.0, send)
        with pushing(pusher, sender):
            assert began.wait(120)
            assert home.place("# Two\n", "work").status == "done"
            ended = time.monotonic()
        assert time.monotonic() - ended < 60
        assert pusher.report() is None


def test_two_that_push_send_once(home: PushHome, tmp_path: Path) -> None:
    """Who finds another at work leaves it to them."""
    repo = bare(tmp_path)
    home.origin(repo)
    at_work, go_on = threading.Event(), threading.Event()

    def slow(request: SendRequest) -> Outcome | None:
        at_work.set()
        assert go_on.wait(240)
        return home.send(request)

    lock = home.root.parent / "push.lock"
    first = Pusher(home.home.store, home.root, lock, lambda: 0.0, slow)
    thread = threading.Thread(target=first.push_if_due)
    thread.start()
    assert at_work.wait(120)
    home.pusher.push_if_due()
    assert home.requests == []
    go_on.set()
    thread.join()
    home.pusher.push_if_due()
    assert len(home.requests) == 1
    assert home.is_level(repo)


def test_a_sender_that_dies(home: PushHome, monkeypatch: pytest.MonkeyPatch) -> None:
    """It counts as a try that missed."""
    monkeypatch.setattr("kb.model.children.sys.executable", "/bin/false")
    home.origin("/nowhere")
    request = SendRequest(
        root=str(home.root),
        remote=home.pusher._target().remote,  # type: ignore[union-attr,arg-type]
        branch="refs/heads/main",
        commit="0" * 40,
        seconds_max=1,
    )
    assert isinstance(Sender()(request), PushFailed)


def test_an_answer_counts_though_it_was_called_off(
    home: PushHome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever ends while a push ends has pushed, and writes so down."""
    child, answered = tmp_path / "child", tmp_path / "answered"
    accepted = msgspec.json.encode(PushAccepted()).decode()
    child.write_text(f"#!/bin/sh\necho '{accepted}'\n>'{answered}'\nexec sleep 600\n")
    child.chmod(0o755)
    monkeypatch.setattr("kb.model.children.sys.executable", str(child))
    home.origin(str(bare(tmp_path)))
    sender = Sender()
    pusher = Pusher(home.home.store, home.root, tmp_path / "lock", lambda: 0.0, sender)
    with pushing(pusher, sender):
        until(answered.exists)
    report = pusher.report()
    assert report is not None
    assert (report.state, report.behind) == ("pushed", 0)
