"""Kills and failing disks while an archive is taken in: nothing half is in; once more is all."""

import signal
from pathlib import Path
from typing import Final

import pytest
from crash_rig import Called, Rig, assert_one_clear_line
from packs_archive import archive, manifest, passage, vectors, written

from kb.knowledge.packs.portable import PortableDocChunks
from kb.model import failpoints

KILLED: Final = -signal.SIGKILL
POINTS: Final = [name for name in failpoints.NAMES if name.startswith("packs.")]
# One to each kind of step that an import takes besides its own.
OTHERS: Final = (
    "content.after_fsync",
    "ingest.before_commit",
    "ingest.after_commit",
    "sync.after_hold",
    "sync.before_give_back",
    "store.before_commit@2",
    "store.after_commit@3",
)
NEW: Final = {
    "docs/pear.md": b"# Pear\n\nA hard pear.",
    "docs/quince.md": b"# Quince\n\nA ripe one.",
}


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Rig:
    """A home with the first version of a pack."""
    rig = Rig(tmp_path_factory.mktemp("filled"))
    assert rig.call("pack", "add", written(rig.root, "v1.tar", archive())).code == 0
    return rig


@pytest.fixture
def rig(filled: Rig, tmp_path: Path) -> Rig:
    copied = filled.copied(tmp_path)
    said = manifest(version="2", portable={"passages": 2})
    cuts = [
        PortableDocChunks(doc=name, passages=(passage(0, len(text)),)) for name, text in NEW.items()
    ]
    data = archive(manifest=said, docs=NEW, cuts=cuts, vectors=vectors()[:2])
    written(tmp_path, "v2.tar", data)
    return copied


def ripe(rig: Rig) -> set[str]:
    hits = rig.call("search", "ripe", "--mode", "lexical", "--json").json["hits"]
    return {hit["title"] for hit in hits}


def version(rig: Rig) -> str:
    said: Called = rig.call("pack", "show", "fruit", "--json")
    assert said.code == 0, said
    found: str = said.json["version"]
    return found


def assert_old_or_new(rig: Rig) -> None:
    """The pack can be read, all is whole, and a sync makes it level with what it is now."""
    rig.check()
    assert rig.call("pack", "check", "fruit").code == 0
    now = version(rig)
    assert rig.call("sync-all", "--interval-min", 0).code == 0
    rig.drain()
    assert ripe(rig) == ({"Pear"} if now == "1" else {"Quince"})


def assert_again_is_all(rig: Rig) -> None:
    """One more run comes to its end; what is left over goes with a compaction."""
    assert rig.call("pack", "add", rig.root / "v2.tar").code == 0
    assert (version(rig), ripe(rig)) == ("2", {"Quince"})
    assert rig.call("compact", "--grace-min", 0).code == 0
    packs = rig.home / "packs"
    assert sorted(path.name.partition("@")[0] for path in packs.iterdir()) == ["fruit", "fruit"]
    assert version(rig) == "2"
    rig.check()


@pytest.mark.parametrize("name", [*POINTS, *OTHERS])
def test_a_kill_leaves_the_old_pack_or_the_new(rig: Rig, name: str) -> None:
    """At each step: the pack is whole, in the folder and in the store."""
    point, _, nth = name.partition("@")
    armed = f"{point}=kill" + (f"@{nth}" if nth else "")
    assert rig.run("pack", "add", rig.root / "v2.tar", armed=armed).code == KILLED
    assert rig.hit()[-1] == point
    assert_old_or_new(rig)
    assert_again_is_all(rig)


@pytest.mark.parametrize("name", POINTS)
def test_a_failing_disk(rig: Rig, name: str) -> None:
    """One line and exit code 1, and as after a kill."""
    said = rig.run("pack", "add", rig.root / "v2.tar", armed=f"{name}=enospc")
    assert_one_clear_line(said)
    assert said.code == 1
    assert_old_or_new(rig)
    assert_again_is_all(rig)


def test_a_first_add_that_was_killed_is_no_pack(tmp_path: Path) -> None:
    """Before the register names it there is none; compaction takes its folder."""
    rig = Rig(tmp_path)
    path = written(tmp_path, "v1.tar", archive())
    for name in ("packs.after_unpack", "packs.after_link"):
        assert rig.run("pack", "add", path, armed=f"{name}=kill").code == KILLED
        assert rig.call("pack", "ls", "--json").json == {"packs": []}
        assert rig.call("sync-all", "--interval-min", 0).code == 0
        assert rig.call("sources", "--json").json["sources"] == []
        assert rig.call("compact", "--dry-run", "--json").json["packs_removed"] > 0
        assert rig.call("compact").code == 0
        assert list((rig.home / "packs").iterdir()) == []
        rig.check()


def test_what_a_person_put_there_stays(filled: Rig, tmp_path: Path) -> None:
    """Only what unpacking makes is removed."""
    rig = filled.copied(tmp_path)
    mine = rig.home / "packs" / "mine"
    mine.mkdir()
    (rig.home / "packs" / "to-mine").symlink_to("mine")
    (rig.home / "packs" / "note.txt").write_text("mine")
    part = rig.home / "packs" / ".fruit@0123456789abcdef.unfinished"
    part.mkdir()
    assert rig.call("compact", "--json").json["packs_removed"] == 1
    left = sorted(path.name.partition("@")[0] for path in mine.parent.iterdir())
    assert left == ["fruit", "fruit", "mine", "note.txt", "to-mine"]
