"""Access tokens of remote callers, and the roles that they grant."""

from typing import Final, Literal

from msgspec import Struct

Role = Literal["reader", "writer", "admin"]
ROLES: Final[tuple[Role, ...]] = ("reader", "writer", "admin")
"""In ascending order: each role includes the ones before it."""


class Token(Struct, frozen=True, kw_only=True):
    """An access token. The secret itself is not stored."""

    name: str
    user: str
    """Its user, whose private docs it may read."""
    role: Role
    sha256: str
    """Of the secret, as 64 hexadecimal digits."""
    added_ms: int


def role_allows(role: Role, required: Role) -> bool:
    """Whether a role includes the required one."""
    return ROLES.index(role) >= ROLES.index(required)
