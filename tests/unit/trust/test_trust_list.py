"""The list of homes that count, and what is said of one that is not on it."""

import os
import shutil
from pathlib import Path

import pytest

from kb.errors import ReadOnlyHome
from kb.store.content.layout import HomePaths
from kb.store.store import Store
from kb.store.trust import (
    TrustedHome,
    TrustList,
    decide_trust,
    trusting_new_store,
    trusting_replaced_store,
)
from kb.store.trust.identity import identity_of


@pytest.fixture
def known(tmp_path: Path) -> TrustList:
    return TrustList(tmp_path / "list")


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return made(tmp_path / "clone/.kb")


def made(home: Path) -> Path:
    """A home as another program leaves it."""
    HomePaths(home).make()
    Store.open(HomePaths(home).store).close()
    return home


def counts(home: Path, known: TrustList, mine: Path | None = None) -> bool:
    return decide_trust(home, known, mine).store


def test_a_store_that_came_along_does_not_count(home: Path, known: TrustList) -> None:
    """Its texts do, and the reason names the command that lets it count."""
    verdict = decide_trust(home, known, None)
    assert (verdict.folder, verdict.store) == (True, False)
    assert f"`kb trust {home.parent}`" in verdict.why


def test_the_users_own_space_counts(home: Path, known: TrustList, tmp_path: Path) -> None:
    """It need not be on the list, by whichever way it is named."""
    (tmp_path / "alias").symlink_to(home.parent)
    assert counts(home, known, home)
    assert counts(home, known, tmp_path / "alias/.kb")


def test_a_home_that_kb_makes_is_on_the_list(tmp_path: Path, known: TrustList) -> None:
    """From the moment its store is there, wherever it is moved to."""
    home = tmp_path / "work/.kb"
    assert counts(home, known)
    with trusting_new_store(home, known):
        made(home)
        assert counts(home, known)
    assert known.listed() == (TrustedHome(home=str(home), how="made"),)
    shutil.move(home.parent, tmp_path / "elsewhere")
    assert counts(tmp_path / "elsewhere/.kb", known)


def test_a_home_whose_maker_was_killed_counts(tmp_path: Path, known: TrustList) -> None:
    """It had said what it was about to do."""
    home = tmp_path / "work/.kb"
    known.begin(home)
    made(home)
    assert counts(home, known)
    assert not known.is_begun(home)


def test_another_home_does_not_inherit_what_was_begun(tmp_path: Path, known: TrustList) -> None:
    """A clone at the place of a home that was never finished is a clone."""
    home = tmp_path / "work/.kb"
    known.begin(home)
    home.rename(home.with_name("before"))
    made(home)
    assert not counts(home, known)


@pytest.mark.parametrize("way", ["copied", "replaced"])
def test_trust_is_bound_to_the_file(home: Path, known: TrustList, way: str) -> None:
    """A copy of a store that counts, or another at its place, is another store."""
    known.put_store(home, "trusted")
    assert counts(home, known)
    file = HomePaths(home).data_file
    other = home.parent / "other"
    if way == "copied":
        shutil.copy2(file, other)
    else:
        made(home.parent / "third/.kb")
        shutil.move(HomePaths(home.parent / "third/.kb").data_file, other)
    os.replace(other, file)
    assert not counts(home, known)


