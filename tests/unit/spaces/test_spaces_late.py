"""Homes that cannot be opened at first, and can be later."""

import shutil
from pathlib import Path

import pytest

from kb.home.app import App
from kb.home.spaces.homes import SpaceHome
from kb.home.spaces.spaces import Spaces
from kb.model.config import Settings


@pytest.fixture
def homes(tmp_path: Path) -> list[SpaceHome]:
    """A project's and a user's, both made."""
    made = [
        SpaceHome(name="project", home=tmp_path / ".kb"),
        SpaceHome(name="user", home=tmp_path / "user"),
    ]
    for space in made:
        App.open(space.home, Settings()).close()
    return made


def lose(space: SpaceHome) -> Path:
    """Take a home's store away; where it is now."""
    (space.home / "raw" / "left").mkdir(parents=True)
    return Path(shutil.move(space.home / "store", space.home.with_name("kept")))


def give_back(space: SpaceHome) -> None:
    shutil.move(space.home.with_name("kept"), space.home / "store")


@pytest.fixture
def now_s(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """The time, which a test moves."""
    moment = [100.0]
    monkeypatch.setattr("kb.home.spaces.late.time.monotonic", lambda: moment[0])
    return moment


def test_the_other_home_joins_once_it_is_there(homes: list[SpaceHome], now_s: list[float]) -> None:
    """A second after it was tried last; copies that are somebody's stay as they are."""
    lose(homes[1])
    with Spaces.open(homes, lambda _: Settings()) as spaces:
        assert (spaces.names, len(spaces.failed)) == (("project",), 1)
        copy = spaces.without_signals()
        give_back(homes[1])
        assert spaces.current() is spaces
        now_s[0] += 1.1
        joined = spaces.current()
        assert (joined.names, joined.failed) == (("project", "user"), ())
        assert spaces.current() is joined
        assert joined.first is spaces.first
        assert copy.current() is copy
        assert spaces.names == ("project",)


def test_the_first_home_does_not_change(homes: list[SpaceHome], now_s: list[float]) -> None:
    """One that would come before another is not taken in: its copy would win from then on."""
    lose(homes[0])
    with Spaces.open(homes, lambda _: Settings()) as spaces:
        give_back(homes[0])
        now_s[0] += 100
        assert spaces.current() is spaces
        assert spaces.names == ("user",)
