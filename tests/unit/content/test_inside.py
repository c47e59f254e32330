"""A file is read from inside its folder, also when somebody moves things meanwhile."""

import os
from pathlib import Path

import pytest

from kb.errors import Refused, TooLarge, Unreadable
from kb.store.content.inside import read_inside


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret/a.md").write_text("secret")
    folder = tmp_path / "folder"
    (folder / "sub").mkdir(parents=True)
    (folder / "sub/a.md").write_text("12345")
    return folder


def test_a_file_is_read_up_to_its_bound(folder: Path) -> None:
    """As many bytes as are allowed, not one more."""
    assert read_inside(folder, "sub/a.md", 5) == b"12345"
    with pytest.raises(TooLarge, match=r"sub/a\.md"):
        read_inside(folder, "sub/a.md", 4)


@pytest.mark.parametrize("relative", ["../secret/a.md", "/a", "./sub/a.md", "", ".", "a\0b", ".."])
def test_only_plain_paths(folder: Path, relative: str) -> None:
    """What climbs, starts at the root or says nothing is refused."""
    with pytest.raises(Refused):
        read_inside(folder, relative, 100)


@pytest.mark.parametrize("swapped", ["sub", "sub/a.md"])
def test_a_link_that_comes_after_the_look_is_not_followed(
    folder: Path, monkeypatch: pytest.MonkeyPatch, swapped: str
) -> None:
    """What was seen to lie inside is swapped for a link before it is opened."""
    real = os.path.realpath

    def seen(path: str) -> str:
        found = real(path)
        if found.endswith("a.md"):
            (folder / swapped).rename(folder / "old")
            target = "secret" if swapped == "sub" else "secret/a.md"
            (folder / swapped).symlink_to(folder.parent / target)
        return found

    monkeypatch.setattr(os.path, "realpath", seen)
    with pytest.raises(Unreadable):
        read_inside(folder, "sub/a.md", 100)


def test_nothing_stays_open(folder: Path) -> None:
    """Neither after a reading nor after a refusal."""
    open_before = len(os.listdir("/dev/fd"))
    for relative in ("sub/a.md", "sub", "sub/none", "sub/a.md/x", "none/x"):
        try:
            read_inside(folder, relative, 100)
        except Unreadable:
            continue
    assert len(os.listdir("/dev/fd")) == open_before
