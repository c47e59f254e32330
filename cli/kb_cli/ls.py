"""`kb ls`: list docs."""

import os
import shutil
import sys
from collections.abc import Sequence
from typing import Any, Final

import click

from kb.operations.docs import DOCS, DocRow, DocsRequest
from kb.operations.search import Filters
from kb_cli.answering import answer
from kb_cli.filters import NO_DOCS, from_here, which_docs
from kb_cli.hits import linked
from kb_cli.options import request_of, request_options
from kb_cli.output import cells, clean, fitted, fitted_end, many, print_json, warn

_ID_SHOWN: Final = 9
_GAP: Final = "  "
_DAY_CHARS: Final = len("2026-11-22")
_TABLE_MIN: Final = 60


@click.command(name="ls")
@click.argument("places", metavar="[PLACE]...", nargs=-1, type=click.Path())
@which_docs
@request_options(DocsRequest, "status", "sort", "limit")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def command(ctx: click.Context, /, places: tuple[str, ...], as_json: bool, **options: Any) -> None:
    """List docs, the newest change first; those at or below a file, folder or address."""
    options["sources"] = (*options["sources"], *places)
    request = request_of(DocsRequest, **from_here(options))
    page, has_several = answer(ctx, DOCS, request)
    for warning in page.warnings:
        warn(warning)
    if as_json:
        print_json(page)
        return
    _print_rows(page.docs, with_space=has_several)
    if len(page.docs) < page.total:
        warn(f"{many(page.total - len(page.docs), 'more doc')}; --limit 0 lists all")
    if not page.docs:
        is_narrow = request.filters != Filters() or request.status != "active"
        warn("no docs match" if is_narrow else NO_DOCS)


def _print_rows(rows: Sequence[DocRow], *, with_space: bool) -> None:
    """Two lines a doc, with all there is; on a terminal that is wide enough one, in columns."""
    columns = shutil.get_terminal_size().columns
    if sys.stdout.isatty() and columns >= _TABLE_MIN:
        _print_table(rows, columns, with_space=with_space)
        return
    for row in rows:
        title, notes = clean(row.title), _notes(row, with_space=with_space)
        parts = [_ident(row), title, *([click.style(notes, dim=True)] if notes else [])]
        click.echo("  ".join(parts))
        click.echo(f"{'':{_ID_SHOWN}}  {clean(row.source)}")


def _print_table(rows: Sequence[DocRow], columns: int, *, with_space: bool) -> None:
    """Id, title, notes and place; of a place that is too long the end is shown."""
    texts = [(clean(row.title), _notes(row, with_space=with_space)) for row in rows]
    room = columns - _ID_SHOWN - 3 * len(_GAP)
    notes_width = min(max((cells(notes) for _, notes in texts), default=0), room // 4)
    title_width = min(max((cells(title) for title, _ in texts), default=0), room * 2 // 5)
    place_width = room - title_width - notes_width
    for row, (title, notes) in zip(rows, texts, strict=True):
        place = fitted_end(_from_home(clean(row.source)), place_width)
        parts = [_ident(row), fitted(title, title_width)]
        if notes_width:
            parts.append(click.style(fitted(notes, notes_width), dim=True))
        parts.append(click.style(linked(row.kind, row.source, place), fg="green"))
        click.echo(_GAP.join(parts))


def _ident(row: DocRow) -> str:
    return click.style(row.doc_id[:_ID_SHOWN], fg="cyan")


def _notes(row: DocRow, *, with_space: bool) -> str:
    notes = [row.date[:_DAY_CHARS]] if row.date else []
    notes += [f"#{clean(tag)}" for tag in row.tags]
    notes += [row.space] if with_space and row.space else []
    notes += [row.status] if row.status != "active" else []
    notes += ["not yet findable"] if row.ledger == "pending" else []
    return " ".join(notes)


def _from_home(source: str) -> str:
    home = os.path.expanduser("~")
    return f"~{source.removeprefix(home)}" if source.startswith(f"{home}/") else source
