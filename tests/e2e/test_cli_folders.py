"""Whole folders: what is seen, what is left out and why, and that nothing is lost."""

import os
import socket
from pathlib import Path
from typing import Any

import pytest
from commands import Home, accounted


@pytest.fixture
def home(tmp_path: Path) -> Home:
    return Home(tmp_path / "home")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "n"
    folder.mkdir()
    return folder


def put(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"note {name!r}")


def names(report: dict[str, Any], folder: Path) -> set[str]:
    assert accounted(report)
    return {os.path.relpath(line["source"], folder) for line in report["docs"]}


def test_ignore_files(home: Home, folder: Path) -> None:
    """.kbignore follows gitignore: patterns, folders, negation, and nested files that win."""
    put(folder, "a.md", "b.md", "draft-1.md", "sub/draft-2.md", "sub/c.md", "build/d.md")
    put(folder, "sub/keep/e.md", ".hidden/f.md", ".dot.md", "deep/build/g.md", "deep/only.md")
    (folder / ".kbignore").write_text("# drafts\ndraft-*\n!draft-1.md\n/build/\n")
    (folder / "sub" / ".kbignore").write_text("!draft-2.md\nkeep\n")
    report = home.run("add", "-r", folder, "--json").json
    assert names(report, folder) == {
        "a.md",
        "b.md",
        "draft-1.md",
        "sub/draft-2.md",
        "sub/c.md",
        "deep/build/g.md",
        "deep/only.md",
    }
    assert report["scanned"] == 7


def test_extensions(home: Home, folder: Path) -> None:
    """--ext names other extensions, * names all, and what is left out says so."""
    put(folder, "a.md", "b.zzz", "c.ZZZ", "README")
    assert names(home.run("add", "-r", folder, "--json", "--dry-run").json, folder) == {"a.md"}
    only = home.run("add", "-r", folder, "--ext", ".zzz, txt", "--json", "--dry-run").json
    assert names(only, folder) == {"b.zzz", "c.ZZZ"}
    assert {p["reason"] for p in only["problems"]} == {
        "extension .md is left out; see --ext",
        "no extension; see --ext",
    }
    every = home.run("add", "-r", folder, "--ext", "*", "--json").json
    assert names(every, folder) == {"a.md", "b.zzz", "c.ZZZ", "README"}


def test_what_is_no_file(
    home: Home, folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Links, pipes and sockets are passed over: not followed out of the root, not waited for."""
    put(folder, "a.md")
    (tmp_path / "outside").mkdir()
    put(tmp_path / "outside", "secret.md")
    (folder / "out.md").symlink_to(tmp_path / "outside" / "secret.md")
    (folder / "dir").symlink_to(tmp_path / "outside")
    (folder / "loop").symlink_to(folder)
    (folder / "dangling.md").symlink_to(folder / "nowhere")
    os.mkfifo(folder / "pipe.md")
    # A socket's address is short, whatever the folder's name.
    with socket.socket(socket.AF_UNIX) as bound:
        monkeypatch.chdir(folder)
        bound.bind("sock.md")
        ran = home.run("add", "-r", folder, "--json")
    report = ran.json
    assert ran.code == 0
    assert names(report, folder) == {"a.md"}
    assert report["skipped"] == 6
    named = home.run("add", folder / "pipe.md", folder / "sock.md", "--json")
    assert (named.code, named.json["failed"]) == (3, 2)


ODD = [
    b"with space.md",
    b"new\nline.md",
    b"caf\xe9.md",
    "emoji \U0001f375.md".encode(),
    b"-dash.md",
    b"--yes.md",
    b"quote'\".md",
    b"star*[x].md",
    b"tab\there.md",
    b"back\\slash.md",
    "e\u0301.md".encode(),
    "\u00e9.md".encode(),
    b"%41.md",
    b"A.md",
    b"x" * 250 + b".md",
]


def test_odd_names(home: Home, folder: Path) -> None:
    """Any bytes that a name may hold are taken in, told apart, found again and shown in a line."""
    for number, name in enumerate(ODD):
        with open(os.fsencode(folder) + b"/" + name, "w") as file:
            file.write(f"note number {number}")
    ran = home.run("add", "-r", folder, "--json")
    assert ran.code == 0
    assert ran.json["added"] == len(ODD)
    assert len({line["doc_id"] for line in ran.json["docs"]}) == len(ODD)
    assert home.run("add", "-r", folder, "--json").json["unchanged"] == len(ODD)
    shown = home.run("ls").out.splitlines()
    assert len(shown) == 2 * len(ODD)
    hits = home.run("search", "note number", "-k", "20", "--json").json["hits"]
    assert {hit["freshness"] for hit in hits} == {"fresh"}
    assert home.run("add", "--", folder / "-dash.md", "--json").code in (0, 3)


def test_a_deep_tree(home: Home, folder: Path) -> None:
    """A file 500 folders down is found: the walk goes deeper than calls may nest."""
    place = folder
    for _ in range(500):
        place = place / "d"
    place.mkdir(parents=True)
    (place / "deep.md").write_text("# Deep\n\ndeep down")
    report = home.run("add", "-r", folder, "--json").json
    assert report["added"] == 1
    assert home.run("search", "deep", "--json").json["hits"][0]["title"] == "Deep"


def test_overlapping_sources_are_counted_once(home: Home, folder: Path) -> None:
    """A file that is named, named again, and in a folder that is named, is one source."""
    put(folder, "a.md", "sub/b.md", "c.png")
    put(folder, "d.md")
    sources = [folder, folder / "a.md", folder / "sub", folder / "sub" / ".." / "a.md"]
    report = home.run("add", "-r", *sources, folder / "c.png", "--json").json
    # Named itself, c.png is judged by its bytes; its folder's rule would have skipped it.
    assert (report["scanned"], report["added"], report["skipped"]) == (4, 4, 0)
    assert names(report, folder) == {"a.md", "sub/b.md", "c.png", "d.md"}
    dry = home.run("add", "-r", *sources, "--dry-run", "--json").json
    assert accounted(dry)


def test_the_home_is_never_a_source(tmp_path: Path) -> None:
    """A home inside the folder that is added is passed over, and says so."""
    put(tmp_path, "a.md")
    home = Home(tmp_path / "store")
    home.run("add", tmp_path / "a.md")
    report = home.run("add", "-r", tmp_path, "--json").json
    assert report["scanned"] == 2
    assert report["problems"][0] == {
        "source": str(home.root),
        "outcome": "skipped",
        "reason": "kb's own home",
    }


def test_second_runs_read_nothing_anew(home: Home, folder: Path) -> None:
    """An unchanged folder is unchanged; one edit is one update."""
    put(folder, "a.md", "b.md", "c.md")
    assert home.run("add", "-r", folder, "--json").json["added"] == 3
    assert home.run("add", "-r", folder, "--json").json["unchanged"] == 3
    (folder / "b.md").write_text("other words")
    report = home.run("add", "-r", folder, "--json").json
    assert (report["updated"], report["unchanged"]) == (1, 2)
