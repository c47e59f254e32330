"""Tokens, by which callers from outside ask the server: made, listed, taken away."""

from typing import TYPE_CHECKING, Final

from msgspec import Struct

from kb.model.doc import LOCAL_USER
from kb.model.token import ROLES, Role
from kb.operations.scopes import require_owner

if TYPE_CHECKING:
    from kb.home.app import App
    from kb.store.trust.local_token import LocalToken

TokenRole = Role
TOKEN_ROLES: Final = ROLES
"""Each may do what the ones before it may."""
USER_DEFAULT: Final = LOCAL_USER
_TOKENS: Final = "who may ask a server"


class AddTokenRequest(Struct, frozen=True, kw_only=True):
    """The token that is wanted."""

    name: str
    user: str = USER_DEFAULT
    """Whose private docs it sees."""
    role: TokenRole = "reader"


class ListedToken(Struct, frozen=True, kw_only=True):
    """A token as it is listed."""

    name: str
    user: str
    role: TokenRole
    added_ms: int


class TokenList(Struct, frozen=True, kw_only=True):
    """Every token, by name."""

    tokens: list[ListedToken]


class PageLink(Struct, frozen=True, kw_only=True):
    """A way into the page that opens once, within an hour."""

    path: str


def add_token(app: "App", request: AddTokenRequest) -> str:
    """Make a token, and return its secret, which cannot be had again.

    Raises UsageError for a name that is taken or cannot be one, for a user that cannot be one, and
    where there are too many already; OwnerOnly, as all that works with tokens.
    """
    import secrets

    from kb.store import tokens

    require_owner(app, _TOKENS)
    return tokens.add(app.store, request.name, request.user, request.role, secrets.token_bytes)


def list_tokens(app: "App") -> TokenList:
    """The tokens that there are, without their secrets."""
    from kb.store import tokens

    require_owner(app, _TOKENS)
    with app.store.read() as txn:
        rows = tokens.list_tokens(txn)
    return TokenList(
        tokens=[
            ListedToken(name=row.name, user=row.user, role=row.role, added_ms=row.added_ms)
            for row in rows
        ]
    )


def remove_token(app: "App", name: str) -> str:
    """Take a token away, from the next request on; its name. Raises UnknownToken."""
    from kb.store import tokens

    require_owner(app, _TOKENS)
    return tokens.remove(app.store, name).name


def local_token() -> "LocalToken":
    """The token of the person at this machine, which every server that they start takes."""
    from kb.store.trust import local_token as local

    return local.local_token()
