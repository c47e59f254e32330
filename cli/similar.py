"""`kb similar`: find passages like a doc or a passage."""

import click

from cli.answering import answer
from cli.hits import print_hits
from cli.options import request_options
from cli.output import print_json, warn
from kb.operations.similar import SIMILAR, SimilarRequest


@click.command(name="similar")
@click.argument("ident", metavar="ID")
@request_options(SimilarRequest, "k", "max_tokens")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def command(ctx: click.Context, ident: str, k: int, max_tokens: int | None, as_json: bool) -> None:
    """Find passages of other docs that are like a doc or a passage."""
    request = SimilarRequest(id=ident, k=k, max_tokens=max_tokens)
    result, has_several = answer(ctx, SIMILAR, request)
    if as_json:
        print_json(result)
        return
    print_hits(result, (), with_space=has_several)
    for warning in result.warnings:
        warn(warning)
    if not result.hits and not result.warnings:
        warn("nothing else is like it")
