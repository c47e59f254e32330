"""`kb pack add`, `ls`, `rm` and `show`: which packs there are."""

from typing import TYPE_CHECKING, Final

import click

from kb.operations import pack_add, pack_registered
from kb.operations.pack_add import VISIBILITIES, Visibility
from kb.operations.work import workers_if
from kb_cli.home import open_app, open_spaces, open_to_read
from kb_cli.output import clean, many, print_json, warn
from kb_cli.sync_all import judge
from kb_cli.sync_all import tell as tell_source
from kb_cli.words import text
from kb_cli.work import drain, progress_bar

if TYPE_CHECKING:
    from kb.home.app import App
    from kb.operations.pack_add import RegisteredPack
    from kb.operations.pack_registered import OpenPack
    from kb.operations.sync import SyncResult


def opened(ctx: click.Context, name: str) -> "OpenPack":
    """The pack that a command names, of the first space that has it."""
    pack, warnings = pack_registered.open_pack(open_spaces(ctx), name)
    tell(warnings)
    return pack


def tell(warnings: tuple[str, ...]) -> None:
    """Each on a line of its own on standard error."""
    for line in warnings:
        warn(line)


@click.command(name="add")
@click.argument("place", metavar="PATH|URL")
@click.option(
    "--visibility",
    type=click.Choice(VISIBILITIES),
    help="Who may see the pack; public if nothing says otherwise.",
)
@click.option("--trust", metavar="KEY", help="Refuse an archive that this key has not signed.")
@click.option("--downgrade", is_flag=True, help="Take a lower version than the registered one.")
@click.option(
    "--wait/--no-wait",
    default=True,
    help="Wait until all of it can be found, or leave the work to kb worker.",
)
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
    pack = pack_add.read_pack(app, place, trust=trust)
    if not app.is_made:
        app = open_app(ctx, create=True)
    registered = pack_add.register(app, pack, visibility=visibility, downgrade=downgrade)
    report = _take_in(app, registered, visibility, wait=wait)
    result = pack_add.result_of(registered, report)
    if as_json:
        print_json(result)
    else:
        click.echo(f"{clean(result.pack_id)} is registered, with {many(result.docs, 'doc')}")
        tell_source(result.sync)
        tell(result.warnings)
    judge(report)


def _take_in(
    app: "App", registered: "RegisteredPack", visibility: Visibility | None, *, wait: bool
) -> "SyncResult":
    with progress_bar() as progress, workers_if(app, wanted=wait) as workers:
        report = pack_add.take_in(app, registered, visibility)
        if workers is not None:
            drain(workers, progress)
    return report


@click.command(name="ls")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def ls(ctx: click.Context, as_json: bool) -> None:
    """List the packs that are registered."""
    result = pack_registered.list_packs(open_to_read(ctx))
    if as_json:
        print_json(result)
        return
    for record in result.packs:
        parts = "  ".join(filter(None, (record.selector, record.version, record.visibility)))
        click.echo(f"{click.style(clean(record.pack_id), fg='cyan')}  {clean(parts)}")
        click.echo(f"  {clean(record.location)}")
    if not result.packs:
        warn("no packs yet; kb pack add registers them")


@click.command(name="rm")
@click.argument("name", metavar="PACK", type=text)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def rm(ctx: click.Context, name: str, as_json: bool) -> None:
    """Remove a pack and its docs; the files of a folder stay.

    Those that were unpacked from an archive go with the next `kb compact`.
    """
    result = pack_registered.remove_pack(open_app(ctx, create=False), name)
    if as_json:
        print_json(result)
    else:
        gone = f", and {many(result.docs, 'doc')} went with it" if result.docs else ""
        click.echo(f"{clean(result.removed)} is not registered any more{gone}")


@click.command(name="show")
@click.argument("name", metavar="PACK")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def show(ctx: click.Context, name: str, as_json: bool) -> None:
    """Show what a pack says of itself as a whole."""
    shown = pack_registered.describe(opened(ctx, name))
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


COMMANDS: Final = (add, ls, rm, show)
