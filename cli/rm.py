"""`kb rm`: remove docs."""

import sys

import click
from msgspec import Struct

from cli.home import open_app
from cli.output import clean, many, print_json
from cli.words import text
from kb.errors import HeldBack, NotFound, UsageError
from kb.home.app import App
from kb.intake.ingest.changes import tombstone
from kb.model.doc import Doc
from kb.operations.entries import doc_named
from kb.store import docs

_SHOWN_MAX = 10


class NoSuchTag(NotFound):
    """No doc has this tag."""

    template = "no doc has the tag {id}; `kb ls` lists what there is"


class Removed(Struct, frozen=True, kw_only=True):
    """What was removed."""

    removed: list[str]


@click.command(name="rm")
@click.argument("idents", nargs=-1, metavar="ID...")
@click.option("--tag", type=text, help="Every doc with this tag.")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def command(
    ctx: click.Context, idents: tuple[str, ...], tag: str | None, yes: bool, as_json: bool
) -> None:
    """Remove docs: by an ID, or by the id of an entry.

    Compaction frees them after 30 days; added again before, they come back. A file that stays in
    a folder that is kept current stays out until it is added again.
    """
    if bool(idents) == (tag is not None):
        raise UsageError("give either IDs or --tag; `kb ls` lists the ids")
    app = open_app(ctx, create=False)
    found = _found(app, idents, tag)
    if not yes:
        _ask(found)
    removed = tombstone(app.store, [doc.doc_id for doc in found])
    if as_json:
        print_json(Removed(removed=list(removed)))
    else:
        click.echo(f"{many(len(removed), 'doc')} removed")


def _found(app: App, idents: tuple[str, ...], tag: str | None) -> list[Doc]:
    with app.store.read() as txn:
        if tag is None:
            found = [doc_named(txn, ident) for ident in idents]
            gone = [doc for doc in found if doc.status == "tombstoned"]
            if gone:
                raise NotFound(id=gone[0].doc_id)
            return found
        sources = docs.with_facet(txn, "tag", tag)
        tagged = [doc for no in sources if (doc := docs.latest(txn, no)) is not None]
    if not tagged:
        raise NoSuchTag(id=tag)
    return tagged


def _ask(found: list[Doc]) -> None:
    for doc in found[:_SHOWN_MAX]:
        click.echo(f"{doc.doc_id[:9]}  {clean(doc.title)}  {clean(doc.source)}", err=True)
    if len(found) > _SHOWN_MAX:
        click.echo(f"... and {len(found) - _SHOWN_MAX} more", err=True)
    if not sys.stdin.isatty():
        raise HeldBack(f"{many(len(found), 'doc')} would be removed; say --yes to do it")
    if not click.confirm(f"Remove {many(len(found), 'doc')}?", err=True):
        raise HeldBack("nothing was removed")
