"""`kb show`: a doc with its passages, or a passage with its neighbours."""

import shutil

import click

from kb.operations.show import SHOW, LinkedDoc, PassageInPlace, Reference, ShowRequest, WholeDoc
from kb_cli.answering import answer
from kb_cli.filters import id_or_path
from kb_cli.hits import linked
from kb_cli.output import cells, clean, fitted, print_json, warn

_ID_SHOWN = 9


@click.command(name="show")
@click.argument("ident", metavar="ID|PATH")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def command(ctx: click.Context, ident: str, as_json: bool) -> None:
    """Show a doc with its passages, or a passage with its neighbours.

    A part of the path of its file will do where no other doc has it. Of an entry, whose own id will
    do, also what it refers to and what refers to it.
    """
    result, has_several = answer(ctx, SHOW, ShowRequest(id=id_or_path(ident)[0]))
    for warning in result.warnings:
        warn(warning)
    shown = result.shown
    if has_several and not as_json:
        click.echo(click.style(f"from the {result.space} space", dim=True))
    if as_json:
        print_json(shown)
    elif isinstance(shown, WholeDoc):
        _print_doc(shown)
    else:
        _print_passage(shown)


def _people(shown: WholeDoc) -> list[tuple[str, str]]:
    """Who wrote a mail, and to whom."""
    mail = shown.doc.mail
    if mail is None:
        return []
    return [("from", mail.sender), ("to", ", ".join(mail.shortened().recipients))]


def _print_doc(shown: WholeDoc) -> None:
    doc = shown.doc
    click.echo(click.style(clean(doc.title), bold=True))
    pairs = [
        ("id", doc.doc_id),
        ("aliases", ", ".join(doc.aliases)),
        ("source", doc.source),
        *_people(shown),
        ("kind", f"{doc.kind}, {doc.mime}"),
        ("tags", ", ".join(doc.tags)),
        ("date", doc.date or ""),
        ("created", doc.created or ""),
        ("modified", doc.modified or ""),
        ("status", f"{doc.status}, version {doc.version}, {doc.visibility}"),
    ]
    if doc.entry is not None:
        meta = doc.entry
        pairs.insert(1, ("entry", f"{meta.zettel_id}, {meta.entry_type}, {meta.version}"))
        pairs.append(("author", meta.author or ""))
    if doc.coverage is not None:
        by_ocr = f", {len(doc.coverage.ocr_pages)} by OCR" if doc.coverage.ocr_pages else ""
        have = f"{doc.coverage.pages_with_text} of {doc.coverage.pages} have text"
        pairs.append(("pages", f"{have}{by_ocr}"))
    for name, value in pairs:
        if value:
            click.echo(f"{name:>9}  {clean(value)}")
    for name, references in (("refers", shown.references), ("from", shown.referrers)):
        for reference in references:
            click.echo(f"{name:>9}  {_reference(reference)}")
    for name, linked_docs in (("links to", shown.links), ("linked by", shown.backlinks)):
        for linked_doc in linked_docs:
            click.echo(f"{name:>9}  {_linked(linked_doc)}")
    for row in shown.passages:
        first = clean(" ".join(row.text.split()))
        room = max(20, min(100, shutil.get_terminal_size().columns) - _ID_SHOWN - 2)
        preview = fitted(first, room) if cells(first) > room else first
        click.echo(f"{click.style(row.chunk_id[:_ID_SHOWN], fg='cyan')}  {preview}")


def _linked(linked_doc: LinkedDoc) -> str:
    if linked_doc.doc_id is None:
        return click.style(f"{clean(linked_doc.source)}, which is not here", dim=True)
    ident = click.style(linked_doc.doc_id[:_ID_SHOWN], fg="cyan")
    place = click.style(linked("file", linked_doc.source, clean(linked_doc.source)), dim=True)
    return f"{ident}  {clean(linked_doc.title or '')}  {place}"


def _reference(reference: Reference) -> str:
    ident = click.style(reference.zettel_id, fg="cyan")
    title = "nothing has this id" if reference.title is None else clean(reference.title)
    return f"{ident}  {title}"


def _print_passage(shown: PassageInPlace) -> None:
    where = " > ".join((shown.doc.title, *shown.passage.heading))
    click.echo(click.style(clean(where), bold=True))
    click.echo(clean(shown.doc.source))
    for row, dim in ((shown.before, True), (shown.passage, False), (shown.after, True)):
        if row is not None:
            click.echo(f"\n{click.style(row.chunk_id[:_ID_SHOWN], fg='cyan')}")
            for line in row.text.split("\n"):
                click.echo(click.style(clean(line), dim=dim))
