"""The fuse: a folder that is not there, or not wholly, loses no docs."""

import os
from collections.abc import Iterable
from pathlib import Path

import pytest
from sync_home import SyncHome

from kb.intake.sync import walk as walking
from kb.intake.sync.add import AddOptions
from kb.intake.sync.walk import SkippedFile, WalkedFile


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "n"
    folder.mkdir()
    return folder


def put(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"# About {name}\n\nA note that says {name} and no more.\n")


def numbered(folder: Path, count: int) -> list[str]:
    names = [f"{n:02}.md" for n in range(count)]
    put(folder, *names)
    return names


def gone(folder: Path) -> None:
    folder.rename(folder.parent / "elsewhere")


def emptied(folder: Path) -> None:
    gone(folder)
    folder.mkdir()


def a_link(folder: Path) -> None:
    gone(folder)
    folder.symlink_to(folder.parent / "elsewhere")


@pytest.mark.parametrize(
    ("accident", "said"),
    [(gone, "is it mounted?"), (emptied, "is it mounted?"), (a_link, "a link now")],
)
def test_a_folder_that_is_not_there_loses_nothing(
    kept: SyncHome, folder: Path, accident: object, said: str
) -> None:
    """Missing, empty or reached by a link: every doc stays, and the source says why."""
    numbered(folder, 3)
    kept.add(folder)
    accident(folder)  # type: ignore[operator]
    line = kept.line()
    assert (line.outcome, line.removed, line.scanned) == ("held_back", 0, 0)
    assert said in (line.reason or "")
    assert len(kept.docs()) == 3
    assert said in (kept.origin(folder).last_error or "")


@pytest.mark.parametrize("accident", [gone, emptied])
def test_accepted_deletions_go_on(kept: SyncHome, folder: Path, accident: object) -> None:
    """Once a person says that it was meant, the docs go."""
    numbered(folder, 3)
    kept.add(folder)
    accident(folder)  # type: ignore[operator]
    line = kept.line(accept_deletions=True)
    assert (line.outcome, line.removed) == ("synced", 3)
    assert kept.docs() == {}


@pytest.mark.parametrize(
    ("of", "lost", "held"),
    [(50, 9, False), (40, 9, False), (50, 10, False), (51, 10, False), (49, 10, True)],
)
def test_the_fuse(kept: SyncHome, folder: Path, of: int, lost: int, held: bool) -> None:
    """Ten docs and over a fifth of them are too many; fewer than either are not."""
    names = numbered(folder, of)
    kept.add(folder)
    for name in names[:lost]:
        (folder / name).unlink()
    line = kept.line()
    assert (line.outcome, line.removed) == (("held_back", 0) if held else ("synced", lost))
    assert len(kept.docs()) == (of if held else of - lost)


def test_what_else_a_held_back_folder_has_is_taken_in(kept: SyncHome, folder: Path) -> None:
    """The fuse holds deletions back, nothing else; accepted, they go."""
    names = numbered(folder, 20)
    kept.add(folder)
    for name in names[:12]:
        (folder / name).unlink()
    put(folder, "new.md")
    line = kept.line()
    assert (line.outcome, line.added, line.removed) == ("held_back", 1, 0)
    assert line.reason is not None
    assert line.reason.startswith("12 of 20 docs have vanished")
    assert kept.line(accept_deletions=True).removed == 12
    assert kept.origin(folder).last_error is None


def test_files_added_by_name_do_not_dull_the_fuse(kept: SyncHome, folder: Path) -> None:
    """Only the docs that a folder asks for count for its share."""
    names = numbered(folder, 12)
    others = [f"x/{n}.org" for n in range(80)]
    put(folder, *others)
    kept.add(folder, ext=("md",))
    kept.add(*(folder / name for name in others))
    for name in names[:11]:
        (folder / name).unlink()
    assert kept.line().outcome == "held_back"


def test_a_folder_that_cannot_be_listed_keeps_its_docs(
    kept: SyncHome, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error of a subfolder is no sign that its files are gone."""
    put(folder, "a.md", "sub/b.md", "sub/deep/c.md")
    kept.add(folder)
    (folder / "sub/b.md").unlink()
    scandir = os.scandir

    def failing(path: Path) -> object:
        if Path(path).name == "sub":
            raise PermissionError(13, "Permission denied")
        return scandir(path)

    monkeypatch.setattr(walking.os, "scandir", failing)
    line = kept.line()
    assert (line.outcome, line.failed, line.unchanged, line.removed) == ("synced", 1, 1, 0)
    why = f"{folder / 'sub'}: the folder cannot be listed (Permission denied)"
    assert kept.origin(folder).last_error == why
    monkeypatch.undo()
    assert kept.line().removed == 1
    assert kept.origin(folder).last_error is None
    assert kept.names() == {"a.md", "c.md"}


def test_a_folder_of_which_nothing_can_be_listed_failed(
    kept: SyncHome, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not said to be synced, and keeps its docs."""
    put(folder, "a.md")
    kept.add(folder)

    def failing(_: Path) -> object:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(walking.os, "scandir", failing)
    line = kept.line(accept_deletions=True)
    assert (line.outcome, line.failed, line.removed) == ("failed", 1, 0)
    why = f"{folder}: the folder cannot be listed (Permission denied)"
    assert kept.origin(folder).last_error == why


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_a_folder_that_vanishes_in_mid_scan(
    kept: SyncHome, folder: Path, monkeypatch: pytest.MonkeyPatch, share: float
) -> None:
    """Whatever part of it was seen before, nothing is removed, and the source says so."""
    put(folder, *(f"s{n}/{n}.md" for n in range(20)))
    kept.add(folder)
    scandir, left = os.scandir, [1 + int(20 * share)]

    def vanishing(path: Path) -> object:
        if not left[0]:
            if folder.exists():
                gone(folder)
        else:
            left[0] -= 1
        return scandir(path)

    monkeypatch.setattr(walking.os, "scandir", vanishing)
    line = kept.line()
    assert (line.outcome, line.removed) == ("held_back", 0)
    assert len(kept.docs()) == 20
    monkeypatch.undo()
    (folder.parent / "elsewhere").rename(folder)
    assert kept.line().unchanged == 20


def test_a_file_that_is_back_before_the_end_stays(
    kept: SyncHome, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that an editor replaced during the sync is not taken for gone."""
    put(folder, "a.md", "b.md")
    kept.add(folder)
    aside = folder.parent / "aside"
    (folder / "a.md").rename(aside)
    add_walked = type(kept.app.adder(kept.parser, AddOptions())).add_walked

    def slow(self: object, seen: Iterable[WalkedFile | SkippedFile]) -> object:
        aside.rename(folder / "a.md")
        return add_walked(self, seen)  # type: ignore[arg-type]

    monkeypatch.setattr("kb.intake.sync.add.Adder.add_walked", slow)
    assert kept.line().removed == 0
    assert kept.names() == {"a.md", "b.md"}
