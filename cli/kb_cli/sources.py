"""`kb sources`: the folders and pages that are kept current."""

import datetime as dt

import click

from kb.operations import sources
from kb.operations.sources import CurrentSource
from kb_cli.home import open_app, open_to_read
from kb_cli.output import clean, many, print_json, warn


@click.group(name="sources", invoke_without_command=True)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def command(ctx: click.Context, as_json: bool) -> None:
    """List the folders and pages that `kb sync-all` keeps current."""
    if ctx.invoked_subcommand is not None:
        return
    result = sources.list_sources(open_to_read(ctx))
    if as_json:
        print_json(result)
        return
    for source in result.sources:
        state = _state(source)
        click.echo(
            f"{click.style(source.origin_id[:9], fg='cyan')}  {clean(sources.place_of(source))}"
        )
        click.echo(f"           {source.kind}, {clean(state)}")
    if not result.sources:
        warn("no sources yet; kb add FOLDER and kb add URL register them")


@command.command(name="rm")
@click.argument("ident", metavar="ID|PLACE")
@click.pass_context
def remove(ctx: click.Context, ident: str) -> None:
    """Stop keeping a source current; its docs stay."""
    source = sources.remove_source(open_app(ctx, create=False), ident)
    click.echo(f"{clean(sources.place_of(source))} is not kept current any more; its docs stay")


def _state(source: CurrentSource) -> str:
    if source.gone_since_ms:
        return f"gone since {_moment(source.gone_since_ms)}"
    if source.last_error:
        again = f"; next try {_moment(source.next_try_ms)}" if source.next_try_ms else ""
        return f"failed: {source.last_error}{again}"
    state = f"synced {_moment(source.synced_ms)}" if source.synced_ms else "never synced"
    if source.files_failed:
        noun = "page" if source.kind in ("site", "feed") else "file"
        state += f"; {many(source.files_failed, noun)} could not be taken in"
    return state


def _moment(at_ms: int) -> str:
    return dt.datetime.fromtimestamp(at_ms / 1000).astimezone().isoformat(" ", "minutes")
