"""A home that has lost its store: nothing is made in its place, and all that was kept stays."""

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest
from crash_rig import Rig

from kb.store.meta import set_word
from kb.store.store import Store

WORDS: Final = ("quince", "medlar", "damson")


def text(word: str) -> str:
    return f"# About {word}\n\nHere stands {word}, among words that all files have.\n"


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    """A home with three docs and a backup, closed."""
    rig = Rig(tmp_path)
    rig.write({f"{word}.md": text(word) for word in WORDS})
    rig.add()
    assert rig.call("backup", "create").code == 0
    return rig


def remove_data_file(home: Path) -> None:
    (home / "store" / "data.mdb").unlink()


def empty_data_file(home: Path) -> None:
    os.truncate(home / "store" / "data.mdb", 0)


def empty_store(home: Path) -> None:
    shutil.rmtree(home / "store")
    (home / "store").mkdir()


def remove_store(home: Path) -> None:
    shutil.rmtree(home / "store")


LOSSES: Final = (remove_data_file, empty_data_file, empty_store, remove_store)
COMMANDS: Final = (
    ("search", "quince"),
    ("ls",),
    ("check",),
    ("check", "--repair"),
    ("compact",),
    ("backup", "create", "--keep", 1),
    ("worker", "--drain"),
    ("doctor",),
    ("init",),
    ("note", "log"),
)


@pytest.mark.parametrize("lose", LOSSES)
def test_a_lost_store_is_not_taken_for_a_new_home(rig: Rig, lose: Callable[[Path], None]) -> None:
    """Every command ends with exit 5 and says what to do; no file of the home changes."""
    lose(rig.home)
    before = rig.content_files()
    backups = sorted(path.name for path in (rig.home / "backups").iterdir())
    for command in (*COMMANDS, ("add", "-r", rig.sources)):
        said = rig.call(*command)
        assert said.code == 5, (command, said)
        assert "the store is missing, but raw/ and md/ and backups/ lie beside it" in said.err
        assert "kb check --rebuild" in said.err
    assert rig.content_files() == before
    assert sorted(path.name for path in (rig.home / "backups").iterdir()) == backups
    assert not (rig.home / "store" / "data.mdb").exists() or not os.path.getsize(
        rig.home / "store" / "data.mdb"
    )
    assert rig.call("backup", "list").code == 0


@pytest.mark.parametrize("kept", ["raw", "md", "notebook", "backups"])
def test_each_of_what_a_store_names_tells_of_it(tmp_path: Path, kept: str) -> None:
    """One of them is enough; empty folders, as a process leaves that dies early, are not."""
    rig = Rig(tmp_path)
    (rig.home / kept).mkdir(parents=True)
    assert rig.call("ls").code == 0
    (rig.home / kept / "something").mkdir()
    said = rig.call("ls")
    assert (said.code, f"but {kept}/ lies beside it" in said.err) == (5, True)


def test_a_home_is_not_missed_before_it_is_made(tmp_path: Path) -> None:
    """Settings, entries and unpacked packs may be there before a store is."""
    rig = Rig(tmp_path)
    for name in ("knowledge", "packs", "index", "tmp", "store"):
        (rig.home / name / "x").mkdir(parents=True)
    (rig.home / "kb.toml").write_text("")
    rig.write({"a.md": text("quince")})
    rig.add()
    rig.check()


def test_a_backup_of_an_empty_home_removes_none(rig: Rig) -> None:
    """However few are to be kept, a backup that holds docs stays when the newest holds none."""
    ids = [row["doc_id"] for row in rig.docs().values()]
    assert rig.call("rm", *ids, "--yes").code == 0
    made = rig.call("backup", "create", "--keep", 1, "--json")
    assert (made.code, made.json["pruned"], made.json["spared"]) == (0, [], 1)
    assert "no older backup was removed" in made.err
    assert len(rig.call("backup", "list", "--json").json["backups"]) == 2


def test_a_store_of_a_later_kb_asks_for_that(rig: Rig) -> None:
    """Every command says to update kb, none to check what check refuses; nothing changes."""
    with Store.open(rig.home / "store") as store, store.write() as txn:
        set_word(txn, "format", "3")
    before = (rig.home / "store" / "data.mdb").read_bytes()
    for command in (("search", "quince"), ("check",), ("check", "--repair"), ("compact",)):
        said = rig.call(*command)
        assert said.code == 5, command
        assert "a later kb made it (format 3; this one reads format 2); update kb" in said.err
        assert "kb check" not in said.err
    assert (rig.home / "store" / "data.mdb").read_bytes() == before


def test_a_damaged_store_of_a_later_kb_is_left_to_that(rig: Rig) -> None:
    """What this one cannot read is not to be left out of a salvage."""
    with Store.open(rig.home / "store") as store, store.write() as txn:
        set_word(txn, "format", "3")
        key, value = next(iter(txn.scan("docs")))
        txn.put("docs", key, value[:-1] + b"x")
    said = rig.call("check", "--repair")
    assert (said.code, "update kb" in said.err) == (5, True)
    assert sorted(path.name for path in (rig.home / "store").iterdir()) == ["data.mdb", "lock.mdb"]


@pytest.mark.parametrize("lose", LOSSES)
def test_a_rebuild_takes_in_what_raw_holds(rig: Rig, lose: Callable[[Path], None]) -> None:
    """Asked first; then each file of raw/ is a private doc with the tag `recovered`."""
    rig.write({"quince.md": text("quince") + "And more."})
    rig.add()
    lose(rig.home)
    held = rig.call("check", "--rebuild")
    assert held.code == 6
    assert "4 files of raw/ would be added" in held.err
    assert rig.call("ls").code == 5
    done = rig.call("check", "--rebuild", "--yes", "--json")
    assert (done.code, done.json["salvaged"]["recovered"]) == (0, 4), done
    assert done.json["salvaged"]["lost"] == []
    rig.drain()
    rig.check()
    rows = rig.call("ls", "--json").json["docs"]
    assert {(row["visibility"], *row["tags"]) for row in rows} == {("private", "recovered")}
    for word in WORDS:
        hits = rig.call("search", word, "--json").json["hits"]
        assert hits[0]["title"] == f"About {word}"
    # Its file is a source again, and its number of birth is none that was given before.
    report = rig.add()
    assert report["added"] == len(WORDS)


def test_nothing_is_rebuilt_over_a_store(rig: Rig, tmp_path: Path) -> None:
    """Where there is one it is mended; where nothing was, nothing is made."""
    assert rig.call("check", "--rebuild", "--yes").code == 2
    assert rig.call("check", "--rebuild", "--repair").code == 2
    empty = Rig(tmp_path / "empty")
    assert empty.call("check", "--rebuild", "--yes").code == 2
    assert not empty.home.exists()
