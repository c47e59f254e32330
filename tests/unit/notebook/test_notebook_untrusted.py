"""A notebook that came with a project: whatever its `.git` says, nothing outside is touched."""

import base64
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from git_host import bare, host
from loopback import Answer, Handler, LoopbackServer, moved, reply, serving
from notebooks import NOW_MS, WAIT_S, NoteHome, git, needs_git
from push_home import PushHome

from kb.errors import NotebookUnfit
from kb.intake.git.transport import Login
from kb.knowledge.notebook import log
from kb.knowledge.notebook.opening import at_work

READ = "/notes.git/info/refs?service=git-receive-pack"
SEND = "/notes.git/git-receive-pack"
BASIC = Answer(b"no", 401, {"WWW-Authenticate": 'Basic realm="notes"'})


@pytest.fixture
def home(tmp_path: Path) -> Iterator[NoteHome]:
    home = NoteHome(tmp_path)
    home.place("# One\n\nHere stands one.\n", "work")
    yield home
    home.close()


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A folder of the person's, beside the notebook."""
    folder = tmp_path / "mine"
    (folder / "heads").mkdir(parents=True)
    for name in ("config", "HEAD", "id", "heads/main", "new", "index"):
        (folder / name).write_text(f"my {name}\n", "utf-8")
    return folder


def held(folder: Path) -> dict[str, bytes | None]:
    found = sorted(folder.rglob("*"))
    return {str(one): one.read_bytes() if one.is_file() else None for one in found}


def swapped(place: Path, target: Path) -> None:
    """Have a link where something stood."""
    if place.exists():
        place.rename(place.with_name(place.name + ".was"))
    place.symlink_to(target)


LINKS = ["kb", "objects", "objects/pack", "refs", "refs/heads", "refs/heads/main", "info"]
LINKS += ["HEAD", "config", "index", "packed-refs", "shallow"]


@pytest.mark.parametrize("name", LINKS)
def test_a_link_in_git_is_not_followed(home: NoteHome, outside: Path, name: str) -> None:
    """Not to be read, not to be written, and not to be emptied of what stale locks look like."""
    before = held(outside)
    is_file = name in ("HEAD", "config", "index", "packed-refs", "shallow", "refs/heads/main")
    swapped(home.root / ".git" / name, outside / "id" if is_file else outside)
    assert home.place("# Two\n").status == "queued"
    with pytest.raises(NotebookUnfit, match=rf"{name} in its \.git is a link"):
        home.open()
    with pytest.raises(NotebookUnfit):
        log(home.root, 9)
    assert held(outside) == before


@pytest.mark.parametrize("name", ["HEAD", "config", "index", "objects/pack/pack-1.pack"])
def test_a_pipe_in_git_holds_nobody(home: NoteHome, name: str) -> None:
    """It is refused, and not waited for."""
    (home.root / ".git" / name).unlink(missing_ok=True)
    os.mkfifo(home.root / ".git" / name)
    with pytest.raises(NotebookUnfit):
        home.open()


def test_a_pipe_for_an_object_holds_nobody(home: NoteHome) -> None:
    """Loose objects are too many to look at: each is looked at as it is read."""
    for one in sorted((home.root / ".git/objects").glob("??/*")):
        one.unlink()
        os.mkfifo(one)
    with pytest.raises(NotebookUnfit, match="damaged"):
        home.open()


def test_objects_of_another_repository(home: NoteHome, tmp_path: Path) -> None:
    """They are not taken: a push would send them on."""
    (home.root / ".git/objects/info/alternates").write_text(f"{tmp_path}/private/.git/objects\n")
    with pytest.raises(NotebookUnfit, match="takes objects from another repository"):
        home.open()


def test_refs_in_another_folder(home: NoteHome, outside: Path) -> None:
    """Git's word for a linked work tree is not followed."""
    before = held(outside)
    (home.root / ".git/commondir").write_text(f"{outside}\n")
    with pytest.raises(NotebookUnfit, match="commondir"):
        home.open()
    assert held(outside) == before


