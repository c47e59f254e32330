"""`kb entries`: list entries, and references that lead nowhere."""

import click

from kb.operations.entries import ListedEntry, listed_entries
from kb_cli.home import open_to_read
from kb_cli.output import clean, print_json, warn
from kb_cli.words import text


@click.command(name="entries")
@click.option("--type", "entry_type", type=text, metavar="T", help="Only entries of this type.")
@click.option(
    "--dangling",
    is_flag=True,
    help="List the references that lead nowhere, with the files that have them.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def command(ctx: click.Context, entry_type: str | None, dangling: bool, as_json: bool) -> None:
    """List entries with their version and type, by their ids."""
    app = open_to_read(ctx)
    listed = listed_entries(app.opened(), entry_type=entry_type, dangling=dangling)
    if as_json:
        print_json(listed)
        return
    for row in listed.entries:
        if dangling:
            for target in row.dangling:
                click.echo(f"{_ident(row)}  refers to {target}  {clean(row.source)}")
        else:
            click.echo(f"{_ident(row)}  {row.version}  {clean(row.entry_type)}  {clean(row.title)}")
    if not listed.entries:
        warn("every reference is answered" if dangling else "no entries; `kb new` writes one")


def _ident(row: ListedEntry) -> str:
    return click.style(row.zettel_id, fg="cyan")
