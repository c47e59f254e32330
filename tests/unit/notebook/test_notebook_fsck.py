"""Damage to a notebook: each kind is found, told with what to do, and ends nobody who looks."""

import os
import zlib
from collections.abc import Callable, Iterator
from hashlib import sha1
from pathlib import Path

import pytest
from notebooks import NoteHome, commit_file, git, needs_git

from kb.errors import StoreBusy
from kb.knowledge.notebook.fsck import Examination, examine, examine_in_child
from kb.knowledge.notebook.opening import at_work
from kb.store.content.lock import file_lock

pytestmark = needs_git
LATER_S = 4_000_000_000.0


@pytest.fixture
def home(tmp_path: Path) -> Iterator[NoteHome]:
    home = NoteHome(tmp_path)
    home.place("# One\n\nHere stands one.\n", "work")
    home.place("# Two\n\nHere stands two.\n", "work")
    yield home
    home.close()


def id_of(root: Path, what: str) -> str:
    return git(root, "rev-parse", what).strip()


def loose(root: Path, what: str) -> Path:
    name = id_of(root, what)
    path = root / ".git/objects" / name[:2] / name[2:]
    path.chmod(0o644)
    return path


def put(root: Path, kind: str, data: bytes) -> str:
    """An object as it is said to be, well formed or not."""
    whole = f"{kind} {len(data)}\0".encode() + data
    name = sha1(whole, usedforsecurity=False).hexdigest()
    path = root / ".git/objects" / name[:2] / name[2:]
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(zlib.compress(whole))
    return name


def commit_of(root: Path, tree: str) -> None:
    """Have the branch at a commit of a tree that git would not make."""
    parent = id_of(root, "HEAD")
    who = "A <a@example.org> 1700000000 +0000"
    text = f"tree {tree}\nparent {parent}\nauthor {who}\ncommitter {who}\n\nOdd\n"
    (root / ".git/refs/heads/main").write_text(put(root, "commit", text.encode()) + "\n")


def odd_tree(root: Path, entry: bytes) -> None:
    blob = bytes.fromhex(id_of(root, "HEAD:work/one.md"))
    commit_of(root, put(root, "tree", entry + b"\0" + blob))


def cut(path: Path) -> None:
    path.chmod(0o644)
    path.write_bytes(path.read_bytes()[:-8])


def flip(path: Path, at: int) -> None:
    path.chmod(0o644)
    data = bytearray(path.read_bytes())
    data[at] ^= 0xFF
    path.write_bytes(data)


def other_content(root: Path) -> None:
    loose(root, "HEAD:work/one.md").write_bytes(zlib.compress(b"blob 3\0abc"))


def packed(root: Path) -> Path:
    git(root, "gc", "-q")
    (pack,) = (root / ".git/objects/pack").glob("*.pack")
    return pack


def unlinked_pack(root: Path, suffix: str) -> None:
    packed(root).with_suffix(suffix).unlink()


def replaced(root: Path) -> None:
    git(root, "replace", id_of(root, "HEAD:work/one.md"), id_of(root, "HEAD:work/two.md"))


def stale_lock(root: Path, name: str) -> None:
    (root / ".git" / name).write_text("")


def lock_of_ours(root: Path) -> None:
    own = root / ".git/kb/index"
    own.write_text("")
    os.link(own, root / ".git/index.lock")


