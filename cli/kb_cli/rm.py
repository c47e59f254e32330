"""`kb rm`: remove docs."""

import click

from kb.errors import UsageError
from kb.operations import remove
from kb.operations.remove import RemovableDoc
from kb_cli.filters import id_or_path
from kb_cli.home import open_app
from kb_cli.output import clean, confirm, many, print_json
from kb_cli.words import text

_SHOWN_MAX = 10


@click.command(name="rm")
@click.argument("idents", nargs=-1, metavar="ID|PATH...")
@click.option("--tag", type=text, help="Every doc with this tag, and no ID or PATH.")
@click.option(
    "--yes",
    is_flag=True,
    help="Do not ask; without a terminal nothing is removed unless this is given.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def command(
    ctx: click.Context, idents: tuple[str, ...], tag: str | None, yes: bool, as_json: bool
) -> None:
    """Remove docs: by an ID, the id of an entry, or the PATH of a file.

    Compaction frees them after 30 days; added again before, they come back. A file that stays in
    a folder that is kept current stays out until it is added again.
    """
    if bool(idents) == (tag is not None):
        raise UsageError("give either IDs, or paths, or --tag; `kb ls` lists the ids")
    app = open_app(ctx, create=False)
    docs = remove.chosen(app, tuple(id_or_path(ident)[0] for ident in idents), tag)
    if not yes:
        _ask(docs)
    result = remove.run(app, docs)
    if as_json:
        print_json(result)
    else:
        click.echo(f"{many(len(result.removed), 'doc')} removed")


def _ask(docs: tuple[RemovableDoc, ...]) -> None:
    for doc in docs[:_SHOWN_MAX]:
        click.echo(f"{doc.doc_id[:9]}  {clean(doc.title)}  {clean(doc.source)}", err=True)
    if len(docs) > _SHOWN_MAX:
        click.echo(f"... and {len(docs) - _SHOWN_MAX} more", err=True)
    count = many(len(docs), "doc")
    confirm(
        f"Remove {count}?",
        unasked=f"{count} would be removed; add --yes to do it",
        declined="nothing was removed",
    )
