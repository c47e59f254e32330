"""`kb ls`: list docs."""

from typing import get_args

import click

from cli.asked import reader_of
from cli.filters import source_option
from cli.output import clean, many, print_json, warn
from cli.words import text
from kb.home.spaces.answers import SpaceDoc
from kb.model.asking import DocsAsked
from kb.model.doc import DocStatus, Kind
from kb.operations.kept import Status


@click.command(name="ls")
@click.option(
    "--tag", "tags", type=text, multiple=True, help="Only docs with this tag (all of them)."
)
@click.option("--kind", type=click.Choice(get_args(Kind)), help="Only docs of this kind.")
@source_option
@click.option(
    "--status",
    type=click.Choice([*get_args(DocStatus), "all"]),
    default="active",
    show_default=True,
    help="Only docs in this state.",
)
@click.option("--limit", type=click.IntRange(0), default=50, show_default=True, help="0 for all.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def command(
    ctx: click.Context,
    tags: tuple[str, ...],
    kind: Kind | None,
    sources: tuple[str, ...],
    status: Status,
    limit: int,
    as_json: bool,
) -> None:
    """List docs, the newest change first."""
    reader = reader_of(ctx)
    kinds = (kind,) if kind else ()
    asked = DocsAsked(tags=tags, kinds=kinds, sources=sources, status=status, limit=limit)
    found = reader.docs(asked)
    for warning in found.warnings:
        warn(warning)
    if as_json:
        print_json(found)
        return
    for row in found.docs:
        _print_row(row, with_space=reader.has_several)
    if len(found.docs) < found.total:
        warn(f"{many(found.total - len(found.docs), 'more doc')}; --limit 0 lists all")
    if not found.docs:
        has_limits = tags or kind or sources or status != "active"
        warn("no docs match" if has_limits else "no docs yet; see kb add")


def _print_row(row: SpaceDoc, *, with_space: bool) -> None:
    notes = [f"#{clean(tag)}" for tag in row.tags]
    notes += [row.space] if with_space else []
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
