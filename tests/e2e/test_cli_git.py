"""Repositories by their addresses: taken in, kept current, and what they may not do."""

import json
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import picture_files as pictures
import pytest
from crash_rig import CFG, Rig, assert_adds_up
from git_host import packs_sent, serves, ssh_stand_in
from loopback import LoopbackServer, moved, serving
from notebooks import commit_file, git, needs_git

pytestmark = needs_git
SYNC = ("sync-all", "--interval-min", 0)
FILES = {
    "README.md": "# Boats\n\nAll about sails. See [the guide](docs/guide.md).\n",
    "docs/guide.md": "# Guide\n\nHow rigging works.\n",
    "docs/plain.md": "No heading, but a halyard.\n",
    "src/settings.py": "def parse_config(path):\n    return path\n",
    ".gitignore": "out/\n",
    "package-lock.json": '{"name": "locked"}\n',
}


@pytest.fixture
def server() -> Iterator[LoopbackServer]:
    with serving() as running:
        yield running


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    root = tmp_path / "boats"
    root.mkdir()
    git(root, "init", "-q", "-b", "main")
    for path, text in FILES.items():
        (root / path).parent.mkdir(exist_ok=True)
        (root / path).write_text(text)
    (root / "link.md").symlink_to("/etc/hostname")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "one")
    return root


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path, cfg=(*CFG, 'fetch.allow=["127.0.0.1"]'))


def paths(rig: Rig) -> dict[str, str]:
    """Doc ids by the path in the repository."""
    rows = rig.call("ls", "--limit", 0, "--json").json["docs"]
    return {row["source"].partition("#")[2]: row["doc_id"] for row in rows}


def reasons(report: Any) -> dict[str, str]:
    return {row["source"].partition("#")[2]: row["reason"] for row in report["problems"]}


def test_a_repository_from_add_to_removal(rig: Rig, repo: Path, server: LoopbackServer) -> None:
    """Docs and code come in; a sync lists the ref, and fetches only once that has moved."""
    address = serves(server, repo / ".git") + "@main"
    report = rig.call("add", address, "--json")
    assert report.code == 0, report.err
    assert_adds_up(report.json)
    before = paths(rig)
    assert set(before) == {"README.md", "docs/guide.md", "docs/plain.md", "src/settings.py"}
    left = reasons(report.json)
    assert left["link.md"].startswith("a symbolic link")
    assert left["package-lock.json"].startswith("a lock file")
    (hit, *_) = rig.call("search", "parseConfig", "--json").json["hits"]
    assert hit["source"] == f"{address}#src/settings.py"
    assert rig.call("ls", "--linked-to", before["docs/guide.md"], "--json").json["total"] == 1
    assert rig.call("search", "--source", address, "rigging", "--json").json["hits"]

    server.requests.clear()
    assert rig.call(*SYNC).out == f"{address}: synced\n"
    assert packs_sent(server) == 0
    git(repo, "mv", "docs/plain.md", "docs/moved.md")
    (repo / "README.md").write_text("# Boats\n\nAll about keels.\n")
    git(repo, "rm", "-q", "src/settings.py")
    git(repo, "commit", "-q", "-a", "-m", "two")
    assert (
        rig.call(*SYNC).out == f"{address}: synced, 1 updated, 2 unchanged, 1 removed, 2 skipped\n"
    )
    assert packs_sent(server) == 1
    after = paths(rig)
    assert set(after) == {"README.md", "docs/guide.md", "docs/moved.md"}
    assert after["docs/moved.md"] == before["docs/plain.md"]
    titles = {row["title"] for row in rig.call("ls", "--json").json["docs"]}
    assert titles == {"Boats", "Guide", "moved"}

    (source,) = rig.call("sources", "--json").json["sources"]
    assert (source["kind"], source["location"]) == ("repository", address)
    assert rig.call("sources", "rm", address).code == 0
    assert rig.call("sources", "--json").json["sources"] == []
    assert set(paths(rig)) == set(after)
    assert list((rig.home / "tmp").iterdir()) == []


def test_refs_of_every_kind(rig: Rig, repo: Path) -> None:
    """A branch with a slash, a tag with a message, a whole id of a commit, and none at all."""
    first = git(repo, "rev-parse", "HEAD").strip()
    git(repo, "tag", "-a", "v1", "-m", "first")
    git(repo, "branch", "topic/sails")
    commit_file(repo, "two.md", "# Two")
    url = f"git+file://{repo}"
    for ref, count in (("@v1", 4), ("@topic/sails", 4), (f"@{first}", 4), ("", 5)):
        assert rig.call("add", url + ref, "--no-wait", "--json").json["added"] == count
    failed = rig.call("add", f"{url}@nowhere")
    assert failed.code == 3
    assert "it has no branch, tag or commit nowhere" in failed.err


