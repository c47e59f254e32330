"""Which files of a folder are seen."""

import inspect
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from kb.intake.sync.walk import SkippedFile, WalkedFile, walk


def files(*places: Path) -> None:
    for place in places:
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text("x")


def found(root: Path, *extensions: str, home: Path | None = None) -> list[str]:
    seen = walk(root, extensions or ("md",), home=home)
    return [os.path.relpath(one.path, root) for one in seen if isinstance(one, WalkedFile)]


def passed(root: Path) -> dict[str, SkippedFile]:
    return {
        os.path.relpath(one.path, root): one
        for one in walk(root, ("md",))
        if isinstance(one, SkippedFile)
    }


def test_name_order_whatever_the_disk_says(tmp_path: Path) -> None:
    """Files come in the order of their names' bytes, a folder's in its place."""
    files(*(tmp_path / name for name in ("b.md", "a/z.md", "a.md", "B.md", "é.md", "c/d/e.md")))
    assert found(tmp_path) == ["B.md", "a/z.md", "a.md", "b.md", "c/d/e.md", "é.md"]


def test_a_tree_deeper_than_calls_may_nest(tmp_path: Path) -> None:
    """Far more folders down than calls may nest, a file is found."""
    place = tmp_path.joinpath(*"d" * 300)
    place.mkdir(parents=True)
    (place / "a.md").write_text("x")
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(len(inspect.stack()) + 100)
    try:
        assert len(found(tmp_path)) == 1
    finally:
        sys.setrecursionlimit(limit)


@pytest.mark.parametrize(
    ("rules", "left"),
    [
        ("", {"a.md", "b.md", "sub/a.md", "sub/deep/a.md"}),
        ("a.md", {"b.md"}),
        ("/a.md", {"b.md", "sub/a.md", "sub/deep/a.md"}),
        ("sub/", {"a.md", "b.md"}),
        ("sub/*.md", {"a.md", "b.md", "sub/deep/a.md"}),
        ("*.md\n!b.md", {"b.md"}),
        ("**/deep", {"a.md", "b.md", "sub/a.md"}),
        ("# a.md\n\n\\#x", {"a.md", "b.md", "sub/a.md", "sub/deep/a.md"}),
        ("sub\n!sub/a.md", {"a.md", "b.md"}),
    ],
)
def test_kbignore_is_gitignore(tmp_path: Path, rules: str, left: set[str]) -> None:
    """Anchors, folders, stars and negation mean what they mean to git."""
    files(*(tmp_path / name for name in ("a.md", "b.md", "sub/a.md", "sub/deep/a.md")))
    (tmp_path / ".kbignore").write_text(rules)
    assert set(found(tmp_path)) == left


def test_what_is_ignored_is_not_seen_at_all(tmp_path: Path) -> None:
    """Dot names and ignored names are neither found nor passed over."""
    files(tmp_path / ".dot.md", tmp_path / ".git" / "a.md", tmp_path / "no.md")
    (tmp_path / ".kbignore").write_text("no.md")
    assert list(walk(tmp_path, ("md",))) == []


@pytest.mark.parametrize("kind", ["bad", "fifo", "folder", "large"])
def test_an_ignore_file_that_cannot_be_followed_closes_its_folder(
    tmp_path: Path, kind: str
) -> None:
    """Rather than take in what was meant to stay out, the folder fails; the others go on."""
    files(tmp_path / "sub" / "a.md", tmp_path / "b.md")
    place = tmp_path / "sub" / ".kbignore"
    match kind:
        case "bad":
            place.write_text("ok\n!\n")
        case "fifo":
            os.mkfifo(place)
        case "folder":
            place.mkdir()
        case _:
            place.write_text("x\n" * 600_000)
    assert found(tmp_path) == ["b.md"]
    assert passed(tmp_path)["sub"].failed
    assert ".kbignore" in passed(tmp_path)["sub"].reason


def test_the_home_is_passed_over(tmp_path: Path) -> None:
    """Neither below the root nor as the root itself is the home gone into."""
    files(tmp_path / "a.md", tmp_path / "home" / "md" / "b.md")
    assert found(tmp_path, home=tmp_path / "home") == ["a.md"]
    assert found(tmp_path / "home", home=tmp_path / "home") == []


def test_a_folder_that_vanishes_in_mid_scan(tmp_path: Path) -> None:
    """A folder that is gone when its turn comes has failed; what follows it is still found."""
    files(tmp_path / "a.md", tmp_path / "b" / "x.md", tmp_path / "c.md")
    seen: list[Any] = []
    walking: Iterator[WalkedFile | SkippedFile] = walk(tmp_path, ("md",))
    seen.append(next(walking))
    (tmp_path / "b" / "x.md").unlink()
    (tmp_path / "b").rmdir()
    seen += walking
    assert [one.path.name for one in seen] == ["a.md", "b", "c.md"]
    assert isinstance(seen[1], SkippedFile)
    assert seen[1].failed
    assert "No such file" in seen[1].reason


def test_an_entry_that_cannot_be_looked_at(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An error about one entry is that entry's."""
    files(tmp_path / "a.md", tmp_path / "b.md")

    class Entry:
        def __init__(self, entry: "os.DirEntry[str]") -> None:
            self.name, self.path, self._entry = entry.name, entry.path, entry

        def is_symlink(self) -> bool:
            return self._entry.is_symlink()

        def is_dir(self, *, follow_symlinks: bool = True) -> bool:
            return self._entry.is_dir(follow_symlinks=follow_symlinks)

        def is_file(self, *, follow_symlinks: bool = True) -> bool:
            if self.name == "a.md":
                raise OSError(5, "Input/output error")
            return self._entry.is_file(follow_symlinks=follow_symlinks)

    class Scan:
        def __init__(self, place: Any) -> None:
            with whole(place) as entries:
                self._entries = [Entry(entry) for entry in entries]

        def __enter__(self) -> "list[Entry]":
            return self._entries

        def __exit__(self, *_: object) -> None:
            pass

    whole = os.scandir
    monkeypatch.setattr(os, "scandir", Scan)
    seen = list(walk(tmp_path, ("md",)))
    assert [type(one) for one in seen] == [SkippedFile, WalkedFile]


def test_rules_are_read_from_no_link(tmp_path: Path) -> None:
    """It may lead out of the folder: what its owner meant to keep out is not known then."""
    (tmp_path / "secret").write_text("[z-a]\n")
    folder = tmp_path / "clone"
    folder.mkdir()
    (folder / "note.md").write_text("note")
    (folder / ".kbignore").symlink_to(tmp_path / "secret")
    assert passed(folder)["."].reason == "left out, because its .kbignore is not a regular file"


def test_the_parts_of_a_saved_page_are_left_out(tmp_path: Path) -> None:
    """A browser's folder beside its page, which counts; a folder so called without a page stays."""
    names = ("Weirs.html", "Weirs_files/ad.html", "Teich.htm", "Teich-Dateien/ad.html")
    files(*(tmp_path / name for name in (*names, "my_files/a.html")))
    seen = {
        os.path.relpath(one.path, tmp_path): one for one in walk(tmp_path, ("html",), ignoring=True)
    }
    left = {name for name, one in seen.items() if isinstance(one, SkippedFile)}
    assert left == {"Weirs_files", "Teich-Dateien", "Teich.htm"}
    assert "my_files/a.html" in seen
    reason = "the parts of a saved page; see --no-ignore"
    assert seen["Weirs_files"] == SkippedFile(tmp_path / "Weirs_files", reason)
    assert len([one for one in walk(tmp_path, ("html",)) if isinstance(one, WalkedFile)]) == 4
