"""Which homes a call means."""

from pathlib import Path

import pytest

from kb.errors import ConfigError, UsageError
from kb.home.spaces.homes import SpaceAsked, enclosing_project, home_written, homes_read, user_home
from kb.store.content.database import local_folder


@pytest.fixture(autouse=True)
def mine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user of our own, whose home is here."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    found = user_home()
    assert found is not None
    assert tmp_path in found.parents
    return found


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project's folder with a space, and a folder below."""
    (tmp_path / "p" / ".kb").mkdir(parents=True)
    (tmp_path / "p" / "below").mkdir()
    return tmp_path / "p"


def read(space: SpaceAsked | None, cwd: Path, home: str | None = None) -> dict[str, Path]:
    return {one.name: one.home for one in homes_read(home, space, cwd, {})}


@pytest.mark.parametrize("space", [None, "all"])
def test_both_are_read_the_project_first(
    space: SpaceAsked | None, project: Path, mine: Path
) -> None:
    """From anywhere below the project."""
    found = read(space, project / "below")
    assert list(found.items()) == [("project", project / ".kb"), ("user", mine)]


def test_one_space_alone(project: Path, mine: Path, tmp_path: Path) -> None:
    """Where it is asked for, or is the only one."""
    assert read("user", project) == {"user": mine}
    assert read("project", project) == {"project": project / ".kb"}
    assert read(None, tmp_path) == {"user": mine}
    with pytest.raises(UsageError, match="makes one"):
        read("project", tmp_path)


def test_a_named_home_is_read_alone(project: Path, mine: Path, tmp_path: Path) -> None:
    """By its option or the environment, under the name of what it is; `--space` wins over that."""
    for named, name in ((mine, "user"), (project / ".kb", "project"), (tmp_path / "x", "home")):
        assert read(None, project, str(named)) == {name: named}
        (found,) = homes_read(None, None, project, {"KB_HOME": str(named)})
        assert (found.name, found.home) == (name, named)
    both = homes_read(None, "all", project, {"KB_HOME": str(tmp_path / "x")})
    assert [one.name for one in both] == ["project", "user"]
    for home, space in (("", None), ("x", "user")):
        with pytest.raises(UsageError):
            read(space, project, home)  # type: ignore[arg-type]


def test_the_users_home_may_be_elsewhere(project: Path, mine: Path, tmp_path: Path) -> None:
    """A folder, or this machine's folder for a home in a database; nothing else is one."""
    other = tmp_path / "other"
    address = "postgresql://host/db/team"
    for own, home in ((str(other), other), ("~/other", other), (address, local_folder(address))):
        both = homes_read(None, None, project, {}, own)
        assert [(one.name, one.home) for one in both] == [
            ("project", project / ".kb"),
            ("user", home),
        ]
        assert home_written(None, "user", project, {}, own) == home
        (named,) = homes_read(str(mine), None, project, {}, own)
        assert named.name == "home"
    assert homes_read(address, None, project, {}, address)[0].name == "user"
    for wrong in ("other", "mysql://host/db", "postgresql://kb:secret@host/db"):
        with pytest.raises(ConfigError, match=r"spaces\.user") as caught:
            homes_read(None, None, project, {}, wrong)
        assert "secret" not in str(caught.value)


def test_a_link_to_the_users_home_is_no_second_space(tmp_path: Path, mine: Path) -> None:
    """A store is asked once."""
    mine.mkdir(parents=True)
    (tmp_path / "p").mkdir()
    (tmp_path / "p" / ".kb").symlink_to(mine)
    assert list(read(None, tmp_path / "p")) == ["project"]


def test_what_writes_works_on_the_nearest(project: Path, mine: Path, tmp_path: Path) -> None:
    """The project's home, else the user's; never on both."""
    assert home_written(None, None, project, {}) == project / ".kb"
    assert home_written(None, None, tmp_path, {}) == mine
    assert home_written(None, "user", project, {}) == mine
    with pytest.raises(UsageError, match="one space"):
        home_written(None, "all", project, {})


def test_a_user_without_a_home(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The project's store is read all the same; with neither, the call says what to do."""
    monkeypatch.setattr("kb.home.spaces.homes.user_home", lambda _: None)
    assert read(None, project) == {"project": project / ".kb"}
    with pytest.raises(UsageError, match="--home"):
        read(None, tmp_path)


def test_projects_in_projects(project: Path, tmp_path: Path) -> None:
    """The nearest counts, and the one around it can be named."""
    inner = project / "below" / ".kb"
    inner.mkdir()
    assert read("project", project / "below") == {"project": inner}
    assert enclosing_project(inner) == project / ".kb"
    assert enclosing_project(project / ".kb") is None
    assert enclosing_project(tmp_path / "p" / "other") is None
