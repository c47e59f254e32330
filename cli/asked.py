"""Who answers: the homes here, the server that works in one of them, or one far away."""

import contextlib
import os
from typing import TYPE_CHECKING, Any

import click
import msgspec

from cli.home import homes_of, open_spaces, server_named, settings_of
from kb.home.spaces.homes import SpaceHome
from kb.model.asking import Found, SearchAsked
from kb.model.config import Settings
from kb.store.content.layout import HomePaths

if TYPE_CHECKING:
    from kb.client.wire import Wire
    from kb.home.spaces.reader import Reader


def server_of(ctx: click.Context) -> "Wire | None":
    """The server that is to be asked; None where it is the homes here.

    Raises UsageError for an address that cannot be one.
    """
    settings = settings_of(ctx, homes_of(ctx)[0].home)
    named = server_named(ctx, settings)
    if not named:
        return None
    return _wire(named, settings)


def own_server(ctx: click.Context, port: int | None) -> "Wire":
    """The server on this machine that the settings name, at another port where one is said."""
    settings = settings_of(ctx, homes_of(ctx)[0].home)
    host, port = settings.serve.host, settings.serve.port if port is None else port
    return _wire(f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}", settings)


def _wire(named: str, settings: Settings) -> "Wire":
    from kb.client.wire import Wire, server_at, with_own_token

    said = settings.client
    # The token that is set is for the server that is set, and for no other.
    own = said.token if named == said.server else ""
    token = os.environ.get("KB_TOKEN") or own
    server = server_at(named, token, is_insecure=said.insecure)
    return Wire(server if token else with_own_token(server), said.timeout_s)


def reader_of(ctx: click.Context) -> "Reader":
    """What answers a reading command; closed when the command ends."""
    wire = server_of(ctx)
    if wire is not None:
        from kb.client.reader import RemoteReader

        return RemoteReader(wire)
    from kb.home.spaces.reader import SpacesReader
    from kb.model.doc import OPERATOR

    return SpacesReader(open_spaces(ctx), OPERATOR)


def search(ctx: click.Context, asked: SearchAsked) -> tuple[Found, bool]:
    """What is found, and whether in several spaces.

    By the server that works in the home, where there is one: it has loaded already what a search
    needs. It is asked only where its answer is the one that would be found here.
    """
    found = _found_beside(ctx, asked)
    if found is not None:
        return found, False
    reader = reader_of(ctx)
    return reader.search(asked), reader.has_several


def _found_beside(ctx: click.Context, asked: SearchAsked) -> Found | None:
    said: dict[str, Any] = ctx.obj
    if said["server"] or said["verbose"]:
        return None
    one = _home_with_socket(ctx)
    if one is None:
        return None
    from kb.client.beside import found_beside
    from kb.model.config.fingerprint import search_fingerprint

    settings = settings_of(ctx, one.home)
    if server_named(ctx, settings):
        return None
    fingerprint = search_fingerprint(settings, one.home, one.name)
    asked = msgspec.structs.replace(asked, fingerprint=fingerprint)
    return found_beside(HomePaths(one.home).socket, asked)


def _home_with_socket(ctx: click.Context) -> SpaceHome | None:
    """The one home that is read, where it alone is and has a socket."""
    # Where nobody may look, the search itself says so.
    with contextlib.suppress(OSError):
        homes = [one for one in homes_of(ctx) if HomePaths(one.home).has_store]
        if len(homes) == 1 and HomePaths(homes[0].home).socket.exists():
            return homes[0]
    return None
