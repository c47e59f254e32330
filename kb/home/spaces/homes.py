"""Which homes a call means: named, the project's or the user's."""

import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final, Literal

from msgspec import Struct

from kb.errors import ConfigError, UsageError
from kb.model.config.places import user_folder
from kb.model.search import SpaceName
from kb.store.content.layout import PROJECT_FOLDER, is_in_database

SpaceAsked = Literal["user", "project", "all"]
OWN_HOME: Final = "spaces.user"
"""The setting that names the user's home."""


class SpaceHome(Struct, frozen=True, kw_only=True):
    """A home by the name of its space. Nothing need be there."""

    name: SpaceName
    home: Path


def homes_read(
    home: str | None,
    space: SpaceAsked | None,
    cwd: Path,
    env: Mapping[str, str],
    own: str = "",
) -> tuple[SpaceHome, ...]:
    """The homes that a reading call means, at least one; of what two hold, the first one's wins.

    That is `home`, else what `space` says, else KB_HOME, else the nearest `.kb/` from `cwd` upward
    with the user's home, which `own` may name. Raises UsageError where a project is asked for and
    there is none, and as `user_home` does.
    """
    if home == "":
        raise UsageError("--home is empty")
    if home is not None and space is not None:
        raise UsageError("give either --home or --space")
    named = home if home is not None or space is not None else env.get("KB_HOME")
    if named:
        place = _place_of(named)
        return (SpaceHome(name=_name_of(place, own), home=place),)
    homes: list[SpaceHome] = []
    nearest = next(_projects(cwd), None)
    if space == "project" and nearest is None:
        raise UsageError(
            f"no {PROJECT_FOLDER}/ folder here or above; `kb init --project` makes one here"
        )
    if space != "user" and nearest is not None:
        homes.append(SpaceHome(name="project", home=nearest))
    mine = user_home(own) if space != "project" else None
    if mine is not None and not any(_is_same(other.home, mine) for other in homes):
        homes.append(SpaceHome(name="user", home=mine))
    if not homes:
        raise UsageError("this user has no home folder; give --home DIR, or set KB_HOME")
    return tuple(homes)


def home_written(
    home: str | None,
    space: SpaceAsked | None,
    cwd: Path,
    env: Mapping[str, str],
    own: str = "",
) -> Path:
    """The one home that any other call works on: the first of those that would be read.

    Raises UsageError as `homes_read` does, and where several are asked for.
    """
    if space == "all":
        raise UsageError("this command works on one space; give --space user or --space project")
    return homes_read(home, space, cwd, env, own)[0].home


def user_home(own: str = "") -> Path | None:
    """The user space: the home that `own` names, else that under the platform's data folder.

    None for a user without a home folder. Raises ConfigError where `own` names none.
    """
    if own:
        try:
            if is_in_database(own) or Path(own).expanduser().is_absolute():
                return _place_of(own)
        except UsageError as error:
            raise ConfigError(str(error), place=OWN_HOME) from error
        raise ConfigError(f"{own} is no address and no absolute path", place=OWN_HOME)
    home = user_folder("data")
    return home if home.is_absolute() else None


def check_own_home(own: str, *, is_own: bool) -> None:
    """Raise what `user_home` does, and ConfigError for a file that is not the user's own."""
    if not is_own:
        raise ConfigError("counts from your own settings alone", place=OWN_HOME)
    user_home(own)


def project_at(folder: Path) -> Path | None:
    """The home of the project that a folder lies in; None where it lies in none."""
    return next(_projects(folder), None)


def enclosing_project(home: Path) -> Path | None:
    """The project's home in whose tree another project lies; None where it lies in none."""
    return next(_projects(home.parent.parent), None) if home.name == PROJECT_FOLDER else None


def _projects(folder: Path) -> Iterator[Path]:
    """The `.kb/` folders from a folder upward, the nearest first."""
    homes = (above / PROJECT_FOLDER for above in (folder, *folder.parents))
    return (home for home in homes if home.is_dir())


def _place_of(named: str) -> Path:
    """The folder that a name of a home means; of a home in a database this machine's for it.

    Raises UsageError for a file.
    """
    if is_in_database(named):
        from kb.store.content.database import local_folder

        return local_folder(named)
    place = Path(named).expanduser().absolute()
    if place.is_file():
        raise UsageError(f"{place} is a file; a home is a folder")
    return place


def _name_of(home: Path, own: str) -> SpaceName:
    mine = user_home(own)
    if mine is not None and _is_same(home, mine):
        return "user"
    return "project" if home.name == PROJECT_FOLDER else "home"


def _is_same(home: Path, other: Path) -> bool:
    return os.path.realpath(home) == os.path.realpath(other)
