"""From the group's options to an open home."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kb.app import HOME_CONFIGS, PROJECT_FOLDER, App, user_config
from kb.config import Settings, load
from kb.spaces.homes import home_written, homes_read

if TYPE_CHECKING:
    from kb.spaces.spaces import Spaces


def home_of(ctx: click.Context) -> tuple[Path, Settings]:
    """The one home that is meant and the settings in force there."""
    said: dict[str, Any] = ctx.obj
    home = home_written(said["home"], said["space"], _here(), os.environ)
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


def _here() -> Path:
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


def open_spaces(ctx: click.Context) -> "Spaces":
    """Open the stores that are read together; closed when the command ends."""
    from kb.spaces.spaces import Spaces

    os.umask(0o077)
    said: dict[str, Any] = ctx.obj
    homes = homes_read(said["home"], said["space"], _here(), os.environ)
    spaces = Spaces.open(homes, lambda home: _settings(said, home))
    ctx.call_on_close(spaces.close)
    return spaces
