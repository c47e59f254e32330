"""`kb --server add`, `note` and `job`: what is handed to a running server from here."""

import os
import platform
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import loopback
import pytest
from commands import KB, Home, Ran, accounted, run, surroundings
from http_server import ConfiguredHome, Running, serving, settings
from loopback import Answer

PDF = Path(__file__).parents[2] / "examples" / "house" / "energy-survey.pdf"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


@pytest.fixture
def server(home: Home) -> Iterator[Running]:
    with serving(home) as running:
        yield running


def there(server: Running, *args: object, stdin: str | bytes = b"", **env: str | None) -> Ran:
    argv = [KB, "--server", f"http://127.0.0.1:{server.port}", *map(str, args)]
    return run(argv, stdin=stdin, env=surroundings(**env))


def folder_of(root: Path) -> Path:
    """Files of several kinds, two of one name, some that are left out and one that is broken."""
    for name in ("a", "b/c"):
        (root / name).mkdir(parents=True)
    (root / "a" / "readme.md").write_text("# First\n\nThe walrus swims.")
    (root / "b" / "c" / "readme.md").write_text("# Second\n\nThe seal sleeps.")
    (root / "a" / "latin.txt").write_bytes("Ein Kännchen Tee".encode("latin-1"))
    (root / "a" / "empty.md").write_text("  \n")
    (root / "a" / "disk.img").write_bytes(b"\x89ISO")
    (root / "b" / "broken.pdf").write_bytes(b"%PDF-1.4 nothing")
    (root / "survey.pdf").write_bytes(PDF.read_bytes())
    return root


def told(report: dict[str, Any]) -> dict[str, Any]:
    """A report without the ids, which the places decide."""
    docs = sorted((doc["source"], doc["status"]) for doc in report["docs"])
    problems = sorted(tuple(one.values()) for one in report["problems"])
    counts = {key: value for key, value in report.items() if isinstance(value, int)}
    return {**counts, "docs": docs, "problems": problems}


def test_a_folder_is_taken_in_as_at_home(server: Running, tmp_path: Path) -> None:
    """The same report, exit code and lines, and every doc can be found when the command ends."""
    folder = folder_of(tmp_path / "files")
    here = Home(tmp_path / "other").run("add", "-r", folder, "--tags", "x", "--json")
    far = there(server, "add", "-r", folder, "--tags", "x", "--json")
    assert accounted(far.json)
    assert told(far.json) == told(here.json)
    assert (far.code, far.err) == (here.code, here.err) == (3, far.err)
    docs = server.get("/v1/docs?tag=x").json["docs"]
    assert len(docs) == 4
    assert all(doc["indexed"] for doc in docs)
    place = f"{platform.node()}:{folder / 'a' / 'readme.md'}"
    assert place in {doc["source"] for doc in docs}
    found = there(server, "search", "walrus", "--mode", "lexical", "--json").json["hits"]
    assert [hit["title"] for hit in found] == ["First"]
    again = there(server, "add", "-r", folder, "--tags", "x", "--json").json
    assert (again["unchanged"], again["added"], again["failed"]) == (4, 0, 1)


def test_the_lines_are_those_at_home(server: Running, tmp_path: Path) -> None:
    """Text, too, is what the command prints at home."""
    folder = folder_of(tmp_path / "files")
    here = Home(tmp_path / "other").run("add", "-r", folder)
    far = there(server, "add", "-r", folder)
    assert (far.code, far.out, far.err) == (here.code, here.out, here.err)


def test_standard_input_is_taken_in(server: Running, home: Home) -> None:
    """A text under a title, again as its new version, and bytes that are no text."""
    first = there(server, "add", "-", "--title", "Plan", "--json", stdin="Buy oak.")
    second = there(server, "add", "-", "--title", "Plan", "--json", stdin="Buy spruce.")
    assert [ran.json["docs"][0]["status"] for ran in (first, second)] == ["added", "updated"]
    shown = there(server, "show", second.json["docs"][0]["doc_id"], "--json").json
    assert (shown["doc"]["title"], shown["doc"]["version"]) == ("Plan", 2)
    assert shown["doc"]["visibility"] == "private"
    pdf = there(server, "add", "-", "--no-wait", "--json", stdin=PDF.read_bytes())
    assert pdf.json["added"] == 1
    here = home.run("add", "-", "--title", "Plan", "--json", stdin="Buy spruce.")
    assert here.json["docs"][0]["status"] == "unchanged"


