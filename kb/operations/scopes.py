"""Who asks: the person at the machine, or a user by name."""

from kb.model.doc import OPERATOR, Scope


def scope_of(user: str | None = None) -> Scope:
    """The scope of a user; without a name that of the person at the machine."""
    return OPERATOR if user is None else Scope(user=user)
