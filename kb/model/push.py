"""Pushes: how far the notebook's own remote has come."""

from typing import Literal

from msgspec import Struct

PushState = Literal["pushed", "waiting", "diverged", "refused"]


class Push(Struct, frozen=True, kw_only=True):
    """What the last try at pushing the notebook's branch came to."""

    remote: str
    """Where to, as a person would name it; without any password."""
    branch: str
    """In full, as `refs/heads/main`."""
    state: PushState
    """`waiting` is tried again soon; `diverged` and `refused` want a person."""
    tried_commit: str
    """The branch's newest commit at that try."""
    pushed_commit: str | None = None
    """The newest that the remote is known to have; None before the first."""
    remote_commit: str | None = None
    """Where the remote stands instead; only of `diverged`."""
    attempts: int = 0
    """Tries since it went well last."""
    tried_ms: int
    pushed_ms: int | None = None
    next_ms: int | None = None
    """When it is tried again by itself; None where it is level."""
    last_error: str | None = None
