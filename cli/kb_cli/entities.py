"""`kb entities`: who and what is mentioned."""

import click

from kb.operations.entities import ENTITIES, EntitiesRequest
from kb_cli.answering import answer
from kb_cli.options import request_options
from kb_cli.output import clean, many, print_json, warn
from kb_cli.words import text


@click.command(name="entities")
@click.argument("prefix", type=text, default="")
@request_options(EntitiesRequest, "limit")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def command(ctx: click.Context, prefix: str, limit: int, as_json: bool) -> None:
    """List the URLs, addresses, #tags and @names whose name starts with PREFIX."""
    page, _ = answer(ctx, ENTITIES, EntitiesRequest(prefix=prefix, limit=limit))
    for warning in page.warnings:
        warn(warning)
    if as_json:
        print_json(page)
        return
    for entity in page.entities:
        click.echo(f"{clean(entity.surface)}  {many(entity.passages, 'passage')}")
    if page.more:
        warn("there are more; --limit shows them")
    if not page.entities:
        warn(
            f"nothing is mentioned that starts with {prefix!r}" if prefix else "none are mentioned"
        )
