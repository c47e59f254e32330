"""`/v1/events`: how it stands with jobs and docs, told as it changes."""

import asyncio
from collections.abc import AsyncGenerator
from typing import Annotated, Final

import msgspec
from msgspec import Meta, Struct

from kb.errors import NoJob
from kb.model.ids import DocId
from kb.model.token import Role, role_allows
from kb.operations.events import DocState, EventsRequest, QueueState, doc_state, queue_state
from kb.search.resolve import resolve_doc, resolve_unchecked
from kb.serve.http_content import JobStatus, job_status
from kb.serve.http_reply import EVENTS, Refusal, Reply
from kb.serve.http_routes import Caller, Route, Served
from kb.store.kv import ReadTxn

_IDS_MAX: Final = 64
_BEAT_S: Final = 15.0
# For proxies that would keep an answer until it is long enough.
_UNBUFFERED: Final = ("x-accel-buffering", "no")

Idents = Annotated[
    tuple[Annotated[str, Meta(min_length=1, max_length=64)], ...], Meta(max_length=_IDS_MAX)
]


class EventsQuery(EventsRequest, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is to be told of; with no id the queue."""

    job: Idents = ()
    doc: Idents = ()

    def __post_init__(self) -> None:
        """Raise ValueError for too many ids."""
        if len(self.job) + len(self.doc) > _IDS_MAX:
            raise ValueError(f"field `doc`: at most {_IDS_MAX} ids together")


class _StatusEvent(Struct, frozen=True, kw_only=True):
    """The status of one job, doc or the queue, as it is now."""

    event: str
    ident: str
    status: JobStatus | DocState | QueueState
    is_over: bool


def events_route() -> Route:
    """The stream of events."""
    return Route(
        method="GET",
        path="/v1/events",
        role="reader",
        summary="Tell of jobs and docs until they have come to their end, or of the queue.",
        run=_events,
        input=EventsQuery,
        media=EVENTS,
    )


def _events(served: Served, request: EventsQuery, caller: Caller) -> Reply:
    role: Role = "writer" if request.job else "reader" if request.doc else "admin"
    if not role_allows(caller.role, role):
        raise Refusal(403, "forbidden", f"this needs a token with the role {role}")
    with served.app.store.read() as txn:
        for ident in request.doc:
            resolve_doc(txn, ident, caller.scope)
        docs = {DocId(resolve_unchecked(txn, ident, caller.scope).doc_id) for ident in request.doc}
    watching = Watching(served, caller, request.job, tuple(sorted(docs)))
    watching.look()
    limit_s = served.app.settings.serve.stream_s
    return Reply(
        stream=lambda: watching.pieces(limit_s, _BEAT_S), media=EVENTS, headers=(_UNBUFFERED,)
    )


class Watching:
    """What one caller asked to be told of."""

    def __init__(
        self, served: Served, caller: Caller, jobs: tuple[str, ...], docs: tuple[DocId, ...]
    ) -> None:
        self._served = served
        self._caller = caller
        self._jobs = tuple(dict.fromkeys(jobs))
        self._docs = docs
        self._last_status: dict[str, JobStatus] = {}

    async def pieces(self, limit_s: float, beat_s: float) -> AsyncGenerator[bytes, None]:
        """Events, each when it is new, and the last when all is over; a sign of life between.

        It ends without a last event after `limit_s`, and when the caller is not let in any more.
        """
        changes = self._served.changes
        loop = asyncio.get_running_loop()
        end_s = loop.time() + limit_s
        before: dict[str, _StatusEvent] = {}
        while self._caller.holds():
            revision = await changes.last()
            now = {event.ident: event for event in await changes.read(self.look)}
            for ident, event in now.items():
                if before.get(ident) != event:
                    yield _event(event.event, event.status)
            if all(event.is_over for event in now.values()):
                yield _event("done", {})
                return
            before = now
            while not await changes.after(revision, min(beat_s, max(0.0, end_s - loop.time()))):
                if loop.time() >= end_s:
                    return
                yield b": at work\n\n"

    def look(self) -> list[_StatusEvent]:
        """All of it as it is now. Raises NoJob for a job that never was, to this caller."""
        with self._served.app.store.read() as txn:
            if not self._jobs and not self._docs:
                return [
                    _StatusEvent(event="queue", ident="", status=queue_state(txn), is_over=False)
                ]
            docs = [self._doc(txn, ident) for ident in self._docs]
        return [*(self._job(ident) for ident in self._jobs), *docs]

    def _job(self, ident: str) -> _StatusEvent:
        try:
            status = job_status(self._served, ident, self._caller)
        except NoJob:
            if ident not in self._last_status:
                raise
            # Those of docs are forgotten when they are done.
            status = msgspec.structs.replace(self._last_status[ident], status="done")
        self._last_status[ident] = status
        is_over = status.status in ("done", "failed")
        return _StatusEvent(event="job", ident=ident, status=status, is_over=is_over)

    def _doc(self, txn: ReadTxn, ident: DocId) -> _StatusEvent:
        status = doc_state(txn, ident, self._caller.scope)
        is_over = status.state != "pending"
        return _StatusEvent(event="doc", ident=ident, status=status, is_over=is_over)


def _event(name: str, record: object) -> bytes:
    return f"event: {name}\ndata: ".encode() + msgspec.json.encode(record) + b"\n\n"