def test_many_vanished_files_wait(rig: Rig, repo: Path) -> None:
    """Exit 6 at every sync until the deletions are accepted, though the ref does not move again."""
    for number in range(12):
        (repo / f"n{number}.md").write_text(f"# Note {number}")
    git(repo, "add", "-A")
    git(repo, "commit", "-q", "-m", "notes")
    rig.call("add", f"git+file://{repo}")
    (repo / ".gitignore").write_text("n*.md\n")
    git(repo, "commit", "-q", "-a", "-m", "ignored")
    for _ in range(2):
        held = rig.call(*SYNC)
        assert held.code == 6
        assert "12 of 16 docs have vanished" in held.err
        assert len(paths(rig)) == 16
    assert rig.call(*SYNC, "--accept-deletions").code == 0
    assert len(paths(rig)) == 4
    assert rig.call(*SYNC).code == 0
    rig.call("add", "--no-ignore", f"git+file://{repo}")
    assert len(paths(rig)) == 17


def test_what_a_person_removed_stays_out(rig: Rig, repo: Path) -> None:
    """Until the repository is added again."""
    url = f"git+file://{repo}"
    rig.call("add", url)
    rig.call("rm", "--yes", paths(rig)["docs/guide.md"])
    commit_file(repo, "docs/guide.md", "# Guide\n\nAnew.")
    assert rig.call(*SYNC).code == 0
    assert "docs/guide.md" not in paths(rig)
    rig.call("add", url)
    assert "docs/guide.md" in paths(rig)


def test_a_login_goes_to_one_host_and_into_no_file(
    rig: Rig, repo: Path, server: LoopbackServer
) -> None:
    """The token is for the host that the settings name, once it asks; kb keeps it nowhere."""
    address = serves(server, repo / ".git", "ada:s3cret-t0ken")
    env = {"KB_GIT_USER": "ada", "KB_GIT_TOKEN": "s3cret-t0ken"}
    refused = rig.run("add", address, **env)
    assert refused.code == 3
    assert f'fetch.git_token_host = "127.0.0.1:{server.port}"' in refused.err
    assert not any("Authorization" in request.headers for request in server.requests)
    host = (f'fetch.git_token_host="127.0.0.1:{server.port}"',)
    taken = rig.run("add", address, cfg=host, **env)
    assert (taken.code, "s3cret" in taken.err + taken.out) == (0, False)
    kept = [file.read_bytes() for file in rig.home.rglob("*") if file.is_file()]
    assert not any(b"s3cret" in data for data in kept)


def test_hosts_that_are_not_public_are_refused(
    tmp_path: Path, repo: Path, server: LoopbackServer
) -> None:
    """Unless `fetch.allow` names them; a redirect is told, and not followed."""
    address = serves(server, repo / ".git")
    rig = Rig(tmp_path)
    assert "127.0.0.1 is not a public address" in rig.call("add", address).err
    assert "not a public address" in rig.call("add", "git+ssh://git@127.0.0.1/x").err
    assert server.requests == []
    server.routes["/old/info/refs?service=git-upload-pack"] = moved(server.url("/new"), 301)
    allowed = Rig(tmp_path, cfg=(*CFG, 'fetch.allow=["127.0.0.1"]'))
    told = allowed.call("add", f"git+{server.url('/old')}").err
    assert f"it redirects to {server.url('/new')}; if that is right, add that address" in told


