"""`kb pack add`, `ls`, `rm` and `show`: which packs there are."""

from collections import Counter
from typing import Final, get_args

import click
from msgspec import Struct

from cli.home import open_app
from cli.output import clean, many, print_json, warn
from cli.words import text
from kb.model.doc import OPERATOR, Visibility
from kb.model.pack import PackForm, PackRecord
from kb.packs import register
from kb.packs.brief import warnings_of
from kb.packs.load import Pack


class ShownPack(Struct, frozen=True, kw_only=True):
    """A pack as it is now."""

    pack_id: str
    selector: str | None
    version: str
    schema_version: int
    root_uri: str
    content_hash: str
    location: str
    form: PackForm
    docs: int
    kinds: dict[str, int]
    warnings: tuple[str, ...]


class PackList(Struct, frozen=True, kw_only=True):
    """The packs that are registered, by id."""

    packs: list[PackRecord]


class RemovedPack(Struct, frozen=True, kw_only=True):
    """A pack that is not registered any more."""

    removed: str


def opened(ctx: click.Context, name: str) -> Pack:
    """The pack that a command names."""
    return register.open_pack(open_app(ctx, create=False).store, name)


def tell(warnings: tuple[str, ...]) -> None:
    """Each on a line of its own on standard error."""
    for line in warnings:
        warn(line)


@click.command(name="add")
@click.argument("place", metavar="PATH")
@click.option("--visibility", type=click.Choice(get_args(Visibility)), help="Who may see the pack.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def add(ctx: click.Context, place: str, visibility: Visibility | None, as_json: bool) -> None:
    """Register a pack: a folder with a manifest, or the manifest's file."""
    pack = register.pack_at(place)
    register.register(open_app(ctx, create=True).store, pack, visibility=visibility)
    shown = _shown(pack)
    if as_json:
        print_json(shown)
        return
    click.echo(f"{clean(shown.pack_id)} is registered, with {many(shown.docs, 'doc')}")
    tell(shown.warnings)


@click.command(name="ls")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def ls(ctx: click.Context, as_json: bool) -> None:
    """List the packs that are registered."""
    with open_app(ctx, create=False).store.read() as txn:
        records = register.listed(txn, OPERATOR)
    if as_json:
        print_json(PackList(packs=records))
        return
    for record in records:
        said = "  ".join(filter(None, (record.selector, record.version, record.visibility)))
        click.echo(f"{click.style(clean(record.pack_id), fg='cyan')}  {clean(said)}")
        click.echo(f"  {clean(record.location)}")
    if not records:
        warn("no packs yet; kb pack add registers them")


@click.command(name="rm")
@click.argument("name", metavar="PACK", type=text)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def rm(ctx: click.Context, name: str, as_json: bool) -> None:
    """Take a pack off the register; its files stay."""
    record = register.unregister(open_app(ctx, create=False).store, name)
    if as_json:
        print_json(RemovedPack(removed=record.pack_id))
    else:
        click.echo(f"{clean(record.pack_id)} is not registered any more; its files stay")


@click.command(name="show")
@click.argument("name", metavar="PACK")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def show(ctx: click.Context, name: str, as_json: bool) -> None:
    """Show what a pack says of itself as a whole."""
    shown = _shown(opened(ctx, name))
    if as_json:
        print_json(shown)
        return
    rows = {
        "pack": shown.pack_id,
        "selector": shown.selector or "",
        "version": shown.version,
        "root": shown.root_uri,
        "hash": shown.content_hash,
        "manifest": shown.location,
        "docs": str(shown.docs),
        "kinds": ", ".join(f"{count} {kind}" for kind, count in shown.kinds.items()),
    }
    for label, value in rows.items():
        if value:
            click.echo(f"{label:>8}  {clean(value)}")
    tell(shown.warnings)


def _shown(pack: Pack) -> ShownPack:
    said = pack.manifest
    return ShownPack(
        pack_id=said.pack_id,
        selector=pack.selector,
        version=said.version,
        schema_version=said.schema_version,
        root_uri=said.root_uri,
        content_hash=said.content_hash,
        location=pack.location,
        form=pack.form,
        docs=len(said.docs),
        kinds=dict(sorted(Counter(doc.kind for doc in said.docs).items())),
        warnings=warnings_of(pack.findings),
    )


COMMANDS: Final = (add, ls, rm, show)
