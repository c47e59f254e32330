"""From the group's options to an open home."""

import contextlib
import functools
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from kb.errors import HeldBack, UsageError
from kb.home.opening import (
    HOME_CONFIGS,
    HomePaths,
    ProjectFiles,
    Settings,
    TrustDecision,
    decide_trust,
    is_project_home,
    load,
    trust_list,
    trusting_new_store,
    user_config,
)
from kb.home.spaces.homes import SpaceHome, home_written, homes_read, project_at, user_home
from kb_cli.output import warn

if TYPE_CHECKING:
    from kb.home.app import App
    from kb.home.spaces.spaces import Spaces, Topics
    from kb.operations.settings import SettingsLayers


def home_of(ctx: click.Context) -> tuple[Path, Settings]:
    """The one home that is meant and the settings in force there.

    Raises HeldBack where it is not the user's and was not accepted: another is never taken for it.
    """
    home = _home_written(ctx)
    _check_counts(ctx, home)
    return home, _settings_here(ctx, home)


def texts_of(ctx: click.Context) -> tuple[Path, Settings]:
    """As `home_of`, for what reads settings and texts alone; no store is opened.

    Where the user did not name the home, their own stands in for one that does not count.
    """
    home = _home_written(ctx)
    if not _verdict(ctx, home).folder:
        home = _stand_in(ctx, home)
    return home, _settings_here(ctx, home)


def _stand_in(ctx: click.Context, home: Path) -> Path:
    """The user's own home, for one that does not count. Raises HeldBack where they named that."""
    why = _verdict(ctx, home).why
    mine = user_home()
    if _is_named(ctx) or mine is None:
        raise HeldBack(why)
    _tell(ctx, f"{why}; until then it is left out")
    return mine


def homes_of(ctx: click.Context) -> tuple[SpaceHome, ...]:
    """The homes that a reading command means, without those that do not count.

    Raises HeldBack where that leaves none of those the user named.
    """
    options: dict[str, Any] = ctx.obj
    homes = homes_read(options["home"], options["space"], here(), os.environ)
    verdicts = [(home, _verdict(ctx, home.home)) for home in homes]
    trusted = tuple(home for home, verdict in verdicts if verdict.store)
    left_out = [verdict.why for _, verdict in verdicts if not verdict.store]
    if left_out and (_is_named(ctx) or not trusted):
        raise HeldBack(left_out[0])
    for why in left_out:
        _tell(ctx, f"{why}; until then it is left out")
    return trusted


def _home_written(ctx: click.Context) -> Path:
    options: dict[str, Any] = ctx.obj
    return home_written(options["home"], options["space"], here(), os.environ)


def _is_named(ctx: click.Context) -> bool:
    """Whether the user named the home, rather than it being found from the working directory."""
    options: dict[str, Any] = ctx.obj
    if options["home"] is not None or options["space"] in ("user", "project"):
        return True
    return options["space"] is None and bool(os.environ.get("KB_HOME"))


def _verdict(ctx: click.Context, home: Path) -> TrustDecision:
    verdicts: dict[Path, TrustDecision] = ctx.obj.setdefault("verdicts", {})
    if home not in verdicts:
        try:
            verdicts[home] = _judged(home)
        except OSError:
            # What nobody may look at nobody can open either; that says why.
            verdicts[home] = TrustDecision()
    return verdicts[home]


def _judged(home: Path) -> TrustDecision:
    trusted, mine = trust_list(), user_home()
    verdict = decide_trust(home, trusted, mine)
    if verdict.can_be_trusted and sys.stdin.isatty():
        from kb_cli.trust_prompt import is_let_in_now

        if is_let_in_now(home, trusted):
            return decide_trust(home, trusted, mine)
    return verdict


def _check_counts(ctx: click.Context, home: Path) -> None:
    verdict = _verdict(ctx, home)
    if not verdict.store:
        raise HeldBack(verdict.why)


def _tell(ctx: click.Context, line: str) -> None:
    """A warning, once in a command."""
    warned: set[str] = ctx.obj.setdefault("told", set())
    if line not in warned:
        warned.add(line)
        warn(line)


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
    options: dict[str, Any] = ctx.obj
    if options["server"] is not None:
        return str(options["server"])
    if options["home"] is not None or options["space"] is not None:
        return ""
    return os.environ.get("KB_SERVER", "") or settings.client.server


def settings_of(ctx: click.Context, home: Path) -> Settings:
    """The settings in force in a home."""
    options: dict[str, Any] = ctx.obj
    layers = _layers(ctx, home)

    def loaded() -> tuple[Settings, list[str]]:
        left_out: list[str] = []
        return load(**layers, warn=left_out.append), left_out

    settings, left_out = loaded()
    if left_out and sys.stdin.isatty():
        from kb_cli.trust_prompt import is_let_in_now

        if is_let_in_now(home, trust_list()):
            settings, left_out = loaded()
    for line in left_out:
        _tell(ctx, line)
    if options["verbose"]:
        import logging

        level = logging.DEBUG if options["verbose"] > 1 else logging.INFO
        logging.basicConfig(level=level, format="%(name)s: %(message)s")
        logging.getLogger("kb_cli").info("home %s", home)
    return settings


