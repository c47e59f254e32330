"""Whether it lives: the two routes that ask for no token, and tell nothing of what is kept."""

import errno
from typing import Any, Final, Literal

from msgspec import Struct

from kb.errors import KbError, StoreBusy, StoreDamaged, StoreFull
from kb.serve.http_reply import RETRY_AFTER, Refusal, Reply, json_of
from kb.serve.http_routes import Caller, Route, Served

_NOT_READY: Final = "not ready: {}; the workers try again, and the server's log says more"
_FULL: Final = frozenset((errno.ENOSPC, errno.EDQUOT, errno.EFBIG))


class Readiness(Struct, frozen=True, kw_only=True):
    """That all is well."""

    status: Literal["ok"] = "ok"


class CacheReadiness(Readiness, frozen=True, kw_only=True):
    """That the store is read and the workers work, and how far the caches have come."""

    behind: int | None = None
    """Entries of the store's log that the caches here lack; the next search takes them up. Told
    to admins alone, since it counts what others write."""


def health_routes() -> tuple[Route, ...]:
    """Alive, and ready."""
    return (
        Route(
            method="GET",
            path="/health/live",
            role=None,
            summary="Whether it answers at all.",
            run=lambda *_: json_of(Readiness()),
            outputs=(Readiness,),
            waits=False,
        ),
        Route(
            method="GET",
            path="/health/ready",
            role=None,
            summary="Whether the store is read and the workers work.",
            run=_ready,
            outputs=(CacheReadiness, Readiness),
            waits=False,
            reads_store=True,
        ),
    )


def _ready(served: Served, _: Any, caller: Caller) -> Reply:
    behind = served.app.behind()
    trouble = served.trouble()
    if trouble is not None:
        detail = _NOT_READY.format(_why(trouble))
        raise Refusal(503, "unavailable", detail, headers=(RETRY_AFTER,))
    return json_of(CacheReadiness(behind=behind) if caller.role == "admin" else Readiness())


def _why(trouble: KbError | OSError) -> str:
    """What is wrong, without places and causes: anybody may ask."""
    if isinstance(trouble, StoreDamaged):
        return "the store is damaged"
    if isinstance(trouble, StoreBusy):
        return "the store is in use"
    if isinstance(trouble, StoreFull) or getattr(trouble, "errno", None) in _FULL:
        return "there is no space left"
    return "the disk or the store cannot be used"