def test_each_failure_is_its_own(server: Running, tmp_path: Path) -> None:
    """What cannot be read here, is no source, or is not taken there is named; the rest goes in."""
    (tmp_path / "good.md").write_text("# Good")
    os.mkfifo(tmp_path / "pipe.md")
    ran = there(
        server,
        *("add", tmp_path / "good.md", tmp_path / "none.md", tmp_path / "pipe.md"),
        *("http://127.0.0.1:1/", "--json"),
    )
    assert (ran.code, ran.json["added"], ran.json["failed"]) == (3, 1, 3)
    reasons = {one["source"]: one["reason"] for one in ran.json["problems"]}
    assert reasons[str(tmp_path / "none.md")] == "no such file"
    assert "not a public address" in reasons["http://127.0.0.1:1/"]


def test_a_page_is_fetched_there(tmp_path: Path) -> None:
    """The server fetches it, by its own settings."""
    with loopback.serving() as site:
        site.routes["/p"] = Answer(b"<title>Tides</title><p>Twice a day.", 200, HTML)
        allow = ("--cfg", f"fetch.allow=['127.0.0.1:{site.port}']")
        with serving(ConfiguredHome(tmp_path / "home", allow)) as server:
            ran = there(server, "add", site.url("/p"), "--tags", "sea", "--json")
            assert (ran.code, ran.json["added"]) == (0, 1)
            assert server.get("/v1/docs?tag=sea").json["docs"][0]["source"] == site.url("/p")


HTML = {"Content-Type": "text/html; charset=utf-8"}


def test_what_is_too_large_is_told(tmp_path: Path) -> None:
    """A named file has failed, one of a folder is skipped; the rest goes in."""
    home = ConfiguredHome(tmp_path / "home", settings(upload_bytes_max=2_000, body_bytes_max=500))
    folder = tmp_path / "files"
    folder.mkdir()
    (folder / "small.md").write_text("# Small")
    (folder / "large.md").write_text("# Large\n\n" + "x " * 400_000)
    with serving(home) as server:
        named = there(server, "add", folder / "large.md", "--json")
        assert (named.code, named.json["failed"]) == (3, 1)
        assert "over 2000 bytes" in named.json["problems"][0]["reason"]
        walked = there(server, "add", "-r", folder, "--json")
        assert (walked.code, walked.json["added"], walked.json["skipped"]) == (0, 1, 1)


def test_notes_are_handed_in_and_placed(server: Running, home: Home) -> None:
    """With --wait the path is printed; without, the job's id, which can be asked about."""
    placed = there(server, "note", "add", "--wait", "--hint", "rig", "# Mast\n\nSpruce.")
    assert (placed.code, placed.out, placed.err) == (0, "rig/mast.md\n", "")
    assert (
        there(server, "note", "get", "rig/mast.md").out
        == home.run("note", "get", "rig/mast.md").out
    )
    queued = there(server, "note", "add", "-", "--tag", "t", stdin="# Boom\n\nOak.")
    job = queued.out.strip()
    there(server, "note", "add", "--wait", "# Last\n\nOne.")
    assert there(server, "job", job, "--json").json["path"] == "t/boom.md"
    assert there(server, "job", "retry", job).code == home.run("job", "retry", job).code == 2
    assert len(there(server, "note", "log").out.splitlines()) >= 3
    empty = there(server, "note", "add", " ")
    assert (empty.code, empty.err) == (2, "kb: the note is empty\n")


def test_an_owner_reads_what_they_handed_in(home: Home, tmp_path: Path) -> None:
    """A token's docs are its user's: another user sees none of them, and writes over none."""
    tokens = {
        name: home.run("token", "add", name, "--user", name, "--role", "writer").out.split()[0]
        for name in ("ada", "bob")
    }
    path = tmp_path / "plan.md"
    with serving(home) as server:
        for name, secret in tokens.items():
            path.write_text(f"# Plan\n\nOf {name}.")
            ran = there(server, "add", path, "--json", KB_TOKEN=secret)
            assert (ran.code, ran.json["added"]) == (0, 1), ran.err
        for name, secret in tokens.items():
            docs = there(server, "ls", "--json", KB_TOKEN=secret).json["docs"]
            assert [doc["visibility"] for doc in docs] == ["private"]
            shown = there(server, "show", docs[0]["doc_id"], KB_TOKEN=secret)
            assert f"Of {name}." in shown.out
        other = there(server, "show", docs[0]["doc_id"], KB_TOKEN=tokens["ada"])
        assert (other.code, other.out) == (4, "")
        older = there(server, "ls", "--status", "all", KB_TOKEN=tokens["ada"])
        assert (older.code, older.out) == (2, "")
        admins = there(server, "job", "ls", KB_TOKEN=tokens["ada"])
        assert (admins.code, admins.out) == (1, "")
