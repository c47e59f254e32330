"""From the group's options to an open home."""

import os
from pathlib import Path
from typing import Any

import click

from kb.app import App, find_home, user_config
from kb.config import Settings, load


def home_of(ctx: click.Context) -> tuple[Path, Settings]:
    """The home that is meant and the settings in force there."""
    said: dict[str, Any] = ctx.obj
    home = find_home(said["home"], said["space"], _here(), os.environ)
    settings = load([user_config(), home / "kb.toml"], said["cfg"])
    if said["verbose"]:
        import logging

        level = logging.DEBUG if said["verbose"] > 1 else logging.INFO
        logging.basicConfig(level=level, format="%(name)s: %(message)s")
        logging.getLogger("cli").info("home %s", home)
    return home, settings


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
