"""`kb visibility`: say who may see a doc."""

import click

from kb.operations import visibility as operation
from kb.operations.visibility import VISIBILITIES, SetVisibilityRequest, Visibility
from kb_cli.filters import id_or_path
from kb_cli.home import open_app
from kb_cli.output import print_json


@click.command(name="visibility")
@click.argument("ident", metavar="ID|PATH")
@click.argument("visibility", type=click.Choice(VISIBILITIES))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def command(ctx: click.Context, ident: str, visibility: Visibility, as_json: bool) -> None:
    """Say who may see a doc or an entry: everybody, every named user, or its owner."""
    app = open_app(ctx, create=False)
    result = operation.run(
        app, SetVisibilityRequest(ident=id_or_path(ident)[0], visibility=visibility)
    )
    if as_json:
        print_json(result)
    else:
        click.echo(f"{result.doc_id[:9]} is {result.visibility} now")
