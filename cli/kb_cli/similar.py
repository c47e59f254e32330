"""`kb similar`: find passages like a doc or a passage."""

import click

from kb.operations.similar import SIMILAR, SimilarRequest
from kb_cli.answering import answer
from kb_cli.filters import id_or_path
from kb_cli.hits import print_hits
from kb_cli.options import request_options
from kb_cli.output import print_json, warn


@click.command(name="similar")
@click.argument("ident", metavar="ID|PATH")
@request_options(SimilarRequest, "k", "max_tokens")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def command(ctx: click.Context, ident: str, k: int, max_tokens: int | None, as_json: bool) -> None:
    """Find passages of other docs that are like a doc or a passage."""
    request = SimilarRequest(id=id_or_path(ident)[0], k=k, max_tokens=max_tokens)
    result, has_several = answer(ctx, SIMILAR, request)
    if as_json:
        print_json(result)
        return
    print_hits(result, (), with_space=has_several)
    for warning in result.warnings:
        warn(warning)
    if not result.hits and not result.warnings:
        warn("nothing else is like it")
