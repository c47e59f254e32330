"""Tokens: what a caller from outside shows, and what it may do then."""

from typing import Final, Literal

from msgspec import Struct

Role = Literal["reader", "writer", "admin"]
ROLES: Final[tuple[Role, ...]] = ("reader", "writer", "admin")
"""Each may do what the ones before it may."""


class Token(Struct, frozen=True, kw_only=True):
    """A token by its name. The secret itself is nowhere kept."""

    name: str
    user: str
    """Who asks with it: the owner whose private docs it sees."""
    role: Role
    sha256: str
    """Of the secret, as 64 hexadecimal digits."""
    added_ms: int


def role_allows(role: Role, required: Role) -> bool:
    """Whether a role is enough for what wants another."""
    return ROLES.index(role) >= ROLES.index(required)