@needs_git
def test_settings_that_run_or_read_something(home: NoteHome, tmp_path: Path) -> None:
    """No file is included, no filter, hook or helper is run, and no proxy is asked."""
    touch = f"touch {tmp_path}/touched"
    with serving() as server:
        (tmp_path / "other.config").write_text("[core]\n\tbare = true\n", "utf-8")
        for key, value in {
            "include.path": f"{tmp_path}/other.config",
            "includeIf.gitdir:/.path": f"{tmp_path}/other.config",
            "core.sshCommand": touch,
            "core.hooksPath": f"{tmp_path}/hooks",
            "core.fsmonitor": touch,
            "core.bigFileThreshold": "1",
            "credential.helper": f"!{touch}",
            "filter.x.clean": touch,
            "filter.x.smudge": touch,
            "http.proxy": server.url("/"),
            "gpg.program": touch,
            "commit.gpgSign": "true",
        }.items():
            git(home.root, "config", key, value)
        (home.root / ".git/info").mkdir(exist_ok=True)
        (home.root / ".git/info/attributes").write_text("* filter=x\n", "utf-8")
        (tmp_path / "hooks").mkdir()
        hook = tmp_path / "hooks/post-commit"
        hook.write_text(f"#!/bin/sh\n{touch}\n", "utf-8")
        hook.chmod(0o755)
        assert home.place("# Two\n\nHere stands two.\n", "work").status == "done"
        assert server.requests == []
    assert home.committed() == home.seen()
    assert not (tmp_path / "touched").exists()


def test_a_tree_that_leads_out(home: NoteHome, tmp_path: Path) -> None:
    """A commit whose tree names `..` is damage: ending what was begun writes nothing outside."""
    from dulwich.objects import Blob, Commit, Tree

    objects = []

    def tree(name: bytes, mode: int, inner: bytes) -> Tree:
        made = Tree()
        made.add(name, mode, inner)
        objects.append(made)
        return made

    blob = Blob.from_string(b"theirs\n")
    top = tree(b"..", 0o40000, tree(b"evil.md", 0o100644, blob.id).id)
    with at_work(home.root, NOW_MS, WAIT_S) as repository:
        head = repository.head()
        commit = Commit()
        commit.tree, commit.parents, commit.message = top.id, [head.commit], b"Evil\n"
        commit.author = commit.committer = b"e <e>"
        commit.author_time = commit.commit_time = 1
        commit.author_timezone = commit.commit_timezone = 0
        repository.git.write_objects([blob, *objects, commit])
    (home.root / ".git" / head.branch).write_bytes(commit.id + b"\n")
    said = {"from": head.commit.decode(), "to": commit.id.decode()}
    (home.root / ".git/kb/intent").write_text(json.dumps(said), "utf-8")
    with pytest.raises(NotebookUnfit, match="damaged"):
        home.open()
    assert not (tmp_path / "evil.md").exists()
    assert not list(tmp_path.glob("**/evil.md"))


@pytest.mark.parametrize("name", ["..%2F..%2Fmine%2Fid", "%2Fmine"])
def test_a_stale_lock_of_ours_lies_in_git(home: NoteHome, tmp_path: Path, name: str) -> None:
    """What names a place elsewhere frees nothing there."""
    lock = tmp_path / "mine/id.lock"
    lock.parent.mkdir()
    lock.write_text("mine", "utf-8")
    os.link(lock, home.root / ".git/kb" / name)
    home.open()
    assert lock.read_text("utf-8") == "mine"


def test_a_start_that_leads_elsewhere(tmp_path: Path, outside: Path) -> None:
    """The folder in which `.git` is made may not be a link."""
    home = NoteHome(tmp_path)
    before = held(outside)
    home.root.mkdir()
    (home.root / ".git.kb-new").symlink_to(outside)
    home.open()
    assert held(outside) == before
    assert (home.root / ".git/HEAD").is_file()
    home.close()


@pytest.fixture
def pushing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[PushHome]:
    """A notebook to be pushed, by a person who has a token."""
    monkeypatch.setenv("KB_NOTEBOOK_USER", "ada")
    monkeypatch.setenv("KB_NOTEBOOK_TOKEN", "s3cret")
    home = PushHome(tmp_path)
    yield home
    home.close()


@pytest.fixture
def server() -> Iterator[LoopbackServer]:
    with serving() as running:
        yield running


