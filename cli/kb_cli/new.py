"""`kb new`: write a new entry, and take it in."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from kb.errors import ItemsFailed
from kb.operations import new_entry
from kb.operations.new_entry import TYPE_DEFAULT, NewEntryRequest
from kb.operations.work import workers_if
from kb_cli.home import open_app
from kb_cli.output import clean, warn
from kb_cli.words import text
from kb_cli.work import drain, progress_bar

if TYPE_CHECKING:
    from kb.home.app import App


@click.command(name="new")
@click.argument("title", type=text)
@click.option("--id", "zettel_id", type=text, help="Its id; else one is made from the title.")
@click.option(
    "--type", "entry_type", type=text, default=TYPE_DEFAULT, show_default=True, help="Its type."
)
@click.option("--tag", "tags", type=text, multiple=True, metavar="T", help="A tag.")
@click.option(
    "--ref",
    "references",
    type=text,
    multiple=True,
    metavar="ID",
    help="An entry that it refers to, whether it exists or not.",
)
@click.option("--print", "only_print", is_flag=True, help="Print the file, and write nothing.")
@click.option(
    "--wait/--no-wait",
    default=True,
    help="Wait until it can be found, or leave the work to kb worker.",
)
@click.pass_context
def command(
    ctx: click.Context,
    title: str,
    zettel_id: str | None,
    entry_type: str,
    tags: tuple[str, ...],
    references: tuple[str, ...],
    only_print: bool,
    wait: bool,
) -> None:
    """Write a new entry into the home's knowledge folder, and print where it is.

    It can be found from then on. A file that is there is left as it is.
    """
    app = open_app(ctx, create=not only_print)
    request = NewEntryRequest(
        title=title,
        zettel_id=zettel_id,
        entry_type=entry_type,
        tags=tags,
        references=references,
    )
    if only_print:
        click.echo(new_entry.entry_text(app, request), nl=False)
        return
    path = new_entry.write_entry(app, request)
    click.echo(clean(str(path)))
    _take_in(app, path, wait=wait)


def _take_in(app: "App", path: Path, *, wait: bool) -> None:
    with progress_bar() as progress, workers_if(app, wanted=wait) as workers:
        report = new_entry.take_in(app, path)
        if workers is not None:
            drain(workers, progress)
    for problem in report.problems:
        warn(f"{problem.source}: {problem.reason}")
    if report.failed:
        raise ItemsFailed("the entry was written but not indexed; `kb sync-all` tries again")
