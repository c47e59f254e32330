"""From the group's options to an open home."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kb.config import HOME_CONFIGS, Settings, load, user_config
from kb.content.layout import PROJECT_FOLDER, HomePaths
from kb.errors import UsageError
from kb.spaces.homes import SpaceHome, home_written, homes_read

if TYPE_CHECKING:
    from kb.app import App
    from kb.spaces.spaces import Spaces


def home_of(ctx: click.Context) -> tuple[Path, Settings]:
    """The one home that is meant and the settings in force there."""
    said: dict[str, Any] = ctx.obj
    home = home_written(said["home"], said["space"], here(), os.environ)
    return home, _settings_here(ctx, home)


def homes_of(ctx: click.Context) -> tuple[SpaceHome, ...]:
    """The homes that a reading command means."""
    said: dict[str, Any] = ctx.obj
    return homes_read(said["home"], said["space"], here(), os.environ)


def _settings_here(ctx: click.Context, home: Path) -> Settings:
    """The settings of a home that is worked on here. Raises UsageError where a server is meant."""
    settings = settings_of(ctx, home)
    if server_named(ctx, settings):
        raise UsageError(
            f"{ctx.command_path} works on a home at this machine, and a server is named; "
            "say --home, --space or --server ''"
        )
    return settings


def server_named(ctx: click.Context, settings: Settings) -> str:
    """The server that is meant: --server, else KB_SERVER, else `client.server`; empty is none.

    Whoever says --home or --space means this machine.
    """
    said: dict[str, Any] = ctx.obj
    if said["server"] is not None:
        return str(said["server"])
    if said["home"] is not None or said["space"] is not None:
        return ""
    return os.environ.get("KB_SERVER", "") or settings.client.server


def settings_of(ctx: click.Context, home: Path) -> Settings:
    """The settings in force in a home."""
    said: dict[str, Any] = ctx.obj
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


def open_app(ctx: click.Context, *, create: bool) -> "App":
    """Open the home; closed when the command ends."""
    from kb.app import App

    os.umask(0o077)
    home, settings = home_of(ctx)
    app = App.open(home, settings, create=create)
    ctx.call_on_close(app.close)
    return app


def user_space(ctx: click.Context) -> Path:
    """The user's home, or the one that stands in for it: named by --home, else by KB_HOME."""
    said: dict[str, Any] = ctx.obj
    named = said["home"] is not None or os.environ.get("KB_HOME")
    return home_written(said["home"], None if named else "user", here(), os.environ)


def make_home(ctx: click.Context, home: Path) -> "App":
    """Open a home, making what is not there; closed when the command ends."""
    from kb.app import App

    os.umask(0o077)
    app = App.open(home, _settings_here(ctx, home))
    ctx.call_on_close(app.close)
    return app


def open_spaces(ctx: click.Context, *, create: bool = False, leads: bool = False) -> "Spaces":
    """Open the stores that are read together; closed when the command ends.

    With `create` the first one is made where it is not there; with `leads` that is so, too, and it
    must be one that can be opened.
    """
    from kb.app import App
    from kb.spaces.spaces import Spaces

    os.umask(0o077)
    homes = homes_of(ctx)
    if create and not HomePaths(homes[0].home).has_store:
        App.open(homes[0].home, _settings_here(ctx, homes[0].home)).close()
    spaces = Spaces.open(homes, lambda home: _settings_here(ctx, home), leads=leads)
    ctx.call_on_close(spaces.close)
    return spaces
