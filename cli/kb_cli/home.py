"""From the group's options to an open home."""

import contextlib
import functools
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kb.errors import UsageError
from kb.home.opening import HomePaths, Settings, trust_list, trusting_new_store
from kb.home.spaces.choice import HomeChoice, make_store, working_folder
from kb.home.spaces.homes import SpaceHome
from kb_cli.output import warn

if TYPE_CHECKING:
    from kb.home.app import App
    from kb.home.spaces.spaces import Spaces, Topics
    from kb.operations.settings import SettingsLayers
    from kb.operations.trust import TrustList

here = working_folder


def _choice(ctx: click.Context) -> HomeChoice:
    """The homes that the options mean, judged once in a command."""
    options: dict[str, Any] = ctx.obj
    if "choice" not in options:
        # Whoever asks a server opens none of the homes here, so they are not told of these.
        asks_here = not options["server"]
        options["choice"] = HomeChoice(
            options["home"],
            options["space"],
            overrides=options["cfg"],
            warn=warn if asks_here else lambda _: None,
            confirm=_confirm if asks_here else lambda *_: False,
        )
    choice: HomeChoice = options["choice"]
    return choice


def _confirm(home: Path, trusted: "TrustList") -> bool:
    if not sys.stdin.isatty():
        return False
    from kb_cli.trust_prompt import is_let_in_now

    return is_let_in_now(home, trusted)


def home_of(ctx: click.Context) -> tuple[Path, Settings]:
    """The one home that is meant and the settings in force there.

    Raises HeldBack where it is not the user's and was not accepted: another is never taken for it.
    """
    choice = _choice(ctx)
    home = choice.written()
    choice.check_counts(home)
    return home, _settings_here(ctx, home)


def home_named(ctx: click.Context, name: str) -> Path:
    """The home of a name, a folder or an address. Raises HeldBack where it does not count."""
    options: dict[str, Any] = ctx.obj
    choice = HomeChoice(name, overrides=options["cfg"], warn=warn, confirm=_confirm)
    home = choice.written()
    choice.check_counts(home)
    return home


def texts_of(ctx: click.Context) -> tuple[Path, Settings]:
    """As `home_of`, for what reads settings and texts alone; no store is opened.

    Where the user did not name the home, their own stands in for one that does not count.
    """
    home = _home_of_texts(ctx)
    return home, _settings_here(ctx, home)


def _home_of_texts(ctx: click.Context) -> Path:
    choice = _choice(ctx)
    home = choice.written()
    return home if choice.decision(home).folder else choice.stand_in(home)


def homes_of(ctx: click.Context) -> tuple[SpaceHome, ...]:
    """The homes that a reading command means, without those that do not count.

    Raises HeldBack where that leaves none of those the user named.
    """
    return _choice(ctx).read()


def _settings_here(ctx: click.Context, home: Path) -> Settings:
    """The settings of a home that is worked on here. Raises UsageError where a server is meant."""
    settings = settings_of(ctx, home)
    if server_named(ctx, settings):
        raise UsageError(
            f"{ctx.command_path} works on a home of this machine, but a server is set; "
            "give --home, --space or --server ''"
        )
    return settings


def server_named(ctx: click.Context, settings: Settings) -> str:
    """The server that is meant: --server, else KB_SERVER, else `client.server`; empty is none.

    Whoever says --home or --space means this machine.
    """
    return _choice(ctx).server(ctx.obj["server"], settings)


def settings_of(ctx: click.Context, home: Path) -> Settings:
    """The settings in force in a home."""
    options: dict[str, Any] = ctx.obj
    settings = _choice(ctx).settings(home)
    if options["verbose"]:
        import logging

        level = logging.DEBUG if options["verbose"] > 1 else logging.INFO
        logging.basicConfig(level=level, format="%(name)s: %(message)s")
        logging.getLogger("kb_cli").info("home %s", home)
    return settings


