"""`kb similar`: find passages like a doc or a passage."""

import click

from cli.hits import print_hits
from cli.home import open_spaces
from cli.output import print_json, warn
from kb.model.doc import OPERATOR
from kb.operations.fields import NO_BUDGET
from kb.operations.similar import SimilarInput


@click.command(name="similar")
@click.argument("ident", metavar="ID")
@click.option("-k", "k", type=click.IntRange(1, 1000), default=10, show_default=True, help="Hits.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def command(ctx: click.Context, ident: str, k: int, as_json: bool) -> None:
    """Find passages of other docs that are like a doc or a passage."""
    request = SimilarInput(id=ident, k=k, max_tokens=NO_BUDGET)
    spaces = open_spaces(ctx)
    result = spaces.similar(request, OPERATOR)
    if as_json:
        print_json(result)
        return
    print_hits(result, (), with_space=len(spaces.names) > 1)
    for warning in result.warnings:
        warn(warning)
    if not result.hits and not result.warnings:
        warn("nothing else is like it")
