"""The state of pushes to the notebook's remote."""

from typing import Literal

from msgspec import Struct

PushState = Literal["pushed", "waiting", "diverged", "refused"]


class Push(Struct, frozen=True, kw_only=True):
    """The result of the last push of the notebook's branch."""

    remote: str
    """The remote's URL without a password."""
    branch: str
    """The full ref, such as `refs/heads/main`."""
    state: PushState
    """`waiting` is retried soon; `diverged` and `refused` need a person."""
    tried_commit: str
    """The branch's newest commit at that push."""
    pushed_commit: str | None = None
    """The newest commit that the remote is known to have; None before the first push."""
    remote_commit: str | None = None
    """The remote's own commit; only if `diverged`."""
    attempts: int = 0
    """Attempts since the last success."""
    tried_ms: int
    pushed_ms: int | None = None
    next_ms: int | None = None
    """When it is retried automatically; None if the remote is up to date."""
    last_error: str | None = None
