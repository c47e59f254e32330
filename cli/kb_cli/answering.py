"""Who answers: the homes here, the server that works in one of them, or one far away."""

import contextlib
import functools
import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click
from msgspec import Struct

from kb.home.opening import HomePaths, Settings
from kb.home.spaces.homes import SpaceHome
from kb_cli.home import homes_of, open_spaces, server_named, settings_of

if TYPE_CHECKING:
    from kb.client.http_client import ServerClient
    from kb.operations.operation import Operation


def server_of(ctx: click.Context) -> "ServerClient | None":
    """The server that is to be asked; None where it is the homes here.

    Raises UsageError for an address that cannot be one.
    """
    settings = settings_of(ctx, homes_of(ctx)[0].home)
    named = server_named(ctx, settings)
    if not named:
        return None
    return _wire(named, settings)


def own_server(ctx: click.Context, port: int | None) -> "ServerClient":
    """The server on this machine that the settings name, at another port where one is said."""
    settings = settings_of(ctx, homes_of(ctx)[0].home)
    host, port = settings.serve.host, settings.serve.port if port is None else port
    return _wire(f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}", settings)


def _wire(named: str, settings: Settings) -> "ServerClient":
    from kb.client.http_client import ServerClient, server_at, with_own_token

    client = settings.client
    # The token that is set is for the server that is set, and for no other.
    own = client.token if named == client.server else ""
    token = os.environ.get("KB_TOKEN") or own
    server = server_at(named, token, is_insecure=client.insecure)
    return ServerClient(server if token else with_own_token(server), client.timeout_s)


def answer(
    ctx: click.Context,
    operation: "Operation",
    request: Struct,
    *,
    by_socket: bool = False,
    **options: Any,
) -> "tuple[Any, bool]":
    """What an operation answers, and whether several spaces do: those here, or a server.

    With `by_socket` the server that works in the home answers where there is one: it has loaded
    already what a search needs. It is asked only where its answer is the one that would be given
    here. `options` are for what is asked here alone. Spaces are closed when the command ends.
    """
    if by_socket and (result := _by_socket(ctx, operation, request)) is not None:
        return result, False
    client = server_of(ctx)
    if client is not None:
        from kb.client.remote import run_remote

        return run_remote(client, operation, request), False
    spaces = open_spaces(ctx)
    return operation.run(spaces, request, spaces.caller, **options), len(spaces.homes) > 1


def asker(ctx: click.Context, operation: "Operation") -> Callable[[Any], Any]:
    """Asks an operation again and again, of the spaces here or of a server."""
    client = server_of(ctx)
    if client is not None:
        from kb.client.remote import run_remote

        return functools.partial(run_remote, client, operation)
    spaces = open_spaces(ctx)
    return lambda request: operation.run(spaces, request, spaces.caller)


def _by_socket(ctx: click.Context, operation: "Operation", request: Struct) -> Any:
    options: dict[str, Any] = ctx.obj
    if options["server"] or options["verbose"]:
        return None
    home = _home_with_socket(ctx)
    if home is None:
        return None
    from kb.client.local_socket import answer_by_socket
    from kb.home.opening import search_fingerprint

    settings = settings_of(ctx, home.home)
    if server_named(ctx, settings):
        return None
    fingerprint = search_fingerprint(settings, home.home, home.name)
    return answer_by_socket(HomePaths(home.home).socket, operation, request, fingerprint)


def _home_with_socket(ctx: click.Context) -> SpaceHome | None:
    """The one home that is read, where it alone is and has a socket."""
    # Where nobody may look, the search itself says so.
    with contextlib.suppress(OSError):
        homes = [home for home in homes_of(ctx) if HomePaths(home.home).may_have_store]
        if len(homes) == 1 and HomePaths(homes[0].home).socket.exists():
            return homes[0]
    return None
