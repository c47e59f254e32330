"""`kb doctor`: is all well around the store?"""

from collections.abc import Iterator
from pathlib import Path

import click
from msgspec import Struct

from cli.home import home_of, open_app
from cli.output import clean, many, print_json
from kb.errors import ConfigError, HeldBack, ItemsFailed, NotebookUnfit, StoreBusy
from kb.home.app import App
from kb.home.spaces.homes import enclosing_project
from kb.upkeep.check.doctor import (
    Advice,
    home_advice,
    inspect_host,
    model_advice,
    push_advice,
    store_advice,
)
from kb.upkeep.check.notebook import notebook_advice


class NeedsAttention(ItemsFailed):
    """Something around the store is to be mended."""


class Health(Struct, frozen=True, kw_only=True):
    """Whether all is well, and if not, what to do."""

    well: bool
    findings: tuple[Advice, ...]


@click.command(name="doctor")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def command(ctx: click.Context, as_json: bool) -> None:
    """Look at disk, model, settings, jobs and sources. Exit 3 where something needs attention.

    `kb check` looks at the store itself.
    """
    findings = tuple(_findings(ctx))
    health = Health(well=not findings, findings=findings)
    if as_json:
        print_json(health)
    else:
        for finding in findings:
            click.echo(clean(f"{finding.place}: {finding.problem} ({finding.mend})"))
        if health.well:
            click.echo("all is well")
    if findings:
        raise NeedsAttention(f"{many(len(findings), 'finding')}; each says what mends it")


def _findings(ctx: click.Context) -> Iterator[Advice]:
    try:
        home_of(ctx)
    except ConfigError as error:
        # Without its settings a home is not to be opened.
        yield Advice(place="settings", problem=str(error), mend="mend that line, and ask again")
        return
    except HeldBack as error:
        yield Advice(place="home", problem=str(error), mend="until then nothing here opens it")
        return
    app = open_app(ctx, create=False)
    yield from _nested(app.paths.root)
    yield from model_advice(app.models.active)
    if app.is_made:
        yield from home_advice(inspect_host(app.paths.root))
        yield from store_advice(app.store)
        yield from _of_notebook(app)


def _of_notebook(app: App) -> Iterator[Advice]:
    try:
        found = notebook_advice(app.store, app.notebook.root)
        yield from found
        if not found:
            yield from push_advice(app.notebook.push_report())
    except (NotebookUnfit, StoreBusy) as error:
        yield Advice(place="notebook", problem=str(error), mend="mend it, or name another folder")


def _nested(home: Path) -> Iterator[Advice]:
    outer = enclosing_project(home)
    if outer is not None:
        problem = f"it lies in another project, whose docs are not searched here: {outer}"
        mend = "say --home to search that one, or remove the one that is not wanted"
        yield Advice(place=str(home), problem=problem, mend=mend)
