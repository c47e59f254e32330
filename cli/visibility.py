"""`kb visibility`: say who may see a doc."""

from typing import get_args

import click
from msgspec import Struct

from cli.home import open_app
from cli.output import print_json
from kb.errors import NotFound
from kb.intake.ingest.changes import set_visibility
from kb.model.doc import Visibility
from kb.operations.entries import doc_named


class Shown(Struct, frozen=True, kw_only=True):
    """Who may see a doc now."""

    doc_id: str
    visibility: str
    owner: str


@click.command(name="visibility")
@click.argument("ident", metavar="ID")
@click.argument("visibility", type=click.Choice(get_args(Visibility)))
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def command(ctx: click.Context, ident: str, visibility: Visibility, as_json: bool) -> None:
    """Say who may see a doc or an entry: everybody, every named user, or its owner."""
    app = open_app(ctx, create=False)
    with app.store.read() as txn:
        doc_id = doc_named(txn, ident).doc_id
    doc = set_visibility(app.store, doc_id, visibility)
    if doc is None:
        raise NotFound(id=ident)
    if as_json:
        print_json(Shown(doc_id=doc.doc_id, visibility=doc.visibility, owner=doc.owner))
    else:
        click.echo(f"{doc.doc_id[:9]} is {doc.visibility} now")