def shown(server: LoopbackServer) -> list[str | None]:
    return [asked.headers.get("Authorization") for asked in server.requests]


BASIC_OF_ADA = f"Basic {base64.b64encode(b'ada:s3cret').decode()}"


@needs_git
def test_a_token_waits_to_be_asked_for(
    pushing: PushHome, tmp_path: Path, server: LoopbackServer
) -> None:
    """Its host gets it after a challenge, and from then on; one that asks for none gets none."""
    repo = bare(tmp_path)
    pushing.bound_to(f"127.0.0.1:{server.port}")
    assert pushing.tried(host(server, repo)).state == "pushed"
    assert set(shown(server)) == {None}
    server.requests.clear()
    git(pushing.root, "commit", "-q", "--allow-empty", "-m", "More")
    assert pushing.tried(host(server, repo, "ada:s3cret")).state == "pushed"
    assert shown(server) == [None, BASIC_OF_ADA, BASIC_OF_ADA]
    assert pushing.is_level(repo)


@needs_git
@pytest.mark.parametrize("named", ["", "127.0.0.1", "localhost:{port}", "127.0.0.1:1", "evil"])
def test_a_token_is_for_the_host_that_the_user_names(
    pushing: PushHome, server: LoopbackServer, named: str
) -> None:
    """Another one may ask as it likes, and is told nothing; the person is told what to do."""
    server.routes[READ] = BASIC
    pushing.bound_to(named.format(port=server.port))
    found = pushing.tried(server.url("/notes.git"))
    assert (found.state, shown(server)) == ("refused", [None])
    assert f'notebook.token_host = "127.0.0.1:{server.port}"' in (found.last_error or "")


@needs_git
@pytest.mark.parametrize("is_asked_first", [False, True])
def test_a_token_does_not_follow_a_redirect(
    pushing: PushHome, server: LoopbackServer, is_asked_first: bool
) -> None:
    """Neither before it was asked for nor after."""
    with serving() as other:
        there = moved(other.url(READ), 307)

        def asks(handler: Handler) -> None:
            is_told = handler.headers.get("Authorization")
            reply(handler, BASIC if is_asked_first and not is_told else there)

        other.routes[READ] = BASIC
        server.routes[READ] = asks
        pushing.bound_to(f"127.0.0.1:{server.port}")
        found = pushing.tried(server.url("/notes.git"))
        assert found.state == "refused"
        assert "redirects to" in (found.last_error or "")
        assert other.requests == []


@needs_git
def test_a_large_push_asks_before_it_sends(
    pushing: PushHome, tmp_path: Path, server: LoopbackServer
) -> None:
    """What is streamed can be sent once: whether it wants a login is asked before."""
    repo = bare(tmp_path)
    address = host(server, repo)
    take = server.routes[SEND]
    assert not isinstance(take, Answer)
    (pushing.root / "big.bin").write_bytes(os.urandom(3 << 20))
    git(pushing.root, "add", "big.bin")
    git(pushing.root, "commit", "-q", "-m", "Big")
    bodies = []

    def guarded(handler: Handler) -> None:
        bodies.append(handler.headers.get("Transfer-Encoding"))
        if handler.headers.get("Authorization") != BASIC_OF_ADA:
            reply(handler, BASIC)
        else:
            take(handler)

    server.routes[SEND] = guarded
    pushing.bound_to(f"127.0.0.1:{server.port}")
    pushing.tried(address)
    assert bodies[0] is None
    assert shown(server)[:3] == [None, None, BASIC_OF_ADA]


@pytest.mark.parametrize(
    ("challenge", "answer"),
    [
        ('Basic realm="x"', BASIC_OF_ADA),
        ('Bearer realm="x"', "Bearer s3cret"),
        ('Negotiate, basic realm="x"', BASIC_OF_ADA),
        ("Negotiate", None),
        ("", None),
        ('Digest realm="a basic one"', None),
    ],
)
def test_challenges(challenge: str, answer: str | None) -> None:
    """A token answers two of them; without a token none is answered."""
    assert Login(user="ada", token="s3cret").answer_to(challenge) == answer
    assert Login(user="ada", token="").answer_to(challenge) is None
