"""`kb backup`: made beside writers, listed, verified, and brought back."""

import shutil
from pathlib import Path
from typing import Any

import pytest
from commands import HASHING, KB, Home, run
from crash_rig import Rig, ended, wait_until

NOTES = ("tea", "coffee", "milk")


@pytest.fixture
def home(tmp_path: Path) -> Home:
    folder = tmp_path / "n"
    folder.mkdir()
    for name in NOTES:
        (folder / f"{name}.md").write_text(f"# {name}\n\nWhat is known of {name}.")
    home = Home(tmp_path / "home")
    assert home.run("add", "-r", folder).code == 0
    return home


def found(home: Home, *queries: str) -> dict[str, Any]:
    answers = {query: home.run("search", query, "--json") for query in queries}
    assert all(answer.code == 0 for answer in answers.values())
    return {query: answer.json["hits"] for query, answer in answers.items()}


def test_lost_and_brought_back(home: Home, tmp_path: Path) -> None:
    """The home is gone, a backup on another disk is not: all is found as it was."""
    (home.root / "kb.toml").write_text("[search]\ncandidates = 100\n")
    (home.root / "knowledge").mkdir()
    (home.root / "knowledge" / "fact.md").write_text("a fact")
    before = found(home, *NOTES)
    place = tmp_path / "disk" / "b"
    made = home.run("backup", "create", "--reason", "just in case", "--to", place)
    assert (made.code, made.err) == (0, "")
    shutil.rmtree(home.root)
    restored = home.run("backup", "restore", place, "--to", home.root.with_name("new"), "--json")
    assert restored.code == 0, restored.err
    assert not home.root.exists()
    home.root.with_name("new").rename(home.root)
    assert found(home, *NOTES) == before
    checked = home.run("check")
    assert (checked.code, checked.err) == (0, "")
    assert (home.root / "knowledge" / "fact.md").read_text() == "a fact"
    assert home.run("ls", "--json").json["total"] == len(NOTES)


def test_listed_kept_and_verified(home: Home) -> None:
    """The list has the newest first, with reasons; `--keep` leaves so many; verify reads all."""
    assert home.run("backup", "list", "--json").json == {"backups": [], "damaged": []}
    for reason in ("one", "two", "three"):
        assert home.run("backup", "create", "--reason", reason).code == 0
    listed = home.run("backup", "list", "--json").json["backups"]
    assert [backup["reason"] for backup in listed] == ["three", "two", "one"]
    assert all(backup["docs"] == len(NOTES) for backup in listed)
    kept = home.run("backup", "create", "--reason", "four", "--keep", "2", "--json").json
    assert kept["pruned"] == [listed[1]["name"], listed[2]["name"]]
    shown = home.run("backup", "list")
    assert (shown.code, [line.split()[-1] for line in shown.out.splitlines()]) == (
        0,
        ["four", "three"],
    )
    verified = home.run("backup", "verify", "--json").json
    assert (verified["sound"], len(verified["backups"])) == (True, 2)


