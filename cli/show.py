"""`kb show`: a doc with its passages, or a passage with its neighbours."""

import shutil

import click
from msgspec import Struct

from cli.home import open_app
from cli.output import cells, clean, fitted, print_json
from kb.model.doc import Doc
from kb.model.text import Chunk
from kb.store import chunks, docs
from kb.store.kv import ReadTxn

_ID_SHOWN = 9


class PassageRow(Struct, frozen=True, kw_only=True):
    """A passage as it is shown."""

    chunk_id: str
    doc_id: str
    ordinal: int
    heading: tuple[str, ...]
    page: int | None
    start: int
    end: int
    tokens: int
    text: str


class ShownDoc(Struct, frozen=True, kw_only=True):
    """A doc and its passages in reading order."""

    doc: Doc
    passages: list[PassageRow]


class ShownPassage(Struct, frozen=True, kw_only=True):
    """A passage, its doc, and what stands before and after it."""

    passage: PassageRow
    doc: Doc
    before: PassageRow | None
    after: PassageRow | None


@click.command(name="show")
@click.argument("ident", metavar="ID")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def command(ctx: click.Context, ident: str, as_json: bool) -> None:
    """Show a doc with its passages, or a passage with its neighbours."""
    app = open_app(ctx, create=False)
    with app.store.read() as txn:
        full = docs.resolve(txn, ident)
        chunk = chunks.by_id(txn, full)
        shown = _passage(txn, chunk) if chunk else _doc(txn, docs.require(txn, full))
    if as_json:
        print_json(shown)
    elif isinstance(shown, ShownDoc):
        _print_doc(shown)
    else:
        _print_passage(shown)


def _doc(txn: ReadTxn, doc: Doc) -> ShownDoc:
    rows = chunks.of_source(txn, doc.source_no) if doc.status != "superseded" else []
    return ShownDoc(doc=doc, passages=[_row(chunk) for chunk in rows])


def _passage(txn: ReadTxn, chunk: Chunk) -> ShownPassage:
    before = chunks.at(txn, chunk.source_no, chunk.ordinal - 1)
    after = chunks.at(txn, chunk.source_no, chunk.ordinal + 1)
    return ShownPassage(
        passage=_row(chunk),
        doc=docs.require(txn, chunk.doc_id),
        before=_row(before) if before else None,
        after=_row(after) if after else None,
    )


def _row(chunk: Chunk) -> PassageRow:
    return PassageRow(
        chunk_id=chunk.chunk_id,
        doc_id=chunk.doc_id,
        ordinal=chunk.ordinal,
        heading=chunk.heading,
        page=chunk.page,
        start=chunk.start,
        end=chunk.end,
        tokens=chunk.tokens,
        text=chunk.text,
    )


def _print_doc(shown: ShownDoc) -> None:
    doc = shown.doc
    click.echo(click.style(clean(doc.title), bold=True))
    pairs = [
        ("id", doc.doc_id),
        ("source", doc.source),
        ("kind", f"{doc.kind}, {doc.mime}"),
        ("tags", ", ".join(doc.tags)),
        ("date", doc.date or ""),
        ("status", f"{doc.status}, version {doc.version}, {doc.visibility}"),
    ]
    if doc.coverage is not None:
        pairs.append(("pages", f"{doc.coverage.pages_with_text} of {doc.coverage.pages} have text"))
    for name, value in pairs:
        if value:
            click.echo(f"{name:>8}  {clean(value)}")
    for row in shown.passages:
        first = clean(" ".join(row.text.split()))
        room = max(20, min(100, shutil.get_terminal_size().columns) - _ID_SHOWN - 2)
        preview = fitted(first, room) if cells(first) > room else first
        click.echo(f"{click.style(row.chunk_id[:_ID_SHOWN], fg='cyan')}  {preview}")


def _print_passage(shown: ShownPassage) -> None:
    where = " > ".join((shown.doc.title, *shown.passage.heading))
    click.echo(click.style(clean(where), bold=True))
    click.echo(clean(shown.doc.source))
    for row, dim in ((shown.before, True), (shown.passage, False), (shown.after, True)):
        if row is not None:
            click.echo(f"\n{click.style(row.chunk_id[:_ID_SHOWN], fg='cyan')}")
            for line in row.text.split("\n"):
                click.echo(click.style(clean(line), dim=dim))
