"""`kb init`: make a home, and write kb's own entries into the user's."""

import os
from pathlib import Path
from typing import Final

import click

from cli.home import here, make_home, user_space
from cli.output import clean, warn
from kb.errors import ReadOnlyHome, UsageError
from kb.home.app import App
from kb.home.core import FOLDER, put_core
from kb.home.spaces.homes import enclosing_project
from kb.knowledge.guide.install import Installed
from kb.store.content.layout import PROJECT_FOLDER, HomePaths

_NEXT: Final = (
    "kb add --recursive FOLDER   takes a folder in",
    'kb search "a question"      finds passages',
    'kb guide "how do I ..."     says how things are done',
)
_OUTCOMES: Final = ("written", "updated", "unchanged", "edited", "removed")


@click.command(name="init")
@click.option("--project", is_flag=True, help="Make a .kb/ folder here, for a project.")
@click.pass_context
def command(ctx: click.Context, project: bool) -> None:
    """Make a home with its folders, and write kb's own entries into the user's.

    Run again it brings newer entries, leaves alone what was edited, and changes nothing else.
    """
    if ctx.obj["space"] is not None or (project and ctx.obj["home"] is not None):
        raise UsageError("--project says which home is made, in this folder; give no other")
    mine = user_space(ctx)
    home = here() / PROJECT_FOLDER if project else mine
    was_there = HomePaths(home).has_store
    app = _made(ctx, home)
    if os.path.realpath(home) != os.path.realpath(mine):
        app = _made(ctx, mine)
    done = put_core(app)
    click.echo(clean(f"{home}: {'was there already' if was_there else 'made'}"))
    click.echo(clean(f"{app.paths.knowledge / FOLDER}: {_counts(done)}"))
    for line in _NEXT:
        click.echo(line)
    _warn(home, done, project=project)


def _made(ctx: click.Context, home: Path) -> App:
    app = make_home(ctx, home)
    folder = app.paths.knowledge
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError as error:
        raise ReadOnlyHome(error.strerror or "", place=folder) from error
    return app


def _counts(done: Installed) -> str:
    each = {name: len(getattr(done, name)) for name in _OUTCOMES}
    said = ", ".join(f"{count} {name}" for name, count in each.items() if count)
    return f"{sum(each.values())} entries about kb: {said}"


def _warn(home: Path, done: Installed, *, project: bool) -> None:
    if done.edited:
        warn(f"edited here, so left as they are: {', '.join(done.edited)}")
    if done.removed:
        warn(f"removed here, so not written again: {', '.join(done.removed)}")
    outer = enclosing_project(home)
    if outer is not None:
        warn(f"it lies in another project, whose docs are not searched here: {outer}")
    if project and os.environ.get("KB_HOME"):
        warn("KB_HOME is set, so commands use that home instead of this project's")