def test_damage_is_named(home: Home, tmp_path: Path) -> None:
    """A flipped byte is found, in its file, with exit code 5; the other backups are not touched."""
    first, second = (
        home.run("backup", "create", "--json").json["backup"]["name"] for _ in range(2)
    )
    store = home.root / "backups" / first / "home" / "store" / "data.mdb"
    data = bytearray(store.read_bytes())
    data[len(data) // 2] ^= 1
    store.write_bytes(data)
    for said in (home.run("backup", "verify"), home.run("backup", "verify", first)):
        assert said.code == 5
        assert "store/data.mdb: the file is not what was written" in said.err
    refused = home.run("backup", "restore", first, "--to", tmp_path / "new")
    assert (refused.code, refused.out) == (5, "")
    assert f"{first}: store/data.mdb" in refused.err
    assert not (tmp_path / "new").exists()
    assert home.run("backup", "verify", second).code == 0
    (home.root / "backups" / second / "manifest.json").unlink()
    cut = home.run("backup", "verify", second)
    assert cut.code == 5
    assert "it was cut short" in cut.err


def test_a_damaged_home_can_still_be_left(home: Home, tmp_path: Path) -> None:
    """List and restore do not need the store that the backup is there to replace."""
    name = home.run("backup", "create", "--json").json["backup"]["name"]
    (home.root / "store" / "data.mdb").write_bytes(b"nothing of a store" * 1000)
    assert home.run("ls").code == 5
    assert home.run("backup", "list", "--json").json["backups"][0]["name"] == name
    assert home.run("backup", "restore", name[:6], "--to", tmp_path / "new").code == 0
    assert found(Home(tmp_path / "new"), "tea")["tea"]


def test_a_home_that_lacks_a_file(home: Home) -> None:
    """Backed up as far as it goes: exit code 3, the file named, no older backup removed."""
    assert home.run("backup", "create").code == 0
    lost = next((home.root / "raw").rglob("*.md"))
    lost.unlink()
    said = home.run("backup", "create", "--keep", "1")
    assert said.code == 3
    assert lost.relative_to(home.root).as_posix() in said.err
    assert len(home.run("backup", "list", "--json").json["backups"]) == 2


@pytest.mark.parametrize(
    ("args", "code"),
    [
        (("create", "--to", "TAKEN"), 2),
        (("create", "--keep", "0"), 2),
        (("create", "--keep", "1", "--to", "NEW"), 2),
        (("create", "--reason", "x" * 1001), 2),
        (("verify", "nothing"), 4),
        (("restore", "nothing", "--to", "NEW"), 4),
        (("restore", "2", "--to", "TAKEN"), 2),
        (("restore", "2"), 2),
        (("restore", "2", "--to", "HOME"), 2),
    ],
)
def test_what_cannot_be_done(home: Home, tmp_path: Path, args: tuple[str, ...], code: int) -> None:
    """A wrong call has its documented code, says one thing, and changes nothing."""
    assert home.run("backup", "create").code == 0
    (tmp_path / "taken").mkdir()
    (tmp_path / "taken" / "mine").write_text("mine")
    places = {"TAKEN": tmp_path / "taken", "NEW": tmp_path / "new", "HOME": home.root}
    said = home.run("backup", *(places.get(arg, arg) for arg in args))
    assert (said.code, said.out) == (code, "")
    assert said.err.startswith("kb: ")
    assert [path.name for path in (tmp_path / "taken").iterdir()] == ["mine"]
    assert not (tmp_path / "new").exists()
    assert len(home.run("backup", "list", "--json").json["backups"]) == 1


def test_no_home_is_made_by_asking(tmp_path: Path) -> None:
    """Where there is none, there is nothing to back up and no backup to list."""
    argv = [KB, "--home", tmp_path / "none", *HASHING, "backup"]
    assert run([*argv, "list", "--json"]).json == {"backups": [], "damaged": []}
    said = run([*argv, "create"])
    assert (said.code, "no home" in said.err) == (2, True)
    assert not (tmp_path / "none").exists()


def test_made_while_others_write(tmp_path: Path) -> None:
    """Backups beside an adder and a compactor are whole homes, each of one moment."""
    rig = Rig(tmp_path)
    rig.write({f"{n:03}.md": f"# Note {n}\n\nHere stands word{n:03}.\n" for n in range(70)})
    store = rig.home / "store" / "data.mdb"
    counts = []
    with rig.start("add", "-r", rig.sources) as adding:
        wait_until(store.exists, "the home")
        while adding.poll() is None or not counts:
            made = rig.call("backup", "create", "--json")
            assert made.code == 0, made.err
            # Without a pause between them compactions keep the adder waiting.
            if len(counts) < 5:
                assert rig.call("compact", "--grace-min", 0).code == 0
            counts.append(made.json["backup"]["docs"])
        assert ended(adding).code == 0
    assert counts == sorted(counts)
    verified = rig.call("backup", "verify", "--json")
    assert (verified.code, verified.json["sound"]) == (0, True), verified.err
    backup = verified.json["backups"][len(counts) // 2]["backup"]
    other = Rig(tmp_path / "other", rig.sources)
    assert rig.call("backup", "restore", backup["name"], "--to", other.home).code == 0
    other.trust()
    other.check()
    other.drain()
    other.check()
    assert len(other.docs()) == backup["docs"]


def test_a_backup_that_came_from_elsewhere(home: Home, tmp_path: Path) -> None:
    """It is restored, and what is restored counts once its owner says so."""
    assert home.run("backup", "create", "--to", tmp_path / "b").code == 0
    shutil.copytree(tmp_path / "b", tmp_path / "copied")
    restored = home.run("backup", "restore", tmp_path / "copied", "--to", tmp_path / "new")
    assert restored.code == 0
    assert f"counts only after `kb trust {tmp_path / 'new'}`" in restored.err
    other = Home(tmp_path / "new")
    assert other.run("ls").code == 6
    assert run([KB, "trust", str(other.root)]).code == 0
    assert found(other, "tea")["tea"]
