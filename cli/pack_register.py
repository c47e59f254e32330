"""`kb pack add`, `ls`, `rm` and `show`: which packs there are."""

import contextlib
from collections import Counter
from typing import Final, get_args

import click
from msgspec import Struct

from cli.home import open_app, open_to_read
from cli.output import clean, many, print_json, warn
from cli.sync_all import judge
from cli.sync_all import tell as tell_line
from cli.words import text
from cli.work import drain, progress_bar, working
from kb.home.app import App
from kb.home.services.packs import Placed
from kb.intake.sync.current import SourceLine, SyncOptions, SyncReport
from kb.intake.sync.origins import UnknownSource
from kb.knowledge.packs import register
from kb.knowledge.packs.brief import warnings_of
from kb.knowledge.packs.load import Pack
from kb.model.doc import OPERATOR, Visibility
from kb.model.origin import origin_id
from kb.model.pack import PackForm, PackRecord


class ShownPack(Struct, frozen=True, kw_only=True):
    """A pack as it is now."""

    pack_id: str
    title: str
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


class AddedPack(ShownPack, frozen=True, kw_only=True):
    """A pack that was added, and what became of its docs."""

    signed_by: str | None
    """The public key of an archive's signature."""
    sync: SourceLine


class PackList(Struct, frozen=True, kw_only=True):
    """The packs that are registered, by id."""

    packs: list[PackRecord]


class RemovedPack(Struct, frozen=True, kw_only=True):
    """A pack that is not registered any more."""

    removed: str
    docs: int
    """Those that went with it."""


def opened(ctx: click.Context, name: str) -> Pack:
    """The pack that a command names."""
    app = open_to_read(ctx)
    return register.open_pack(app.store, name, app.paths.root)


def tell(warnings: tuple[str, ...]) -> None:
    """Each on a line of its own on standard error."""
    for line in warnings:
        warn(line)


@click.command(name="add")
@click.argument("place", metavar="PATH|URL")
@click.option("--visibility", type=click.Choice(get_args(Visibility)), help="Who may see the pack.")
@click.option("--trust", metavar="KEY", help="Refuse an archive that this key has not signed.")
@click.option("--downgrade", is_flag=True, help="Take a lower version than the registered one.")
@click.option("--wait/--no-wait", default=True, help="Wait until all of it can be found.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def add(
    ctx: click.Context,
    place: str,
    visibility: Visibility | None,
    trust: str | None,
    downgrade: bool,
    wait: bool,
    as_json: bool,
) -> None:
    """Register a pack and take its docs in: a folder, a manifest's file, or an archive (.tar).

    `kb sync-all` keeps the docs of a folder current. An archive is verified as a whole before
    anything is written; its files come to lie in the home, and what is there of an older version
    is replaced. Its passages and vectors are used where this home would make the same. A pack that
    was signed once is replaced by its signer's only, and none by a lower version unasked.
    """
    app = open_app(ctx, create=False)
    found = app.packs.read(place, trust=trust)
    if not app.is_made:
        app = open_app(ctx, create=True)
    placed = app.packs.place(found, visibility=visibility, downgrade=downgrade)
    report = _taken_in(app, placed, visibility, wait=wait)
    shown = _added(placed, report.sources[0])
    if as_json:
        print_json(shown)
    else:
        click.echo(f"{clean(shown.pack_id)} is registered, with {many(shown.docs, 'doc')}")
        tell_line(shown.sync)
        tell(shown.warnings)
    judge(report)


def _taken_in(app: App, placed: Placed, visibility: Visibility | None, *, wait: bool) -> SyncReport:
    # What an archive leaves out is gone from it for good: a manifest that is whole says so.
    asked = SyncOptions(
        only=placed.origin_id,
        accept_deletions=placed.signed is not None,
        file_bytes_max=app.settings.ingest.file_bytes_max,
    )
    with app.parser() as parser, progress_bar() as progress, working(app, wait=wait) as pool:
        syncer = app.syncer(parser, asked, ready=placed.ready, revive=True, visibility=visibility)
        report = syncer.run()
        if pool is not None:
            drain(app, pool, progress)
    return report


def _added(placed: Placed, line: SourceLine) -> AddedPack:
    shown = _shown(placed.pack)
    warnings = shown.warnings
    key = placed.signed.archive.key if placed.signed else ""
    if placed.signed and not placed.signed.is_trusted:
        whose = f"signed by {key}, which is no trusted key" if key else "not signed"
        warnings = (f"the archive is {whose}", *warnings)
    fields = {name: getattr(shown, name) for name in ShownPack.__struct_fields__}
    return AddedPack(**{**fields, "warnings": warnings}, signed_by=key or None, sync=line)


@click.command(name="ls")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def ls(ctx: click.Context, as_json: bool) -> None:
    """List the packs that are registered."""
    with open_to_read(ctx).store.read() as txn:
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
    """Take a pack off the register, and its docs out; the files of a folder stay.

    Those that were unpacked from an archive go with the next `kb compact`.
    """
    app = open_app(ctx, create=False)
    record = register.unregister(app.store, name)
    asked = SyncOptions(only=origin_id("pack", record.pack_id))
    docs = 0
    # One that was registered before packs had docs is no source.
    with app.parser() as parser, contextlib.suppress(UnknownSource):
        docs = app.syncer(parser, asked).run().removed
    if as_json:
        print_json(RemovedPack(removed=record.pack_id, docs=docs))
    else:
        gone = f", and {many(docs, 'doc')} went with it" if docs else ""
        click.echo(f"{clean(record.pack_id)} is not registered any more{gone}")


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
        "title": shown.title,
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
        title=said.title,
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
