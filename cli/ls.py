"""`kb ls`: list docs."""

from typing import get_args

import click
from msgspec import Struct

from cli.home import open_app
from cli.output import clean, many, print_json, warn
from cli.words import text
from kb.model.doc import OPERATOR, Doc, DocStatus, Kind
from kb.store import chunks, docs
from kb.store.kv import ReadTxn
from kb.store.records import LEDGER


class DocRow(Struct, frozen=True, kw_only=True):
    """A doc as it is listed."""

    doc_id: str
    title: str
    source: str
    kind: str
    mime: str
    tags: tuple[str, ...]
    date: str | None
    visibility: str
    status: str
    version: int
    ledger: str
    passages: int
    added_ms: int
    updated_ms: int


class Listing(Struct, frozen=True, kw_only=True):
    """Docs, the newest change first, and how many match in all."""

    docs: list[DocRow]
    total: int


@click.command(name="ls")
@click.option(
    "--tag", "tags", type=text, multiple=True, help="Only docs with this tag (all of them)."
)
@click.option("--kind", type=click.Choice(get_args(Kind)), help="Only docs of this kind.")
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
    kind: str | None,
    status: str,
    limit: int,
    as_json: bool,
) -> None:
    """List docs, the newest change first."""
    app = open_app(ctx, create=False)
    with app.store.read() as txn:
        pool = docs.every(txn) if status in ("superseded", "all") else docs.all_latest(txn)
        found = [doc for doc in pool if _matches(doc, tags, kind, status)]
        found.sort(key=lambda doc: (-doc.updated_ms, doc.source))
        shown = found[: limit or None]
        listing = Listing(docs=[_row(txn, doc) for doc in shown], total=len(found))
    if as_json:
        print_json(listing)
        return
    for row in listing.docs:
        _print_row(row)
    if len(shown) < len(found):
        warn(f"{many(len(found) - len(shown), 'more doc')}; --limit 0 lists all")
    if not found:
        warn("no docs match" if tags or kind or status != "active" else "no docs yet; see kb add")


def _print_row(row: DocRow) -> None:
    notes = [f"#{clean(tag)}" for tag in row.tags]
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


def _matches(doc: Doc, tags: tuple[str, ...], kind: str | None, status: str) -> bool:
    return (
        doc.visible_to(OPERATOR)
        and all(tag in doc.tags for tag in tags)
        and kind in (None, doc.kind)
        and status in ("all", doc.status)
    )


def _row(txn: ReadTxn, doc: Doc) -> DocRow:
    entry = LEDGER.get(txn, doc.doc_id.encode())
    return DocRow(
        doc_id=doc.doc_id,
        title=doc.title,
        source=doc.source,
        kind=doc.kind,
        mime=doc.mime,
        tags=doc.tags,
        date=doc.date,
        visibility=doc.visibility,
        status=doc.status,
        version=doc.version,
        ledger=entry.state if entry else "done",
        passages=len(chunks.numbers_of(txn, doc.source_no)) if doc.status != "superseded" else 0,
        added_ms=doc.added_ms,
        updated_ms=doc.updated_ms,
    )
