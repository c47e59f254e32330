"""Backups of one home, made and restored in this process."""

import errno
import os
from pathlib import Path

import pytest
from homes import SmallHome

from kb.errors import AmbiguousId, BackupDamaged, KbError, NoBackup, StoreFull, UsageError
from kb.store import docs
from kb.store.content.layout import HomePaths
from kb.store.content.lock import file_lock
from kb.store.store import Store
from kb.upkeep.backup import BackupCatalog, Backups

SECOND_MS = 1_000


def names(backups: BackupCatalog) -> list[str]:
    return [backup.name for backup in backups.list_backups().backups]


def files_below(folder: Path) -> dict[str, bytes]:
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_a_backup_is_listed_with_what_it_holds(home: SmallHome, backups: Backups) -> None:
    """Name, moment, reason and counts are those of the home when it was copied."""
    made = backups.create("before the flood").backup
    home.add("later.md", "Later.")
    assert backups.list_backups().backups == (made,)
    assert made.name == "20231114T221320Z-000000"
    assert (made.created_ms, made.reason) == (home.clock.now_ms(), "before the flood")
    assert (made.docs, made.passages, made.files, made.problems) == (2, 2, 5, ())
    verified = backups.verify(made.name)
    assert (verified.sound, verified.flaws, verified.checked.docs) == (True, (), 2)


def test_a_restored_home_is_the_one_that_was_copied(
    home: SmallHome, backups: Backups, tmp_path: Path
) -> None:
    """What came later is not in it; it shares no file with the backup, and needs no cache."""
    made = backups.create().backup
    before = home.files()
    home.add("later.md", "Later.")
    restored = backups.restore(made.name, tmp_path / "new" / "home")
    assert (restored.flaws, restored.home) == ((), str(tmp_path / "new" / "home"))
    other = SmallHome(tmp_path / "new" / "home")
    try:
        assert (other.files(), other.check().findings) == (before, ())
        assert len(other.found("steeped")) == 1
        assert other.found("later") == []
    finally:
        other.close()
    linked = [p for p in (tmp_path / "new").rglob("*") if p.is_file() and p.stat().st_nlink > 1]
    assert linked == []
    assert backups.verify(made.name).sound


def test_content_is_shared_and_the_rest_copied(home: SmallHome, backups: Backups) -> None:
    """Files that never change are further names of the home's own; others are files apart."""
    (home.root / "kb.toml").write_text("")
    made = Path(backups.create().backup.path) / "home"
    for path in home.files():
        assert (made / path).samefile(home.root / path)
    assert not (made / "kb.toml").samefile(home.root / "kb.toml")


