"""Signals: messages that an agent leaves for a person."""

from typing import Literal

from msgspec import Struct

SignalKind = Literal["stuck", "escalate", "checkpoint"]


class Signal(Struct, frozen=True, kw_only=True):
    """One signal, open until a person closes it."""

    signal_id: str
    kind: SignalKind
    reason: str
    context: str
    """More details: a text, or a JSON object as text."""
    added_ms: int
    user: str | None
    """Who left it, by the runtime's account; None for an anonymous caller."""
    backup: str | None = None
    """Of a checkpoint: the name of its backup."""
    done_ms: int | None = None
    """When it was closed."""