def test_a_repository_by_ssh(
    rig: Rig, repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system's ssh fetches it, with fixed words."""
    fake = ssh_stand_in(tmp_path / "bin", "os.execvp('sh', ['sh', '-c', argv[-1]])")
    at = Path(shutil.which("git") or "").parent
    monkeypatch.setenv("PATH", f"{fake}:{at}:/usr/bin:/bin")
    assert rig.call("add", f"git+ssh://ada@127.0.0.1{repo}@main", "--json").json["added"] == 4
    argv = json.loads((fake / "ssh.argv").read_text())
    assert argv[-3:] == ["--", "ada@127.0.0.1", f"git-upload-pack '{repo}'"]


def test_bounds_and_odd_trees(rig: Rig, repo: Path, server: LoopbackServer) -> None:
    """Too many bytes take nothing; names that no file may have, LFS and submodules are told."""
    address = serves(server, repo / ".git")
    (repo / "noise.md").write_text("".join(f"{n * n}\n" for n in range(20_000)))
    (repo / "big.md").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\n")
    git(repo, "add", "-A")
    head = git(repo, "rev-parse", "HEAD").strip()
    git(repo, "update-index", "--add", "--cacheinfo", f"160000,{head},sub")
    git(repo, "commit", "-q", "-m", "odd")
    small = rig.call("--cfg", "crawl.bytes_max=20000", "add", address)
    assert small.code == 3
    assert "crawl.bytes_max" in small.err
    blob = git(repo, "rev-parse", "HEAD:README.md").strip()
    entry = f"100644 blob {blob}\t..\n100644 blob {blob}\tgood.md\n"
    evil = _made(repo, "mktree", entry)
    commit = git(repo, "commit-tree", "-m", "evil", evil).strip()
    git(repo, "update-ref", "refs/heads/evil", commit)
    report = rig.call("add", f"{address}@evil", "--json").json
    assert reasons(report) == {"..": "its name is none that a file may have"}
    assert report["added"] == 1
    left = reasons(rig.call("add", address, "--json").json)
    assert left["sub"].startswith("a submodule")
    assert "git LFS" in left["big.md"]


def _made(repo: Path, command: str, text: str) -> str:
    import subprocess

    done = subprocess.run(
        ["git", "-C", repo, command], input=text, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_killed_on_the_way(rig: Rig, repo: Path) -> None:
    """The same command goes on; each file is one doc, and what was committed stays."""
    for number in range(40):
        (repo / f"n{number}.md").write_text(f"# Note {number}\n\nText {number}.")
    git(repo, "add", "-A")
    git(repo, "commit", "-q", "-m", "notes")
    add = ("add", f"git+file://{repo}", "--no-wait", "--json")
    for step, hit in (
        ("content.after_link", 1),
        ("content.after_link", 20),
        ("ingest.before_commit", 2),
        ("ingest.after_commit", 1),
    ):
        assert rig.run(*add, armed=f"{step}=kill@{hit}").code == -signal.SIGKILL
    report = rig.run(*add)
    assert (report.code, report.json["added"] + report.json["unchanged"]) == (0, 44)
    git(repo, "mv", "n1.md", "m1.md")
    git(repo, "commit", "-q", "-m", "moved")
    before = paths(rig)
    assert rig.run(*SYNC, armed="sync.after_move=kill").code == -signal.SIGKILL
    assert rig.run(*SYNC).code == 0
    assert paths(rig)["m1.md"] == before["n1.md"]
    rig.drain()
    rig.check()


def test_pictures_are_taken_by_name(rig: Rig, repo: Path) -> None:
    """As those of a folder are, and no copy is kept; a file that changes is read again."""
    photo = repo / "docs/IMG_1234.JPG"
    photo.write_bytes(pictures.jpeg(exif=pictures.CAMERA))
    (repo / "docs/guide.md").write_text("# Guide\n\nSee ![[IMG_1234.JPG]].\n")
    git(repo, "add", "-A")
    git(repo, "commit", "-q", "-m", "a picture")
    address = f"git+file://{repo}"
    report = rig.call("add", address, "--json")
    assert (report.code, report.json["added"], report.json["ocr_waiting"]) == (0, 5, 0)
    ids = paths(rig)
    (hit, *_) = rig.call("search", "IMG_1234.JPG", "--json").json["hits"]
    assert (hit["doc_id"], hit["date"][:10]) == (ids["docs/IMG_1234.JPG"], "2019-05-03")
    (linked,) = rig.call("show", ids["docs/guide.md"], "--json").json["links"]
    assert linked["doc_id"] == ids["docs/IMG_1234.JPG"]
    assert not list((rig.home / "raw").rglob("*.jpeg")) + list((rig.home / "raw").rglob("*.jpg"))
    assert rig.call("check").code == 0
    assert "kb keeps no copy" in rig.call("export", ids["docs/IMG_1234.JPG"], "--raw").err
    photo.write_bytes(pictures.jpeg(exif=pictures.CAMERA, size=(100, 900)))
    git(repo, "commit", "-q", "-a", "-m", "another one")
    assert "1 updated" in rig.call(*SYNC).out
    assert rig.call("add", address, "--json").json["unchanged"] == 5
