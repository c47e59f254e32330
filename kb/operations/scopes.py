"""Who asks: the person at the machine, or a user by name."""

from typing import TYPE_CHECKING

from kb.errors import OwnerOnly
from kb.model.doc import Scope

if TYPE_CHECKING:
    from kb.home.app import App
    from kb.home.spaces.spaces import Spaces


def scope_of(spaces: "Spaces", user: str | None = None) -> Scope:
    """The scope of a user; without a name that of who opened the homes.

    Raises OwnerOnly where they may ask as nobody but themselves.
    """
    if user is None:
        return spaces.caller
    for home in spaces.homes:
        if user != home.caller.own_name:
            _check(home.caller, "asking as another user")
    return Scope(user=user)


def require_owner(app: "App", what: str) -> None:
    """Raise OwnerOnly where the home is in a database, and the caller does not own it."""
    _check(app.caller, what)


def _check(caller: Scope, what: str) -> None:
    if not caller.operator:
        raise OwnerOnly(what=what, role=caller.user)
