"""Whether it lives: the two routes that ask for no token, and tell nothing of what is kept."""

from typing import Any, Final, Literal

from msgspec import Struct

from kb.serve.http_reply import RETRY_AFTER, Refusal, Reply, json_of
from kb.serve.http_routes import Caller, Route, Served

_NOT_READY: Final = "not ready; the log of the server says why"


class Health(Struct, frozen=True, kw_only=True):
    """That all is well."""

    status: Literal["ok"] = "ok"


def health_routes() -> tuple[Route, ...]:
    """Alive, and ready."""
    return (
        Route(
            method="GET",
            path="/health/live",
            role=None,
            summary="Whether it answers at all.",
            run=lambda *_: json_of(Health()),
            outputs=(Health,),
            waits=False,
        ),
        Route(
            method="GET",
            path="/health/ready",
            role=None,
            summary="Whether the store is read and the workers work.",
            run=_ready,
            outputs=(Health,),
            waits=False,
        ),
    )


def _ready(served: Served, _: Any, caller: Caller) -> Reply:  # noqa: ARG001  nobody is told more
    with served.app.store.read() as txn:
        txn.count("docs")
    if not served.is_working():
        raise Refusal(503, "unavailable", _NOT_READY, headers=(RETRY_AFTER,))
    return json_of(Health())