def _layers(ctx: click.Context, home: Path) -> dict[str, Any]:
    """What `load` reads for a home."""
    mine = user_config()
    nearest = home if is_project_home(home) else project_at(here())
    return {
        # On some systems the user's settings and the user's home lie in one folder.
        "files": tuple(dict.fromkeys((mine, *(home / name for name in HOME_CONFIGS)))),
        "overrides": ctx.obj["cfg"],
        "load_path": (mine.parent / "config.d", home / "config.d"),
        "project": _project_files(nearest, mine) if nearest else None,
    }


def settings_layers(ctx: click.Context) -> "SettingsLayers":
    """Where the settings of the home that is meant come from; nothing of it is read yet.

    Where the user did not name the home, their own stands in for one that does not count.
    """
    from kb.operations.settings import SettingsLayers

    home = _home_written(ctx)
    if not _verdict(ctx, home).folder:
        home = _stand_in(ctx, home)
    return SettingsLayers(home=home, server=ctx.obj["server"], **_layers(ctx, home))


def _project_files(home: Path, mine: Path) -> ProjectFiles:
    root = Path(os.path.realpath(home))
    # Of a `.kb` in the folder of all that the user has, only itself is the project's.
    if not Path(os.path.realpath(mine)).is_relative_to(root.parent):
        root = root.parent
    trusted = trust_list()
    return ProjectFiles(home=home, root=root, accepts=lambda data: trusted.has_settings(home, data))


def here() -> Path:
    """The working directory."""
    try:
        return Path.cwd()
    except FileNotFoundError:
        # The working directory was removed; homes named absolutely can still be used.
        return Path("/")


def open_app(ctx: click.Context, *, create: bool) -> "App":
    """Open the home; closed when the command ends."""
    from kb.home.app import App

    os.umask(0o077)
    home, settings = home_of(ctx)
    with trusting_new_store(home, trust_list()) if create else contextlib.nullcontext():
        app = App.open(home, settings, create=create)
    ctx.call_on_close(app.close)
    return app


def open_to_read(ctx: click.Context) -> "App":
    """As `open_app`, for a command that changes nothing.

    Where the user did not name the home, their own stands in for one that does not count.
    """
    from kb.home.app import App

    os.umask(0o077)
    home = _home_written(ctx)
    if not _verdict(ctx, home).store:
        home = _stand_in(ctx, home)
        _check_counts(ctx, home)
    app = App.open(home, _settings_here(ctx, home), create=False)
    ctx.call_on_close(app.close)
    return app


def user_space(ctx: click.Context) -> Path:
    """The user's home, or the one that stands in for it: named by --home, else by KB_HOME."""
    options: dict[str, Any] = ctx.obj
    named = options["home"] is not None or os.environ.get("KB_HOME")
    return home_written(options["home"], None if named else "user", here(), os.environ)


def make_home(ctx: click.Context, home: Path) -> "App":
    """Open a home, making what is not there; closed when the command ends."""
    from kb.home.app import App

    os.umask(0o077)
    _check_counts(ctx, home)
    with trusting_new_store(home, trust_list()):
        app = App.open(home, _settings_here(ctx, home))
    ctx.call_on_close(app.close)
    return app


def open_spaces(ctx: click.Context, *, create: bool = False, leads: bool = False) -> "Spaces":
    """Open the stores that are read together; closed when the command ends.

    With `create` the first one is made where it is not there; with `leads` that is so, too, and it
    must be one that can be opened.
    """
    from kb.home.app import App
    from kb.home.spaces.spaces import Spaces

    os.umask(0o077)
    if leads:
        _check_counts(ctx, _home_written(ctx))
    homes = homes_of(ctx)
    if (create or leads) and not HomePaths(homes[0].home).has_store:
        with trusting_new_store(homes[0].home, trust_list()):
            App.open(homes[0].home, _settings_here(ctx, homes[0].home)).close()
    spaces = Spaces.open(
        homes,
        lambda home: _settings_here(ctx, home),
        leads=leads,
        texts=_texts_beside(ctx),
    )
    ctx.call_on_close(spaces.close)
    return spaces


def _texts_beside(ctx: click.Context) -> "Topics | None":
    """The topics of a project whose store does not count; its texts are those of any clone."""
    options: dict[str, Any] = ctx.obj
    for space in homes_read(options["home"], options["space"], here(), os.environ):
        verdict = _verdict(ctx, space.home)
        if verdict.folder and not verdict.store:
            from kb.home.app import topics_of

            settings = _settings_here(ctx, space.home)
            return functools.partial(topics_of, space.home, settings)
    return None