HASH = "0123456789" * 4
DAMAGE: dict[str, tuple[Callable[[Path], object], str, str]] = {
    "no .git": (lambda root: git(root.parent, "init", "-q", "x") or _gone(root), ".git", "gone"),
    "no HEAD": (lambda root: (root / ".git/HEAD").unlink(), ".git/HEAD", "it is gone"),
    "empty HEAD": (lambda root: (root / ".git/HEAD").write_text(""), ".git/HEAD", "it is empty"),
    "odd HEAD": (
        lambda root: (root / ".git/HEAD").write_text("ref: refs/tags/x\n"),
        ".git/HEAD",
        "names no branch",
    ),
    "no objects": (lambda root: _gone(root, "objects"), ".git/objects", "it is gone"),
    "no refs": (lambda root: _gone(root, "refs"), ".git/refs", "it is gone"),
    "settings": (lambda root: (root / ".git/config").write_text("[co"), ".git", "read"),
    "no branch": (
        lambda root: (root / ".git/refs/heads/main").unlink(),
        ".git/refs/heads/main",
        "checked out is gone",
    ),
    "empty ref": (
        lambda root: (root / ".git/refs/heads/main").write_text(""),
        ".git/refs/heads/main",
        "it is empty",
    ),
    "odd ref": (
        lambda root: (root / ".git/refs/heads/main").write_text("x\n"),
        ".git/refs/heads/main",
        "names no object",
    ),
    "ref to nothing": (
        lambda root: (root / ".git/refs/heads/other").write_text(f"{HASH}\n"),
        ".git/refs/heads/other",
        "names 0123456789, which is missing",
    ),
    "packed ref to nothing": (
        lambda root: (root / ".git/packed-refs").write_text(f"{HASH} refs/heads/other\n"),
        ".git/refs/heads/other",
        "which is missing",
    ),
    "missing commit": (lambda root: loose(root, "HEAD").unlink(), ".git", "missing"),
    "missing old commit": (
        lambda root: loose(root, "HEAD~1").unlink(),
        ".git/objects",
        "commit [0-9a-f]{10} is missing; commit [0-9a-f]{10} names it",
    ),
    "missing tree": (
        lambda root: loose(root, "HEAD:work").unlink(),
        ".git/objects",
        "tree [0-9a-f]{10} is missing",
    ),
    "missing file": (
        lambda root: loose(root, "HEAD:work/one.md").unlink(),
        ".git/objects",
        "file [0-9a-f]{10} is missing; tree [0-9a-f]{10}, for one.md, names it",
    ),
    "empty object": (
        lambda root: loose(root, "HEAD").write_bytes(b""),
        ".git/objects",
        "an empty object",
    ),
    "object cut short": (
        lambda root: cut(loose(root, "HEAD:work")),
        ".git/objects",
        "cut short",
    ),
    "object flipped": (
        lambda root: flip(loose(root, "HEAD:work/one.md"), 12),
        ".git/objects",
        "an object",
    ),
    "object of other content": (other_content, ".git/objects", "not what its name says"),
    "old object flipped": (
        lambda root: flip(loose(root, "HEAD~1^{tree}"), 9),
        ".git/objects",
        "an object",
    ),
    "pack flipped": (lambda root: flip(packed(root), 200), ".git/objects/pack", "damaged"),
    "pack cut short": (
        lambda root: cut(packed(root)),
        ".git/objects/pack",
        "damaged",
    ),
    "pack index flipped": (
        lambda root: flip(packed(root).with_suffix(".idx"), 1_100),
        ".git/objects/pack",
        "damaged",
    ),
    "pack without index": (
        lambda root: unlinked_pack(root, ".idx"),
        ".git/objects/pack",
        "a pack without its index",
    ),
    "index without pack": (
        lambda root: unlinked_pack(root, ".pack"),
        ".git/objects/pack",
        "an index without its pack",
    ),
    "no index": (lambda root: (root / ".git/index").unlink(), ".git/index", "it is gone"),
    "empty index": (
        lambda root: (root / ".git/index").write_bytes(b""),
        ".git/index",
        "it is damaged",
    ),
    "index flipped": (lambda root: flip(root / ".git/index", 40), ".git/index", "damaged"),
    "no note": (lambda root: (root / "work/one.md").unlink(), "notebook", "work/one.md is in"),
    "a lock of another git": (
        lambda root: stale_lock(root, "index.lock"),
        ".git/index.lock",
        "left behind",
    ),
    "a lock of a branch": (
        lambda root: stale_lock(root, "refs/heads/main.lock"),
        ".git/refs/heads/main.lock",
        "left behind",
    ),
    "alternates": (
        lambda root: (root / ".git/objects/info/alternates").write_text("/x\n"),
        ".git",
        "another repository",
    ),
    "wrong mode": (lambda root: odd_tree(root, b"100777 a.md"), ".git/objects", "invalid mode"),
    "a name that leads out": (lambda root: odd_tree(root, b"100644 .."), ".git", "invalid name"),
    "a link in .git": (
        lambda root: (root / ".git/packed-refs").symlink_to("/x"),
        ".git",
        "is a link",
    ),
}


def _gone(root: Path, name: str = "") -> None:
    import shutil

    shutil.rmtree(root / ".git" / name)


def told(found: Examination) -> list[str]:
    return [f"{one.place}: {one.problem}" for one in found.damages]


