"""`kb pack list`, `read`, `search`, `neighbors` and `vars`: what is in a pack."""

import sys
from collections.abc import Callable
from typing import Any, Final, TypeVar

import click

from kb.errors import ItemsFailed
from kb.operations import pack_browse
from kb.operations.pack_browse import EDGE_TYPES, EdgeType, PackDoc, PackFilter
from kb_cli.output import clean, print_json, warn
from kb_cli.pack_register import opened, tell
from kb_cli.words import text

_F = TypeVar("_F", bound=Callable[..., Any])
_SELECTOR_HELP = "SELECTOR is a doc's selector, its id or its source path."


_FILTERS: Final = (
    click.option("--kind", type=text, help="Only docs of this kind."),
    click.option("--tag", "tags", type=text, multiple=True, help="Only docs with this tag (all)."),
    click.option("--prefix", type=text, help="Only docs whose selector starts so."),
    click.option(
        "--related-to", type=text, metavar="SELECTOR", help="Only docs that link to this."
    ),
    click.option("--edge", type=click.Choice(EDGE_TYPES), help="By a link of this type."),
)


def _which_docs(command: _F) -> _F:
    for option in reversed(_FILTERS):
        command = option(command)
    return command


def _filter(ctx: click.Context, options: dict[str, Any]) -> PackFilter:
    if options["edge"] and not options["related_to"]:
        raise click.UsageError("--edge goes with --related-to", ctx)
    return PackFilter(
        tags=options["tags"],
        kind=options["kind"],
        selector_prefix=options["prefix"],
        related_to=options["related_to"],
        edge_type=options["edge"],
    )


@click.command(name="list")
@click.argument("name", metavar="PACK")
@_which_docs
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def list_docs(ctx: click.Context, /, name: str, as_json: bool, **options: Any) -> None:
    """List the docs of a pack."""
    filters = _filter(ctx, options)
    pack = opened(ctx, name)
    page = pack_browse.list_docs(pack, filters)
    if as_json:
        print_json(page)
        return
    for doc in page.docs:
        notes = " ".join((doc.kind, *(f"#{tag}" for tag in doc.tags)))
        click.echo(f"{_line(doc)}  {click.style(clean(notes), dim=True)}")
    tell(page.warnings)
    if not page.docs:
        warn("no docs match" if pack.manifest.docs else "the pack has no docs")


@click.command(name="read", epilog=_SELECTOR_HELP)
@click.argument("name", metavar="PACK")
@click.argument("selector", type=text)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def read(ctx: click.Context, name: str, selector: str, as_json: bool) -> None:
    """Print what a doc of a pack says."""
    pack = opened(ctx, name)
    doc = pack_browse.read(pack, selector)
    if as_json:
        print_json(doc)
    elif doc.content is not None:
        # A file gets what the body says; a terminal gets nothing that could drive it.
        is_shown = sys.stdout.isatty()
        for line in doc.content.rstrip("\n").split("\n"):
            click.echo(clean(line) if is_shown else line)
    if not as_json:
        tell(doc.warnings)
    if doc.content is None:
        raise ItemsFailed


@click.command(name="search")
@click.argument("name", metavar="PACK")
@click.argument("words", metavar="QUERY", type=text)
@_which_docs
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def search(ctx: click.Context, /, name: str, words: str, as_json: bool, **options: Any) -> None:
    """Find docs of a pack by what its manifest says of them."""
    filters = _filter(ctx, options)
    pack = opened(ctx, name)
    page = pack_browse.search(pack, words, filters)
    if as_json:
        print_json(page)
        return
    for hit in page.hits:
        notes = click.style(", ".join(hit.matched), dim=True)
        click.echo(f"{hit.score:>5}  {_line(hit.document)}  {notes}")
    tell(page.warnings)
    if not page.hits:
        warn(f"no doc's id, selector, title, tags or summary hold {words!r}")


@click.command(name="neighbors", epilog=_SELECTOR_HELP)
@click.argument("name", metavar="PACK")
@click.argument("selector", type=text)
@click.option("--edge", type=click.Choice(EDGE_TYPES), help="Only links of this type.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def neighbors(
    ctx: click.Context, name: str, selector: str, edge: EdgeType | None, as_json: bool
) -> None:
    """List where the links of a doc lead."""
    pack = opened(ctx, name)
    links = pack_browse.neighbors(pack, selector, edge)
    if as_json:
        print_json(links)
        return
    for link in links.edges:
        click.echo(f"{link.type:<10}  {_line(link.target)}")
    tell(links.warnings)
    if not links.edges:
        warn("it has no links of this type" if edge else "it has no links")


@click.command(name="vars")
@click.argument("name", metavar="PACK")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def prompt_vars(ctx: click.Context, name: str, as_json: bool) -> None:
    """Print a prompt variable for each doc: its name, and what the doc is in a line."""
    pack = opened(ctx, name)
    named = pack_browse.prompt_variables(pack)
    if as_json:
        print_json(named)
        return
    for variable, value in named.variables.items():
        click.echo(f"{click.style(clean(variable), fg='cyan')}  {clean(value)}")
    tell(named.warnings)


def _line(doc: PackDoc) -> str:
    return f"{click.style(clean(doc.selector), fg='cyan')}  {clean(doc.title)}"


COMMANDS: Final = (list_docs, read, search, neighbors, prompt_vars)
