"""`kb init`: make a home, and write kb's own entries into the user's."""

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from kb.errors import UsageError
from kb.home.spaces.homes import enclosing_project
from kb.operations import init
from kb.operations.init import OUTCOMES
from kb_cli.home import here, make_home, user_space
from kb_cli.output import clean, warn

if TYPE_CHECKING:
    from kb.home.app import App
    from kb.operations.init import InstallResult

_NEXT: Final = (
    "kb add FOLDER               takes a folder in",
    'kb search "a question"      finds passages',
    'kb guide "how do I ..."     says how things are done',
)


@click.command(name="init")
@click.option(
    "--project", is_flag=True, help="Also make a .kb/ folder here, the home of a project."
)
@click.pass_context
def command(ctx: click.Context, project: bool) -> None:
    """Make a home with its folders, and write kb's own entries into the user's.

    Run again it brings newer entries, leaves alone what was edited, and changes nothing else.
    """
    if ctx.obj["space"] is not None or (project and ctx.obj["home"] is not None):
        raise UsageError("--project makes the home in this folder; leave out --home and --space")
    mine = user_space(ctx)
    home = init.project_home(here()) if project else mine
    was_there = init.is_made(home)
    app = _made(ctx, home)
    if os.path.realpath(home) != os.path.realpath(mine):
        app = _made(ctx, mine)
    installed = init.install_guide(app)
    click.echo(clean(f"{init.shown(home)}: {'was there already' if was_there else 'made'}"))
    if installed is not None:
        click.echo(clean(f"{init.guide_folder(app)}: {_counts(installed)}"))
    for line in _NEXT:
        click.echo(line)
    _warn(home, installed, project=project)


def _made(ctx: click.Context, home: Path) -> "App":
    app = make_home(ctx, home)
    init.make_knowledge_folder(app)
    return app


def _counts(installed: "InstallResult") -> str:
    each = {name: len(getattr(installed, name)) for name in OUTCOMES}
    counts = ", ".join(f"{count} {name}" for name, count in each.items() if count)
    return f"{sum(each.values())} entries about kb: {counts}"


def _warn(home: Path, installed: "InstallResult | None", *, project: bool) -> None:
    if installed and installed.edited:
        warn(f"edited here, so left as they are: {', '.join(installed.edited)}")
    if installed and installed.removed:
        warn(f"removed here, so not written again: {', '.join(installed.removed)}")
    outer = enclosing_project(home)
    if outer is not None:
        warn(f"it lies in another project, whose docs are not searched here: {outer}")
    if project and os.environ.get("KB_HOME"):
        warn("KB_HOME is set, so commands use that home instead of this project's")