def settings_layers(ctx: click.Context) -> "SettingsLayers":
    """Where the settings of the home that is meant come from; nothing of it is read yet.

    Where the user did not name the home, their own stands in for one that does not count.
    """
    from kb.operations.settings import SettingsLayers

    home, choice = _home_of_texts(ctx), _choice(ctx)
    return SettingsLayers(
        home=home, data=choice.own_home, server=ctx.obj["server"], **choice.layers(home)
    )


def open_app(ctx: click.Context, *, create: bool) -> "App":
    """Open the home; closed when the command ends."""
    from kb.home.app import App

    os.umask(0o077)
    home, settings = home_of(ctx)
    with trusting_new_store(home, trust_list()) if create else contextlib.nullcontext():
        app = App.open(home, settings, create=create)
    ctx.call_on_close(app.close)
    _tell_missing(ctx, app)
    return app


def open_standing(ctx: click.Context) -> "App":
    """As `open_app`, for a command that works on what is in a home already.

    It makes no home at a place that the user named and where nothing is: that may be mistyped.
    """
    home, _ = home_of(ctx)
    return open_app(ctx, create=_begins_unasked(ctx, home))


def open_to_read(ctx: click.Context) -> "App":
    """As `open_app`, for a command that changes nothing.

    Where the user did not name the home, their own stands in for one that does not count.
    """
    from kb.home.app import App

    os.umask(0o077)
    choice = _choice(ctx)
    home = choice.written()
    if not choice.decision(home).store:
        home = choice.stand_in(home)
        choice.check_counts(home)
    app = App.open(home, _settings_here(ctx, home), create=False)
    ctx.call_on_close(app.close)
    _tell_missing(ctx, app)
    return app


def user_space(ctx: click.Context) -> Path:
    """The user's home, or the one that stands in for it: named by --home, else by KB_HOME."""
    return _choice(ctx).users()


def make_home(ctx: click.Context, home: Path) -> "App":
    """Open a home, making what is not there; closed when the command ends."""
    from kb.home.app import App

    os.umask(0o077)
    _choice(ctx).check_counts(home)
    with trusting_new_store(home, trust_list()):
        app = App.open(home, _settings_here(ctx, home))
    ctx.call_on_close(app.close)
    return app


def open_spaces(ctx: click.Context, *, create: bool = False, leads: bool = False) -> "Spaces":
    """Open the stores that are read together; closed when the command ends.

    With `create` the first one is made where it is not there; with `leads` that is so, too, and it
    must be one that can be opened.
    """
    from kb.home.spaces.spaces import Spaces

    os.umask(0o077)
    if leads:
        choice = _choice(ctx)
        choice.check_counts(choice.written())
    homes = homes_of(ctx)
    if create or leads:
        make_store(homes[0].home, lambda home: _settings_here(ctx, home))
    spaces = Spaces.open(
        homes,
        lambda home: _settings_here(ctx, home),
        leads=leads,
        texts=_texts_beside(ctx),
    )
    ctx.call_on_close(spaces.close)
    _tell_missing(ctx, spaces.first)
    return spaces


def _begins_unasked(ctx: click.Context, home: Path) -> bool:
    """Whether there is a place for a home: a folder that is there, or that nobody named.

    A database has none until a home is made in it: its name may be mistyped.
    """
    if HomePaths(home).database is not None:
        return False
    named = ctx.obj["home"] or os.environ.get("KB_HOME")
    return not named or home.is_dir()


def _tell_missing(ctx: click.Context, app: "App") -> None:
    if not app.is_made and not _begins_unasked(ctx, app.paths.root):
        warn(f"there is no home at {app.paths.shown} yet")


def _texts_beside(ctx: click.Context) -> "Topics | None":
    """The topics of a project whose store does not count; its texts are those of any clone."""
    for space in _choice(ctx).meant():
        decision = _choice(ctx).decision(space.home)
        if decision.folder and not decision.store:
            from kb.home.app import topics_of

            settings = _settings_here(ctx, space.home)
            return functools.partial(topics_of, space.home, settings)
    return None
