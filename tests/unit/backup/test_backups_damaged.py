"""Backups that are not what was written, by chance or by somebody's hand."""

import os
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from homes import SmallHome

from kb.errors import BackupDamaged
from kb.model.ids import sha256_hex
from kb.store.content.sealed_json import sealed_json
from kb.upkeep.backup import Backups, manifest
from kb.upkeep.backup.manifest import StoredFile

PAGE_BYTES = 4096


def flip(path: Path) -> None:
    """Change one bit in the middle, also of a file that is shared: then in this name alone."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.unlink()
    path.write_bytes(data)


DAMAGES: dict[str, Callable[[Path], object]] = {
    "flipped": flip,
    "cut": lambda path: os.truncate(path, path.stat().st_size // 2),
    "gone": Path.unlink,
    "a folder": lambda path: (path.unlink(), path.mkdir()),
}


@pytest.mark.parametrize("damage", DAMAGES)
@pytest.mark.parametrize("place", ["store/data.mdb", "raw", "kb.toml"])
def test_damage_is_named_and_nothing_restored(
    home: SmallHome, backups: Backups, tmp_path: Path, damage: str, place: str
) -> None:
    """Whatever file is not what was written: verify and restore name it, and no home is made."""
    (home.root / "kb.toml").write_text("# settings\n")
    made = backups.create(to=tmp_path / "b").backup
    raw = min(path for path in home.files() if path.startswith("raw"))
    hurt = tmp_path / "b" / "home" / (raw if place == "raw" else place)
    hurt.write_bytes(unshared(hurt))
    DAMAGES[damage](hurt)
    name = hurt.relative_to(tmp_path / "b" / "home").as_posix()
    assert [flaw.place for flaw in backups.verify(made.path).flaws] == [name]
    with pytest.raises(BackupDamaged, match=name) as caught:
        backups.restore(made.path, tmp_path / "new")
    assert caught.value.exit_code == 5
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b", "home"]


def unshared(path: Path) -> bytes:
    """The bytes of a file, whose name is taken from it."""
    data = path.read_bytes()
    path.unlink()
    return data


def test_a_record_that_was_never_right_is_found(home: SmallHome, backups: Backups) -> None:
    """The checks of records run over the copy: whole files are not yet a whole home."""
    with home.store.write() as txn:
        key = next(key for key, _ in txn.scan("versions"))
        txn.delete("versions", key)
    verified = backups.verify(backups.create().backup.name)
    assert not verified.sound
    assert any("its source does not lead to it" in flaw.problem for flaw in verified.flaws)


@pytest.mark.parametrize("hurt", ["gone", "flipped", "empty"])
def test_without_its_manifest_a_backup_is_not_whole(
    home: SmallHome, backups: Backups, tmp_path: Path, hurt: str
) -> None:
    """It is not listed as whole, not verified, not restored; and it is named."""
    made = backups.create().backup
    path = Path(made.path) / "manifest.json"
    {"gone": Path.unlink, "flipped": flip, "empty": lambda p: os.truncate(p, 0)}[hurt](path)
    listed = backups.list_backups()
    assert (listed.backups, [flaw.place for flaw in listed.damaged]) == ((), [made.name])
    for call in (backups.verify, lambda name: backups.restore(name, tmp_path / "new")):
        with pytest.raises(BackupDamaged, match=made.name):
            call(made.name)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize(
    "files",
    [
        (),
        (StoredFile(path="store/data.mdb"), StoredFile(path="../out")),
        (StoredFile(path="store/data.mdb"), StoredFile(path="/out")),
        (StoredFile(path="store/data.mdb"), StoredFile(path="store/data.mdb")),
    ],
)
def test_a_manifest_cannot_lead_outside(
    home: SmallHome, backups: Backups, tmp_path: Path, files: tuple[StoredFile, ...]
) -> None:
    """A backup that somebody else made can write nowhere but into the new home."""
    made = backups.create().backup
    held = manifest.read(Path(made.path))
    forged = msgspec.structs.replace(held, files=files)
    (Path(made.path) / "manifest.json").write_bytes(sealed_json(forged))
    with pytest.raises(BackupDamaged, match="its manifest"):
        backups.restore(made.name, tmp_path / "new")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["home"]


def test_links_are_made_after_the_files(home: SmallHome, backups: Backups, tmp_path: Path) -> None:
    """A link and a file below it cannot both be restored, so nothing is written through one."""
    made = backups.create().backup
    outside = tmp_path / "outside"
    outside.mkdir()
    held = manifest.read(Path(made.path))
    (Path(made.path) / "home" / "a").mkdir()
    (Path(made.path) / "home" / "a" / "b").write_text("b")
    found = StoredFile(path="a/b", size_bytes=1, sha256=sha256_hex("b"))
    files = (StoredFile(path="a", link=str(outside)), found, *held.files)
    forged = msgspec.structs.replace(held, files=files)
    (Path(made.path) / "manifest.json").write_bytes(sealed_json(forged))
    with pytest.raises(FileExistsError):
        backups.restore(made.name, tmp_path / "new")
    assert list(outside.iterdir()) == []
    assert not (tmp_path / "new").exists()


def test_a_store_that_could_end_the_process_is_not_opened(
    home: SmallHome, backups: Backups, tmp_path: Path
) -> None:
    """Also where its manifest names the bytes that are there: pages that are not are not mapped."""
    made = backups.create(to=tmp_path / "b").backup
    file = tmp_path / "b" / "home" / manifest.STORE_FILE
    crafted = unshared(file)[: 3 * PAGE_BYTES]
    file.write_bytes(crafted)
    held = manifest.read(tmp_path / "b")
    forged = [
        StoredFile(path=one.path, size_bytes=len(crafted), sha256=sha256_hex(crafted))
        if one.path == manifest.STORE_FILE
        else one
        for one in held.files
    ]
    sealed = sealed_json(msgspec.structs.replace(held, files=tuple(forged)))
    (tmp_path / "b" / "manifest.json").write_bytes(sealed)
    verified = backups.verify(made.path)
    assert [flaw.place for flaw in verified.flaws] == [manifest.STORE_FILE]
    with pytest.raises(BackupDamaged, match="the store is not sound"):
        backups.restore(made.path, tmp_path / "new")
    assert not (tmp_path / "new").exists()
