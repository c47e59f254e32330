"""`kb entities`: who and what is mentioned."""

import click
from msgspec import Struct

from cli.home import open_app
from cli.output import clean, many, print_json, warn
from cli.words import text
from kb.model.doc import OPERATOR
from kb.model.search import KnownEntity
from kb.search.mentions import list_entities


class Entities(Struct, frozen=True, kw_only=True):
    """The entities that were asked for."""

    entities: tuple[KnownEntity, ...]


@click.command(name="entities")
@click.argument("prefix", type=text, default="")
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def command(ctx: click.Context, prefix: str, limit: int, as_json: bool) -> None:
    """List the URLs, addresses, #tags and @names whose name starts with PREFIX."""
    app = open_app(ctx, create=False)
    with app.store.read() as txn:
        found = list_entities(txn, prefix, OPERATOR, limit + 1)
    shown = found[:limit]
    if as_json:
        print_json(Entities(entities=shown))
        return
    for entity in shown:
        click.echo(f"{clean(entity.surface)}  {many(entity.passages, 'passage')}")
    if len(found) > limit:
        warn("there are more; --limit shows them")
    if not found:
        warn(
            f"nothing is mentioned that starts with {prefix!r}" if prefix else "none are mentioned"
        )
