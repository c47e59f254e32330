"""`kb sources`: the folders and pages that are kept current."""

import datetime as dt

import click
from msgspec import Struct

from cli.home import open_app, open_to_read
from cli.output import clean, print_json, warn
from kb.intake.sync.origins import listed, unregister
from kb.model.origin import Origin


class Sources(Struct, frozen=True, kw_only=True):
    """Every source that is kept current."""

    sources: list[Origin]


@click.group(name="sources", invoke_without_command=True)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def command(ctx: click.Context, as_json: bool) -> None:
    """List the folders and pages that `kb sync-all` keeps current."""
    if ctx.invoked_subcommand is not None:
        return
    app = open_to_read(ctx)
    with app.store.read() as txn:
        origins = listed(txn)
    if as_json:
        print_json(Sources(sources=origins))
        return
    for origin in origins:
        state = _state(origin)
        click.echo(f"{click.style(origin.origin_id[:9], fg='cyan')}  {clean(origin.location)}")
        click.echo(f"           {origin.kind}, {clean(state)}")
    if not origins:
        warn("no sources yet; kb add --recursive FOLDER and kb add URL register them")


@command.command(name="rm")
@click.argument("ident", metavar="ID|PLACE")
@click.pass_context
def remove(ctx: click.Context, ident: str) -> None:
    """Leave a source alone from now on; its docs stay."""
    app = open_app(ctx, create=False)
    origin = unregister(app.store, ident)
    click.echo(f"{clean(origin.location)} is not kept current any more; its docs stay")


def _state(origin: Origin) -> str:
    if origin.gone_since_ms:
        return f"gone since {_moment(origin.gone_since_ms)}"
    if origin.last_error:
        again = f"; next try {_moment(origin.next_try_ms)}" if origin.next_try_ms else ""
        return f"failed: {origin.last_error}{again}"
    return f"synced {_moment(origin.synced_ms)}" if origin.synced_ms else "never synced"


def _moment(at_ms: int) -> str:
    return dt.datetime.fromtimestamp(at_ms / 1000).astimezone().isoformat(" ", "minutes")
