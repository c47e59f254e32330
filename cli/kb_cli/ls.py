"""`kb ls`: list docs."""

from typing import Any

import click

from kb.operations.docs import DOCS, DocRow, DocsRequest
from kb.operations.search import Filters
from kb_cli.answering import answer
from kb_cli.filters import NO_DOCS, which_docs, with_places
from kb_cli.options import request_of, request_options
from kb_cli.output import clean, many, print_json, warn


@click.command(name="ls")
@click.argument("places", metavar="[PLACE]...", nargs=-1, type=click.Path())
@which_docs
@request_options(DocsRequest, "status", "limit")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def command(ctx: click.Context, /, places: tuple[str, ...], as_json: bool, **options: Any) -> None:
    """List docs, the newest change first; those at or below a file, folder or address."""
    options["sources"] = (*options["sources"], *places)
    request = request_of(DocsRequest, **with_places(options))
    page, has_several = answer(ctx, DOCS, request)
    for warning in page.warnings:
        warn(warning)
    if as_json:
        print_json(page)
        return
    for row in page.docs:
        _print_row(row, with_space=has_several)
    if len(page.docs) < page.total:
        warn(f"{many(page.total - len(page.docs), 'more doc')}; --limit 0 lists all")
    if not page.docs:
        is_narrow = request.filters != Filters() or request.status != "active"
        warn("no docs match" if is_narrow else NO_DOCS)


def _print_row(row: DocRow, *, with_space: bool) -> None:
    notes = [f"#{clean(tag)}" for tag in row.tags]
    notes += [row.space] if with_space and row.space else []
    notes += [row.status] if row.status != "active" else []
    notes += ["not yet findable"] if row.ledger == "pending" else []
    click.echo(
        "  ".join(
            [
                click.style(row.doc_id[:9], fg="cyan"),
                clean(row.title),
                *([click.style(" ".join(notes), dim=True)] if notes else []),
            ]
        )
    )
    click.echo(f"{'':9}  {clean(row.source)}")
