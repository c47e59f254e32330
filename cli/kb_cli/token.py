"""`kb token`: who may ask the server."""

import sys

import click

from kb.client.http_client import Body
from kb.operations import tokens
from kb.operations.tokens import TOKEN_ROLES, USER_DEFAULT, AddTokenRequest, PageLink, TokenRole
from kb_cli.answering import own_server
from kb_cli.home import open_app, open_to_read
from kb_cli.output import clean, print_json, warn
from kb_cli.words import text


@click.group(name="token")
def command() -> None:
    """Say who may ask `kb serve`, and what."""


@command.command(name="add")
@click.argument("name", type=text)
@click.option(
    "--user",
    type=text,
    default=USER_DEFAULT,
    show_default=True,
    metavar="U",
    help="Whose private docs it sees.",
)
@click.option(
    "--role",
    type=click.Choice(TOKEN_ROLES),
    default="reader",
    show_default=True,
    help="What it may do.",
)
@click.pass_context
def add(ctx: click.Context, name: str, user: str, role: TokenRole) -> None:
    """Make a token, and print it. It is shown this once."""
    app = open_app(ctx, create=True)
    request = AddTokenRequest(name=name, user=user, role=role)
    click.echo(tokens.add_token(app, request))
    if sys.stdout.isatty():
        warn("keep it well: it is not shown again")


@command.command(name="ls")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.pass_context
def show_all(ctx: click.Context, as_json: bool) -> None:
    """List the tokens, without their secrets."""
    listed = tokens.list_tokens(open_to_read(ctx))
    if as_json:
        print_json(listed)
        return
    for token in listed.tokens:
        click.echo(f"{click.style(token.name, fg='cyan')}  {token.role}  {clean(token.user)}")
    if not listed.tokens:
        warn("no tokens; kb token add NAME makes one")


@command.command(name="own")
def own() -> None:
    """Print your own token, which every server that you start on this machine takes from you."""
    click.echo(tokens.local_token().read_or_create())


@command.command(name="link")
@click.option(
    "--port", type=click.IntRange(1, 65_535), help="Where it listens, instead of serve.port."
)
@click.pass_context
def link(ctx: click.Context, port: int | None) -> None:
    """Print a link that opens the page of your running server in a browser, once."""
    client = own_server(ctx, port)
    click.echo(clean(client.server.url + client.post("/v1/links", Body(data=b"{}"), PageLink).path))


@command.command(name="rm")
@click.argument("name", type=text)
@click.pass_context
def remove(ctx: click.Context, name: str) -> None:
    """Remove a token: requests that show it are refused from now on."""
    removed = tokens.remove_token(open_app(ctx, create=False), name)
    click.echo(f"{clean(removed)} is no token any more")
