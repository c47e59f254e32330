"""`kb entities`: who and what is mentioned."""

import click

from cli.home import open_spaces
from cli.output import clean, many, print_json, warn
from cli.words import text
from kb.model.doc import OPERATOR
from kb.operations.fields import NO_BUDGET
from kb.operations.search_entities import SearchEntitiesInput


@click.command(name="entities")
@click.argument("prefix", type=text, default="")
@click.option("--limit", type=click.IntRange(1), default=50, show_default=True)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def command(ctx: click.Context, prefix: str, limit: int, as_json: bool) -> None:
    """List the URLs, addresses, #tags and @names whose name starts with PREFIX."""
    request = SearchEntitiesInput(prefix=prefix, limit=limit, max_tokens=NO_BUDGET)
    found = open_spaces(ctx).entities(request, OPERATOR)
    for warning in found.warnings:
        warn(warning)
    if as_json:
        print_json(found)
        return
    for entity in found.entities:
        click.echo(f"{clean(entity.surface)}  {many(entity.passages, 'passage')}")
    if found.more:
        warn("there are more; --limit shows them")
    if not found.entities:
        warn(
            f"nothing is mentioned that starts with {prefix!r}" if prefix else "none are mentioned"
        )
