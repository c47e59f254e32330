"""When is a push tried, and what does a try leave? Pure; the times are wall-clock milliseconds.

                 sent                        missed
    ┌──────────▶ pushed ◀──────────┬─────────────────────┐
    │              │ new commits   │ sent                │
    │ sent         ▼               │                     ▼
    │          (tried at once) ──▶ diverged, refused   waiting
    └──────────────┘               moved on, declined    tried again after 15 s to an hour

`diverged` and `refused` are looked at hourly; `diverged` after a commit of ours, too.
"""

from typing import Final, assert_never

from msgspec import Struct

from kb.intake.git.remote import Remote
from kb.knowledge.notebook.sending import (
    Outcome,
    PushAccepted,
    PushFailed,
    PushRejected,
    RemoteAhead,
)
from kb.model.push import Push, PushState

_FIRST_MS: Final = 15_000
_MOST_MS: Final = 3_600_000
_LOOK_MS: Final = 60_000
_MOVED_ON: Final = "the remote has commits that are not here; fetch and merge them with git"


class Target(Struct, frozen=True, kw_only=True):
    """The branch, commit and remote of a push."""

    shown: str
    """The remote's address for storage and messages."""
    remote: Remote | None
    """None if kb does not push to it; `problem` says why."""
    problem: str
    branch: str
    commit: str


def push_to(push: Push | None, target: Target) -> Push | None:
    """The stored state of this remote and branch; the state of others does not count."""
    if push is None or (push.remote, push.branch) != (target.shown, target.branch):
        return None
    return push


def is_due(push: Push | None, target: Target, now_ms: int) -> bool:
    """Whether a push is due. New commits do not hurry a remote that fails."""
    push = push_to(push, target)
    if push is None:
        return True
    if push.state == "pushed":
        return push.pushed_commit != target.commit
    # A clock that was set back must not delay it for as long.
    if push.next_ms is None or now_ms >= push.next_ms or now_ms < push.tried_ms - _MOST_MS:
        return True
    is_new = push.state == "diverged" and push.tried_commit != target.commit
    return is_new and now_ms - push.tried_ms >= _LOOK_MS


def after(last: Push | None, target: Target, outcome: Outcome, now_ms: int, share: float) -> Push:
    """The state after an attempt. `share`, from 0 to 1, shortens the wait by up to half."""
    last = push_to(last, target)
    attempts = last.attempts + 1 if last else 1
    pushed = last.pushed_commit if last else None
    pushed_ms = last.pushed_ms if last else None
    remote: str | None = None
    error: str | None = None
    next_ms: int | None = now_ms + _MOST_MS
    state: PushState
    match outcome:
        case PushAccepted():
            state, attempts, next_ms = "pushed", 0, None
            pushed, pushed_ms = target.commit, now_ms
        case RemoteAhead(commit=remote):
            state, error = "diverged", _MOVED_ON
        case PushRejected(detail=error):
            state = "refused"
        case PushFailed(detail=error):
            state, next_ms = "waiting", now_ms + wait_ms(attempts, share)
        case _:
            assert_never(outcome)
    return Push(
        remote=target.shown,
        branch=target.branch,
        state=state,
        tried_commit=target.commit,
        pushed_commit=pushed,
        remote_commit=remote,
        attempts=attempts,
        tried_ms=now_ms,
        pushed_ms=pushed_ms,
        next_ms=next_ms,
        last_error=error,
    )


def wait_ms(attempts: int, share: float) -> int:
    """How long to wait after so many failed attempts: doubled each time, up to an hour."""
    longest = min(_FIRST_MS << min(attempts - 1, 20), _MOST_MS)
    return longest - int(longest / 2 * share)
