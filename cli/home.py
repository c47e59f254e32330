"""From the group's options to an open home."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kb.app import HOME_CONFIGS, PROJECT_FOLDER, App, user_config
from kb.config import Settings, load
from kb.content.layout import HomePaths
from kb.model.search import SpaceName
from kb.spaces.homes import home_written, homes_read

if TYPE_CHECKING:
    from kb.spaces.spaces import Spaces


def home_of(ctx: click.Context) -> tuple[Path, Settings]:
    """The one home that is meant and the settings in force there."""
    said: dict[str, Any] = ctx.obj
    home = home_written(said["home"], said["space"], here(), os.environ)
    return home, _settings(said, home)


def _settings(said: dict[str, Any], home: Path) -> Settings:
    mine = user_config()
    # On some systems the user's settings and the user's home lie in one folder.
    files = dict.fromkeys((mine, *(home / name for name in HOME_CONFIGS)))
    load_path = [home / "config.d", mine.parent / "config.d"]
    foreign = [home / name for name in HOME_CONFIGS] if home.name == PROJECT_FOLDER else []
    settings = load(files, said["cfg"], load_path=load_path, foreign=foreign)
    if said["verbose"]:
        import logging

        level = logging.DEBUG if said["verbose"] > 1 else logging.INFO
        logging.basicConfig(level=level, format="%(name)s: %(message)s")
        logging.getLogger("cli").info("home %s", home)
    return settings


def here() -> Path:
    """The working directory."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        # The working directory was removed; homes named absolutely can still be used.
        return Path("/")


def open_app(ctx: click.Context, *, create: bool) -> App:
    """Open the home; closed when the command ends."""
    os.umask(0o077)
    home, settings = home_of(ctx)
    app = App.open(home, settings, create=create)
    ctx.call_on_close(app.close)
    return app


def space_of(ctx: click.Context) -> SpaceName:
    """The name of the space that `open_app` opens."""
    said: dict[str, Any] = ctx.obj
    return homes_read(said["home"], said["space"], here(), os.environ)[0].name


def user_space(ctx: click.Context) -> Path:
    """The user's home, or the one that stands in for it: named by --home, else by KB_HOME."""
    said: dict[str, Any] = ctx.obj
    named = said["home"] is not None or os.environ.get("KB_HOME")
    return home_written(said["home"], None if named else "user", here(), os.environ)


def make_home(ctx: click.Context, home: Path) -> App:
    """Open a home, making what is not there; closed when the command ends."""
    os.umask(0o077)
    app = App.open(home, _settings(ctx.obj, home))
    ctx.call_on_close(app.close)
    return app


def open_spaces(ctx: click.Context, *, create: bool = False) -> "Spaces":
    """Open the stores that are read together; closed when the command ends.

    With `create` the first one is made where it is not there.
    """
    from kb.spaces.spaces import Spaces

    os.umask(0o077)
    said: dict[str, Any] = ctx.obj
    homes = homes_read(said["home"], said["space"], here(), os.environ)
    if create and not HomePaths(homes[0].home).has_store:
        App.open(homes[0].home, _settings(said, homes[0].home)).close()
    spaces = Spaces.open(homes, lambda home: _settings(said, home))
    ctx.call_on_close(spaces.close)
    return spaces
