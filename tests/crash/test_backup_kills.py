"""Kills and failing disks while a backup is made: it is there whole, or not at all."""

import shutil
import signal
from pathlib import Path
from typing import Final

import pytest
from crash_rig import Rig, assert_one_clear_line, ended, wait_until

from kb.model import failpoints

KILLED: Final = -signal.SIGKILL
INTERRUPTED: Final = 130
POINTS: Final = [name for name in failpoints.NAMES if name.startswith("backup.")]
WORDS: Final = ("quince", "medlar", "damson")


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Rig:
    rig = Rig(tmp_path_factory.mktemp("filled"))
    rig.write({f"{word}.md": f"# About {word}\n\nHere stands {word}.\n" for word in WORDS})
    rig.add()
    return rig


@pytest.fixture
def rig(filled: Rig, tmp_path: Path) -> Rig:
    return filled.copied(tmp_path)


def listed(rig: Rig) -> list[str]:
    said = rig.call("backup", "list", "--json")
    assert (said.code, said.json["damaged"]) == (0, [])
    return [backup["name"] for backup in said.json["backups"]]


def in_backups(rig: Rig) -> list[str]:
    return sorted(path.name for path in (rig.home / "backups").iterdir())


@pytest.mark.parametrize("name", POINTS)
def test_a_kill_leaves_no_backup_and_the_next_removes_the_rest(rig: Rig, name: str) -> None:
    """Nothing half is listed, the home is whole, and one more run is as if nothing had been."""
    first = rig.call("backup", "create", "--json").json["backup"]["name"]
    assert rig.run("backup", "create", armed=f"{name}=kill").code == KILLED
    assert rig.hit()[-1] == name
    assert listed(rig) == [first]
    assert len(in_backups(rig)) == 2
    rig.check()
    second = rig.call("backup", "create", "--json").json["backup"]["name"]
    assert in_backups(rig) == sorted((first, second))
    assert rig.call("backup", "verify").code == 0


def test_a_kill_elsewhere_leaves_what_the_next_removes(rig: Rig) -> None:
    """In a folder of its own, too: the same place can be named again."""
    place = rig.root / "disk" / "b"
    armed = f"{POINTS[0]}=kill"
    assert rig.run("backup", "create", "--to", place, armed=armed).code == KILLED
    assert [path.name for path in place.parent.iterdir()] == [".b.unfinished"]
    assert rig.call("backup", "verify", place).code == 4
    assert rig.call("backup", "create", "--to", place).code == 0
    assert [path.name for path in place.parent.iterdir()] == ["b"]


@pytest.mark.parametrize("action", ["eio", "enospc"])
@pytest.mark.parametrize("name", POINTS)
def test_a_failing_disk_leaves_nothing(rig: Rig, name: str, action: str) -> None:
    """One line and exit code 1; neither a backup nor a part of one."""
    said = rig.run("backup", "create", armed=f"{name}={action}")
    assert_one_clear_line(said)
    assert said.code == 1
    assert in_backups(rig) == []
    rig.check()


def test_ctrl_c_leaves_nothing(rig: Rig) -> None:
    """Interrupted, a backup is taken back by the command itself."""
    process = rig.start("backup", "create", armed="backup.before_manifest=pause")
    with process:
        wait_until(lambda: "backup.before_manifest" in rig.hit(), "the manifest's turn")
        process.send_signal(signal.SIGINT)
        said = ended(process)
    assert said.code == INTERRUPTED
    assert said.err.strip() == "kb: interrupted; what was committed is kept"
    assert in_backups(rig) == []


def test_a_backup_that_is_being_made_is_left_alone(rig: Rig) -> None:
    """A second one waits for the first, and both are whole."""
    with rig.start("backup", "create", armed="backup.after_copy=pause") as first:
        wait_until(lambda: "backup.after_copy" in rig.hit(), "the copy of the store")
        assert listed(rig) == []
        assert rig.run("backup", "create").code == 0
        assert ended(first).code == 0
    assert len(listed(rig)) == 2
    assert rig.call("backup", "verify").code == 0


def test_a_kill_while_an_old_one_is_removed(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    """Half removed, it is not listed any more; the next run removes the other half."""
    old = rig.call("backup", "create", "--json").json["backup"]["name"]

    def die(folder: Path, **_: object) -> None:
        (folder / "home" / "store" / "data.mdb").unlink()
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(shutil, "rmtree", die)
        assert rig.call("backup", "create", "--keep", 1).code != 0
    (left,) = listed(rig)
    assert left != old
    assert rig.call("backup", "verify").code == 0
    rig.call("backup", "create", "--keep", 2)
    assert in_backups(rig) == sorted(listed(rig))
    assert left in listed(rig)