def test_content_is_copied_where_it_cannot_be_shared(
    home: SmallHome, backups: Backups, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On another file system a backup has files of its own, which are what the docs say."""

    def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EXDEV, "another device")

    monkeypatch.setattr("os.link", refuse)
    made = backups.create(to=tmp_path / "disk" / "b").backup
    assert made.problems == ()
    below = files_below(tmp_path / "disk" / "b" / "home")
    assert {path: below[path] for path in home.files()} == {
        path: (home.root / path).read_bytes() for path in home.files()
    }
    assert backups.verify(str(tmp_path / "disk" / "b")).sound


def test_everything_of_the_person_comes_along(
    home: SmallHome, backups: Backups, tmp_path: Path
) -> None:
    """Settings, folders of their own, links and scripts are kept; caches, locks and strays not."""
    own = home.root / "knowledge" / "deep"
    own.mkdir(parents=True)
    (own / "a.md").write_text("a")
    (own / "run.sh").write_text("#!/bin/sh")
    (own / "run.sh").chmod(0o755)
    (own / "up").symlink_to("../../md")
    (own / "index").mkdir()
    (own / "index" / "b.md").write_text("b")
    (home.root / "config.toml").write_text("[search]\n")
    (home.root / "compact.lock").touch()
    content = home.files()
    (home.root / "raw" / "00").mkdir()
    (home.root / "raw" / "00" / "stray.md").write_text("stray")
    os.mkfifo(own / "fifo")
    made = backups.create().backup
    target = tmp_path / "new"
    assert backups.restore(made.name, target).flaws == ()
    expected = {"config.toml", "knowledge/deep/a.md", "knowledge/deep/run.sh", "store/data.mdb"}
    expected |= {"knowledge/deep/index/b.md"} | content
    found = {p.relative_to(target).as_posix() for p in target.rglob("*") if p.is_file()}
    assert found == expected
    assert (target / "knowledge/deep/up").readlink() == Path("../../md")
    assert os.access(target / "knowledge/deep/run.sh", os.X_OK)
    assert not os.access(target / "knowledge/deep/a.md", os.X_OK)


def test_a_name_that_is_no_utf8_is_told(home: SmallHome, backups: Backups) -> None:
    """What a manifest cannot name is a problem of the backup, and the rest is in it."""
    os.close(os.open(os.fsencode(home.root) + b"/\xff.md", os.O_CREAT | os.O_WRONLY))
    os.symlink(b"\xff", os.fsencode(home.root) + b"/link")
    made = backups.create().backup
    assert sorted(made.problems) == [
        "link: where it leads is not UTF-8",
        "\ufffd.md: its name is not UTF-8",
    ]
    assert backups.verify(made.name).sound


def test_keep_removes_the_oldest(home: SmallHome, backups: Backups) -> None:
    """The newest `keep` are left, whatever the clock says of the one just made."""
    made = []
    for _ in range(4):
        made.append(backups.create().backup.name)
        home.clock.advance(SECOND_MS)
    assert names(backups) == made[::-1]
    created = backups.create(keep=3)
    assert created.pruned == (made[1], made[0])
    assert names(backups) == [created.backup.name, made[3], made[2]]
    home.clock.jump(-60 * SECOND_MS)
    early = backups.create(keep=1)
    assert names(backups) == [early.backup.name]


def test_a_home_in_decay_pushes_no_backup_out(home: SmallHome, backups: Backups) -> None:
    """A missing file is a problem of the backup, which has the rest; older ones stay."""
    whole = backups.create().backup
    home.clock.advance(SECOND_MS)
    lost = min(home.files())
    (home.root / lost).unlink()
    created = backups.create(keep=1)
    assert created.backup.problems == (f"{lost}: no such file",)
    assert created.pruned == ()
    assert names(backups) == [created.backup.name, whole.name]
    assert {flaw.place for flaw in backups.verify(created.backup.name).flaws} == {lost}
    assert backups.verify(whole.name).sound


def test_a_home_that_was_not_whole_is_restored_as_it_was(
    home: SmallHome, backups: Backups, tmp_path: Path
) -> None:
    """What it lacked is told, not refused: the rest may be all that is left."""
    lost = min(home.files())
    (home.root / lost).unlink()
    restored = backups.restore(backups.create().backup.name, tmp_path / "new")
    assert {flaw.place for flaw in restored.flaws} == {lost}


def test_a_backup_is_found_by_name_start_or_path(
    home: SmallHome, backups: Backups, tmp_path: Path
) -> None:
    """A unique start will do; several, none, and what is not there are told apart."""
    first = backups.create().backup
    second = backups.create().backup
    far = backups.create(to=tmp_path / "far").backup
    assert backups.find(first.name[:-1] + "0") == Path(first.path)
    assert backups.find(far.path) == Path(far.path)
    with pytest.raises(AmbiguousId, match=second.name):
        backups.find(first.name[:8])
    for ident in ("", "nothing", str(tmp_path / "nothing")):
        with pytest.raises(NoBackup) as caught:
            backups.find(ident)
        assert caught.value.exit_code == 4
    with pytest.raises(BackupDamaged, match="is no backup"):
        backups.verify(str(tmp_path))


@pytest.mark.parametrize("taken", ["a file", "a folder", "the home", "in the home"])
def test_no_place_that_is_taken(
    home: SmallHome, backups: Backups, tmp_path: Path, taken: str
) -> None:
    """Neither a backup nor a home is put where something is; what is there stays as it is."""
    made = backups.create().backup
    place = {
        "a file": tmp_path / "taken",
        "a folder": tmp_path / "folder",
        "the home": home.root,
        "in the home": home.root / "inside",
    }[taken]
    (tmp_path / "taken").write_text("mine")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "mine").write_text("mine")
    before = files_below(tmp_path)
    for call in (lambda: backups.create(to=place), lambda: backups.restore(made.name, place)):
        with pytest.raises(UsageError) as caught:
            call()
        assert caught.value.exit_code == 2
    before.pop("home/compact.lock", None)
    after = files_below(tmp_path)
    after.pop("home/compact.lock", None)
    assert after == before


def test_an_empty_folder_is_taken_into_use(
    home: SmallHome, backups: Backups, tmp_path: Path
) -> None:
    """Also one that a link leads to."""
    (tmp_path / "b").mkdir()
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to("real")
    made = backups.create(to=tmp_path / "b").backup
    assert backups.restore(made.path, tmp_path / "link").home == str(tmp_path / "real")
    assert (tmp_path / "real" / "store" / "data.mdb").exists()


def test_a_name_that_is_taken_is_not_taken_again(home: SmallHome) -> None:
    """Two of one moment with one token: the second is refused, the first is as it was."""
    backups = Backups(home.paths, home.store, lambda: "same")
    made = backups.create("first").backup
    with pytest.raises(UsageError):
        backups.create("second")
    assert backups.list_backups().backups == (made,)


def test_no_backup_beside_a_compaction(
    home: SmallHome, backups: Backups, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the compactor may take files, nothing is copied."""
    monkeypatch.setattr("kb.upkeep.backup.create._WAIT_S", 0.0)
    with file_lock(home.paths.compact_lock, 0.0), pytest.raises(KbError, match="another process"):
        backups.create()
    assert names(backups) == []


def test_a_home_that_cannot_be_written_is_backed_up_elsewhere(
    home: SmallHome, backups: Backups, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where no lock can be written no file can go, so none is needed."""

    def refuse(*_: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr("kb.upkeep.backup.create.file_lock", refuse)
    assert backups.verify(backups.create(to=tmp_path / "b").backup.path).sound


def test_what_the_compactor_takes_later_stays_in_the_backup(
    home: SmallHome, backups: Backups, tmp_path: Path
) -> None:
    """An old version is gone from the home and there in the restored one."""
    made = backups.create().backup
    home.add("tea.md", "# Tea\n\nBlack tea is boiled.")
    for _ in range(2):
        home.compact(grace_min=0)
    backups.restore(made.name, tmp_path / "new")
    with Store.open(tmp_path / "new" / "store", create=False) as store, store.read() as txn:
        versions = sorted(doc.version for doc in docs.all_docs(txn))
        old = next(doc for doc in docs.all_docs(txn) if doc.title == "Tea")
    assert versions == [1, 1]
    assert not (home.root / old.raw_path).exists()
    assert b"Green" in (tmp_path / "new" / old.raw_path).read_bytes()


@pytest.mark.parametrize("step", ["backup.after_copy", "backup.before_manifest"])
@pytest.mark.parametrize("place", ["home", "elsewhere"])
def test_a_full_disk_leaves_nothing(
    home: SmallHome,
    backups: Backups,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    step: str,
    place: str,
) -> None:
    """The error says that there is no room; neither a backup nor a part of one is there."""

    def fill_up(name: str) -> None:
        if name == step:
            raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("kb.upkeep.backup.create.failpoint", fill_up)
    to = None if place == "home" else tmp_path / "b"
    with pytest.raises(StoreFull) as caught:
        backups.create(to=to)
    assert caught.value.exit_code == 1
    assert list(home.paths.backups.glob("*")) + list(home.paths.backups.glob(".*")) == []
    assert sorted(path.name for path in tmp_path.iterdir()) == ["home"]


def test_only_a_home_is_backed_up(home: SmallHome, tmp_path: Path) -> None:
    """Where none is, the error says so, and none is made; nor is a wrong call carried out."""
    nowhere = Backups(HomePaths(tmp_path / "none"), home.store)
    with pytest.raises(UsageError, match="no home"):
        nowhere.create()
    assert not (tmp_path / "none").exists()
    here = Backups(home.paths, home.store)
    for call in (
        lambda: here.create("x" * 1_001),
        lambda: here.create(keep=0),
        lambda: here.create(keep=1, to=tmp_path / "b"),
    ):
        with pytest.raises(UsageError):
            call()
    assert names(here) == []
