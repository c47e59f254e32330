"""`kb trust`: say which homes count that this user's kb did not make."""

import sys
from pathlib import Path

import click

from kb.errors import HeldBack, NotFound, UsageError
from kb.operations import trust
from kb_cli.home import here
from kb_cli.output import clean, print_json, warn
from kb_cli.trust_prompt import what_it_says


class NotTrusted(NotFound):
    """There is no such home, or none on the list."""

    template = "{id}; `kb trust --list` shows what is on the list"


@click.command(name="trust")
@click.argument("folder", metavar="[DIR]", type=click.Path(), required=False)
@click.option(
    "--list",
    "listing",
    is_flag=True,
    help="List the homes that count: those that your kb made or you accepted.",
)
@click.option("--remove", is_flag=True, help="Take DIR off the list.")
@click.option("-y", "--yes", is_flag=True, help="Ask nothing.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def command(
    ctx: click.Context, folder: str | None, listing: bool, remove: bool, yes: bool, as_json: bool
) -> None:
    """Let the home in DIR count: its store, and all that its settings say as they are now.

    kb opens no store that it did not make for you, and of a project's settings takes what is
    harmless. What DIR would be allowed is shown first, and asked about on a terminal.
    """
    if listing != (folder is None) or (listing and remove):
        raise UsageError("give DIR, or --list")
    if as_json and not listing:
        raise UsageError("--json goes with --list")
    if ctx.obj["home"] is not None or ctx.obj["space"] is not None:
        raise UsageError("kb trust takes the folder as DIR; leave out --home and --space")
    if folder is None:
        _list(as_json=as_json)
        return
    home = trust.home_in(here() / Path(folder).expanduser())
    if remove:
        if not trust.distrust(home):
            raise NotTrusted(id=f"{home} is not on the list")
        click.echo(clean(f"{home} counts no more"))
        return
    _trust(home, ask=not yes and sys.stdin.isatty())


def _list(*, as_json: bool) -> None:
    trusted = trust.list_trusted()
    if as_json:
        print_json(trusted)
        return
    for home in trusted.homes:
        click.echo(clean(f"{home.how}  {home.home}"))
    if not trusted.homes:
        warn("no home is on the list yet")


def _trust(home: Path, *, ask: bool) -> None:
    link = trust.escaping_link(home)
    if link is not None:
        raise HeldBack(f"kb cannot trust this folder: {link}")
    if not home.is_dir():
        raise NotTrusted(id=f"{home} is not a folder")
    click.echo(clean(str(home)))
    settings = trust.settings_in(home)
    for line in what_it_says(home, settings):
        click.echo(clean(f"  {line}"))
    if ask and not click.confirm("Let all of this count?", err=True):
        raise HeldBack("nothing was changed")
    trust.trust(home, settings)
    click.echo("it counts from now on")
