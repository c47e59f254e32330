"""`kb token`: who may ask the server."""

import secrets
import sys

import click
from msgspec import Struct

from cli.answering import own_server
from cli.home import open_app, open_to_read
from cli.output import clean, print_json, warn
from cli.words import text
from kb.client.wire import Body
from kb.model.doc import LOCAL_USER
from kb.model.token import ROLES, Role
from kb.serve import tokens
from kb.store.trust.local_token import local_token


class ListedToken(Struct, frozen=True, kw_only=True):
    """A token as it is listed."""

    name: str
    user: str
    role: Role
    added_ms: int


class Link(Struct, frozen=True, kw_only=True):
    """What opens the page once."""

    path: str


class Tokens(Struct, frozen=True, kw_only=True):
    """Every token, by name."""

    tokens: list[ListedToken]


@click.group(name="token")
def command() -> None:
    """Say who may ask `kb serve`, and what."""


@command.command(name="add")
@click.argument("name", type=text)
@click.option(
    "--user",
    type=text,
    default=LOCAL_USER,
    show_default=True,
    metavar="U",
    help="Whose private docs it sees.",
)
@click.option(
    "--role", type=click.Choice(ROLES), default="reader", show_default=True, help="What it may do."
)
@click.pass_context
def add(ctx: click.Context, name: str, user: str, role: Role) -> None:
    """Make a token, and print it. It is shown this once."""
    store = open_app(ctx, create=True).store
    secret = tokens.add(store, name, user, role, secrets.token_bytes)
    click.echo(secret)
    if sys.stdout.isatty():
        warn("keep it well: it is not shown again")


@command.command(name="ls")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def show_all(ctx: click.Context, as_json: bool) -> None:
    """List the tokens that there are, without what they are."""
    with open_to_read(ctx).store.read() as txn:
        found = tokens.listed(txn)
    if as_json:
        rows = [
            ListedToken(name=one.name, user=one.user, role=one.role, added_ms=one.added_ms)
            for one in found
        ]
        print_json(Tokens(tokens=rows))
        return
    for one in found:
        click.echo(f"{click.style(one.name, fg='cyan')}  {one.role}  {clean(one.user)}")
    if not found:
        warn("no tokens; kb token add NAME makes one")


@command.command(name="own")
def own() -> None:
    """Print your own token, which every server that you start on this machine takes from you."""
    click.echo(local_token().read_or_create())


@command.command(name="link")
@click.option(
    "--port", type=click.IntRange(1, 65_535), help="Where it listens, instead of serve.port."
)
@click.pass_context
def link(ctx: click.Context, port: int | None) -> None:
    """Print a link that opens the page of your running server in a browser, once."""
    wire = own_server(ctx, port)
    click.echo(clean(wire.server.url + wire.post("/v1/links", Body(data=b"{}"), Link).path))


@command.command(name="rm")
@click.argument("name", type=text)
@click.pass_context
def remove(ctx: click.Context, name: str) -> None:
    """Forget a token: whoever shows it is refused from now on."""
    gone = tokens.remove(open_app(ctx, create=False).store, name)
    click.echo(f"{clean(gone.name)} is no token any more")