def test_a_notebook_that_is_whole(home: NoteHome) -> None:
    """Nothing is found, in loose objects and in packs, and its notes are told."""
    for _ in range(2):
        found = examine(home.root, now_s=LATER_S)
        assert (found.damages, found.remarks) == ((), ())
        assert list(found.notes) == ["INDEX.md", "work/one.md", "work/two.md"]
        git(home.root, "gc", "-q")
    assert examine_in_child(home.root) == examine(home.root)


@pytest.mark.parametrize("name", DAMAGE)
def test_damage_is_found(home: NoteHome, name: str) -> None:
    """By the place and in words, with advice; the look changes nothing."""
    import re

    damage, place, words = DAMAGE[name]
    damage(home.root)
    before = {path: path.lstat().st_mtime_ns for path in home.root.rglob("*")}
    found = examine(home.root, now_s=LATER_S)
    assert any(
        one.place.startswith(place) and re.search(words, one.problem) for one in found.damages
    ), told(found)
    assert all(one.advice for one in found.damages)
    assert {path: path.lstat().st_mtime_ns for path in home.root.rglob("*")} == before


REMARKS: dict[str, tuple[Callable[[Path], object], str]] = {
    "a lock of ours": (lock_of_ours, "one of us"),
    "an intent": (
        lambda root: (root / ".git/kb/intent").write_text(
            f'{{"from": null, "to": "{id_of(root, "HEAD")}"}}'
        ),
        "begun and not ended",
    ),
    "edited": (lambda root: (root / "work/one.md").write_text("x\n"), "work/one.md is changed"),
    "extra": (lambda root: (root / "new.md").write_text("x\n"), "new.md is in the folder"),
    "staged": (
        lambda root: git(root, "rm", "-q", "--cached", "work/one.md"),
        "work/one.md is changed",
    ),
    "shallow": (
        lambda root: (root / ".git/shallow").write_text(git(root, "rev-parse", "HEAD~1")),
        "cut short",
    ),
    "detached": (lambda root: git(root, "checkout", "-q", "--detach"), "no branch"),
    "replaced": (replaced, "are replaced"),
    "split": (lambda root: git(root, "update-index", "--split-index"), "split"),
}


@pytest.mark.parametrize("name", REMARKS)
def test_what_a_person_may_have_meant_is_no_damage(home: NoteHome, name: str) -> None:
    """It is remarked upon."""
    change, words = REMARKS[name]
    change(home.root)
    found = examine(home.root, now_s=LATER_S)
    assert found.damages == ()
    assert any(words in one.problem for one in found.remarks), found.remarks


def test_a_history_that_is_cut_short(home: NoteHome) -> None:
    """What lies before the cut is not missed."""
    before = loose(home.root, "HEAD~1")
    (home.root / ".git/shallow").write_text(git(home.root, "rev-parse", "HEAD"))
    before.unlink()
    assert examine(home.root).damages == ()


def test_a_bomb_is_not_unpacked(home: NoteHome, monkeypatch: pytest.MonkeyPatch) -> None:
    """An object that says it is huge costs no memory."""
    monkeypatch.setattr("kb.knowledge.notebook.gitobjects.OBJECT_BYTES_MAX", 8 << 20)
    name = "ab" + "0" * 38
    path = home.root / ".git/objects" / name[:2] / name[2:]
    path.parent.mkdir(exist_ok=True)
    machine = zlib.compressobj(9)
    with path.open("wb") as file:
        for _ in range(9):
            file.write(machine.compress(bytes(1 << 20)))
        file.write(machine.flush())
    assert any("too large" in one for one in told(examine(home.root)))


def test_whoever_looks_waits_for_whoever_works(
    home: NoteHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A change that is under way is no damage."""
    monkeypatch.setattr("kb.knowledge.notebook.fsck._LOCK_WAIT_S", 0.05)
    with file_lock(home.root, 1.0), pytest.raises(StoreBusy):
        examine(home.root)
    with at_work(home.root, 0, 1.0):
        pass
    assert examine(home.root).damages == ()


def test_a_notebook_of_ones_own(home: NoteHome) -> None:
    """Tags, other branches, links and odd names are as whole as any."""
    commit_file(home.root, "Mein Heft/Ä (1).md", "odd\n")
    (home.root / "link.md").symlink_to("work/one.md")
    git(home.root, "add", "link.md")
    git(home.root, "commit", "-q", "-m", "Link")
    git(home.root, "tag", "-a", "v1", "-m", "One")
    git(home.root, "branch", "side")
    found = examine(home.root)
    assert (found.damages, found.remarks) == ((), ())