def test_a_file_without_attributes_has_an_identity(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Device and inode, where the file system takes no mark."""
    monkeypatch.delattr(os, "getxattr")
    found = HomePaths(home).data_file.stat()
    assert identity_of(HomePaths(home).data_file) == f"at-{found.st_dev:x}-{found.st_ino:x}-0"


def test_a_home_can_be_taken_off(home: Path, known: TrustList) -> None:
    """Also once its store is gone; a second time nothing was there."""
    known.put_store(home, "trusted")
    known.put_folder(home, [b"settings"])
    assert known.has_settings(home, b"settings")
    HomePaths(home).data_file.unlink()
    assert known.remove(home)
    assert not known.remove(home)
    assert not known.has_settings(home, b"settings")
    assert known.listed() == ()


def test_settings_count_as_they_were(home: Path, known: TrustList) -> None:
    """Other bytes are other settings, and those of another home are not these."""
    known.put_folder(home, [b"one", b"two"])
    assert known.has_settings(home, b"two")
    assert not known.has_settings(home, b"three")
    assert not known.has_settings(home.parent, b"one")


@pytest.mark.parametrize("name", ["", "store", "store/data.mdb"])
def test_a_home_that_others_write_to_is_refused(home: Path, known: TrustList, name: str) -> None:
    """Nothing of it counts, its texts neither, until this very folder was accepted."""
    known.put_store(home, "made")
    (home / name).chmod(0o777 if (home / name).is_dir() else 0o666)
    verdict = decide_trust(home, known, home)
    assert (verdict.folder, verdict.store) == (False, False)
    assert "other users may write" in verdict.why
    known.put_folder(home, [])
    assert counts(home, known)
    os.rename(home, home.with_name("before"))
    shutil.copytree(home.with_name("before"), home)
    assert not decide_trust(home, known, None).folder


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_a_home_of_another_user_is_refused(home: Path, known: TrustList) -> None:
    """Whoever made it, and wherever it lies above the working directory."""
    known.put_store(home, "made")
    os.chown(home, 12_345, 12_345)
    verdict = decide_trust(home, known, None)
    assert (verdict.folder, verdict.store) == (False, False)
    assert "belongs to another user" in verdict.why


def test_a_group_is_others_unless_it_is_the_users_own(
    home: Path, known: TrustList, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A group of the user's name, with nobody else in it, is the user."""
    import grp
    import pwd

    known.put_store(home, "made")
    home.chmod(0o770)
    me = pwd.getpwuid(os.geteuid())
    own = me.pw_gid == home.stat().st_gid and grp.getgrgid(me.pw_gid).gr_name == me.pw_name
    assert counts(home, known) == own
    gid = home.stat().st_gid
    shared = grp.struct_group(("staff", "x", gid, ["somebody"]))
    monkeypatch.setattr(grp, "getgrgid", lambda _: shared)
    assert not counts(home, known)


@pytest.mark.parametrize("name", ["run", "raw", "store", "knowledge", "notebook", "compact.lock"])
def test_a_link_out_is_refused(tmp_path: Path, known: TrustList, name: str) -> None:
    """Of whatever kb reads or writes by a name of its own; nothing lets it count."""
    home = tmp_path / "clone/.kb"
    home.mkdir(parents=True)
    (tmp_path / "outside").mkdir()
    (home / name).symlink_to(tmp_path / "outside")
    known.put_folder(home, [])
    verdict = decide_trust(home, known, None)
    assert (verdict.folder, verdict.store) == (False, False)
    assert str(home / name) in verdict.why


@pytest.mark.parametrize("name", ["raw/ab", "md/file", "index/lexical/shared", "tmp/x"])
def test_a_link_further_down_keeps_a_store_from_being_made(
    tmp_path: Path, known: TrustList, name: str
) -> None:
    """Where there is no store yet, kb has made nothing, and so no link."""
    home = tmp_path / "clone/.kb"
    (home / name).parent.mkdir(parents=True)
    (home / name).symlink_to(tmp_path)
    verdict = decide_trust(home, known, None)
    assert (verdict.folder, verdict.store) == (True, False)
    assert str(home / name) in verdict.why


def test_a_home_that_is_a_link_is_named_by_its_place(home: Path, known: TrustList) -> None:
    """What a link is called says nothing of whose the folder is."""
    known.put_store(home, "made")
    alias = home.parent / "alias"
    alias.symlink_to(home)
    verdict = decide_trust(alias, known, None)
    assert not verdict.folder
    assert "is a link" in verdict.why


def test_a_list_that_cannot_be_read_is_empty(home: Path, tmp_path: Path) -> None:
    """And one that cannot be written says what it is for."""
    (tmp_path / "file").write_text("")
    known = TrustList(tmp_path / "file/list")
    assert not counts(home, known)
    assert known.listed() == ()
    with pytest.raises(ReadOnlyHome, match="kb lists your homes there"):
        known.put_store(home, "trusted")


def test_no_is_kept_for_what_was_asked(home: Path, known: TrustList) -> None:
    """Other settings, or another store, are another question; the answer opens nothing."""
    known.decline(home, [b"one"])
    assert known.is_declined(home, [b"one"])
    assert not known.is_declined(home, [b"two"])
    assert not counts(home, known)
    HomePaths(home).data_file.rename(home / "before")
    made(home)
    assert not known.is_declined(home, [b"one"])


def test_backups_are_known_by_their_file(home: Path, known: TrustList) -> None:
    """They are no homes that count, and are forgotten once they are gone."""
    known.put_backup(home)
    assert known.has_backup(home)
    assert not counts(home, known)
    assert known.listed() == ()
    shutil.move(home, home.with_name("moved"))
    assert known.has_backup(home.with_name("moved"))
    known.put_backup(made(home))
    assert not known.has_backup(home.with_name("moved"))


def test_a_store_may_be_put_in_the_place_of_one_that_counts(home: Path, known: TrustList) -> None:
    """What kb made of it counts, also where it was killed before it could say so."""
    known.put_store(home, "made")
    file = HomePaths(home).data_file
    with trusting_replaced_store(home, known):
        shutil.copy(file, home / "other")
        os.replace(home / "other", file)
        assert counts(home, known)
    assert counts(home, known)
