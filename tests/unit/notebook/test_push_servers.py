"""Pushes to real servers: git's own over HTTP, ssh's stand-in; and servers that do wrong."""

import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from certificates import certificate, speaking
from git_host import bare, breaks_off, host, ssh_stand_in
from loopback import Answer, LoopbackServer, dripping, moved, serving
from notebooks import git, needs_git
from push_home import PushHome

pytestmark = needs_git

LOGIN: Final = "ada:s3cret"


@pytest.fixture
def home(tmp_path: Path) -> Iterator[PushHome]:
    home = PushHome(tmp_path)
    yield home
    home.close()


@pytest.fixture
def server() -> Iterator[LoopbackServer]:
    with serving() as running:
        yield running


def test_pushed_over_http(
    home: PushHome, tmp_path: Path, server: LoopbackServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A login is shown where one is set, and is asked for where it is wanted."""
    open_one = bare(tmp_path)
    first = home.tried(host(server, open_one))
    assert (first.state, first.last_error) == ("pushed", None)
    assert home.is_level(open_one)
    assert all("Authorization" not in asked.headers for asked in server.requests)
    git(home.root, "commit", "-q", "--allow-empty", "-m", "More")
    address = host(server, open_one, LOGIN)
    found = home.tried(address)
    assert (found.state, found.behind) == ("refused", 1)
    assert "KB_NOTEBOOK_TOKEN" in (found.last_error or "")
    home.bound_to(f"127.0.0.1:{server.port}")
    monkeypatch.setenv("KB_NOTEBOOK_USER", "ada")
    monkeypatch.setenv("KB_NOTEBOOK_TOKEN", "wrong")
    assert home.tried(address).state == "refused"
    monkeypatch.setenv("KB_NOTEBOOK_TOKEN", "s3cret")
    assert home.tried(address).state == "pushed"
    assert home.is_level(open_one)


def test_a_redirect_is_not_followed(
    home: PushHome, tmp_path: Path, server: LoopbackServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where it leads is told, and no login goes there."""
    monkeypatch.setenv("KB_NOTEBOOK_TOKEN", "s3cret")
    there = "/other.git/info/refs?service=git-receive-pack"
    server.routes["/notes.git/info/refs?service=git-receive-pack"] = moved(server.url(there))
    found = home.tried(server.url("/notes.git"))
    assert found.state == "refused"
    assert f"redirects to {server.url('/other.git')}" in (found.last_error or "")
    assert len(server.requests) == 1


def test_pushed_over_tls(home: PushHome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Only to a server whose certificate is good."""
    proof = certificate(tmp_path, "localhost")
    repo = bare(tmp_path)
    with serving(speaking(proof)) as server:
        address = host(server, repo).replace("127.0.0.1", "localhost")
        found = home.tried(address)
        assert found.state == "waiting"
        assert "CERTIFICATE_VERIFY_FAILED" in (found.last_error or "")
        monkeypatch.setenv("SSL_CERT_FILE", str(proof))
        assert home.tried(address).state == "pushed"
    assert home.is_level(repo)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (Answer(b"busy", 503), "status 503"),
        (Answer(b"odd", 200, {"Content-Type": "text/html"}), "cannot be read"),
        (
            Answer(b"zz", 200, {"Content-Type": "application/x-git-receive-pack-advertisement"}),
            "Invalid pkt-line",
        ),
    ],
)
def test_a_server_that_fails(
    home: PushHome, server: LoopbackServer, answer: Answer, words: str
) -> None:
    """It is tried again later."""
    server.routes["/notes.git/info/refs?service=git-receive-pack"] = answer
    found = home.tried(server.url("/notes.git"))
    assert (found.state, found.next_ms) == ("waiting", found.tried_ms + 15_000)
    assert words in (found.last_error or "")


def test_a_server_that_hangs_up_in_the_middle(
    home: PushHome, tmp_path: Path, server: LoopbackServer
) -> None:
    """It has the commits and could not say so: the next try finds that, and sends nothing."""
    repo = bare(tmp_path)
    address = host(server, repo)
    breaks_off(server)
    assert home.tried(address).state == "waiting"
    assert home.is_level(repo)
    count = len(server.requests)
    home.home.clock.advance(15_000)
    home.pusher.push_if_due()
    found = home.pusher.report()
    assert found is not None
    assert (found.state, found.attempts) == ("pushed", 0)
    assert len(server.requests) == count + 1


@pytest.mark.parametrize("how", ["silent", "dripping"])
def test_a_server_that_takes_forever(home: PushHome, server: LoopbackServer, how: str) -> None:
    """A try ends in time, also one that is kept busy byte by byte."""
    path = "/notes.git/info/refs?service=git-receive-pack"
    head = (
        b"HTTP/1.1 200 OK\r\nContent-Type: application/x-git-receive-pack-advertisement\r\n\r\nfff0"
    )
    silent = lambda handler: handler.server.stopping.wait(240) and None  # noqa: E731
    server.routes[path] = dripping(head) if how == "dripping" else silent
    home.seconds_max = 1
    began = time.monotonic()
    found = home.tried(server.url("/notes.git"))
    assert time.monotonic() - began < 60
    assert (found.state, found.last_error) == ("waiting", "it took longer than 1 s")


def test_pushed_over_ssh(home: PushHome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The system's ssh is called with fixed words; no setting or variable of git's changes that."""
    repo = bare(tmp_path)
    fake = ssh_stand_in(tmp_path / "bin", "os.execvp('sh', ['sh', '-c', argv[-1]])")
    monkeypatch.setenv("PATH", f"{fake}:{Path(shutil.which('git') or '').parent}:/usr/bin:/bin")
    evil = f"touch {tmp_path}/touched"
    git(home.root, "config", "core.sshCommand", evil)
    monkeypatch.setenv("GIT_SSH_COMMAND", evil)
    monkeypatch.setenv("GIT_SSH", evil)
    found = home.tried(f"ssh://ada@box.example:2222{repo}")
    assert (found.state, found.last_error) == ("pushed", None)
    assert home.is_level(repo)
    assert json.loads((fake / "ssh.argv").read_text()) == [
        *("-T", "-a", "-x", "-o", "BatchMode=yes", "-o", "ConnectTimeout=15"),
        *("-o", "ServerAliveInterval=15", "-o", "ServerAliveCountMax=2"),
        *("-p", "2222", "--", "ada@box.example", f"git-receive-pack '{repo}'"),
    ]
    assert not (tmp_path / "touched").exists()


@pytest.mark.parametrize(
    ("body", "state", "words"),
    [
        ("sys.exit('Permission denied (publickey).')", "refused", "Permission denied"),
        ("sys.exit('ssh: connect to host box port 22: timed out')", "waiting", "timed out"),
        ("sys.stderr.write('x' * 200_000); sys.exit(1)", "waiting", "xxx"),
        ("import time; time.sleep(60)", "waiting", "longer than 1 s"),
    ],
)
def test_an_ssh_that_fails(
    home: PushHome,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    body: str,
    state: str,
    words: str,
) -> None:
    """What it says of it is kept, bounded; one that hangs is ended."""
    fake = ssh_stand_in(tmp_path / "bin", body)
    monkeypatch.setenv("PATH", f"{fake}:/usr/bin:/bin")
    home.seconds_max = 1 if "sleep" in body else None
    found = home.tried("box.example:notes.git")
    assert found.state == state
    assert found.last_error is not None
    assert words in found.last_error
    assert len(found.last_error) <= 300


def test_a_remote_that_declines(home: PushHome, tmp_path: Path, server: LoopbackServer) -> None:
    """What its hook says is kept."""
    repo = bare(tmp_path)
    (repo / "hooks").mkdir(exist_ok=True)
    (repo / "hooks/pre-receive").write_text("#!/bin/sh\necho no >&2; exit 1\n")
    (repo / "hooks/pre-receive").chmod(0o755)
    found = home.tried(host(server, repo))
    assert (found.state, found.last_error) == ("refused", "pre-receive hook declined")
