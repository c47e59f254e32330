"""How it stands with jobs and docs of an open home, told as it changes."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, TypeAlias

import msgspec
from msgspec import Struct

from kb.errors import NoJob, NotFound
from kb.model.doc import LedgerState, Scope
from kb.model.ids import DocId
from kb.search.resolve import resolve_doc
from kb.store.jobs import queue
from kb.store.kv import ReadTxn
from kb.store.records import LEDGER

if TYPE_CHECKING:
    from kb.home.app import App
    from kb.operations.jobs import JobInfo


class EventsRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is to be told of; with no id the queue."""

    job: tuple[str, ...] = ()
    doc: tuple[str, ...] = ()


class DocState(Struct, frozen=True, kw_only=True):
    """How far a doc has come."""

    doc_id: DocId
    state: LedgerState | Literal["failed", "gone"]
    """Of its newest version: `failed` where the work on it ended for good, `gone` where the caller
    does not see it any more."""
    indexed: bool
    """Whether searches find all of it."""


class QueueState(Struct, frozen=True, kw_only=True):
    """How much there is, and is to do."""

    ready: int
    running: int
    failed: int
    docs: int
    passages: int


Event: TypeAlias = "JobInfo | DocState | QueueState"
"""How one thing that is followed stands."""


class Following:
    """What the person at the machine follows in an open home."""

    def __init__(self, opened: "Callable[[], App]", request: EventsRequest, scope: Scope) -> None:
        """Raises NoJob, NotFound and AmbiguousId for what is not there."""
        self._opened = opened
        self._scope = scope
        self._jobs: dict[str, JobInfo | None] = dict.fromkeys(request.job)
        with opened().store.read() as txn:
            docs = {resolve_doc(txn, ident, scope).doc_id for ident in request.doc}
        self._docs = tuple(sorted(docs))
        self._before: tuple[Event, ...] = ()
        self.is_over = False
        """Whether all of it has come to its end; the queue never has."""
        self._last_txn = -1
        for ident in self._jobs:
            self._job(opened(), ident)

    def changes(self) -> list[Event]:
        """What stands otherwise than at the last call; at the first one everything."""
        app = self._opened()
        # Before it is read, so that no commit is missed.
        last_txn = app.store.last_txn()
        if last_txn == self._last_txn:
            return []
        self._last_txn = last_txn
        with app.store.read() as txn:
            docs = tuple(doc_state(txn, ident, self._scope) for ident in self._docs)
            of_queue = queue_state(txn)
        jobs = tuple(self._job(app, ident) for ident in self._jobs)
        now: tuple[Event, ...] = (*jobs, *docs) or (of_queue,)
        if jobs or docs:
            are_done = all(job.status in ("done", "failed") for job in jobs)
            self.is_over = are_done and all(doc.state != "pending" for doc in docs)
        before, self._before = self._before, now
        return [event for event in now if event not in before]

    def _job(self, app: "App", ident: str) -> "JobInfo":
        from kb.operations.jobs import show_job

        try:
            job = show_job(app, ident)
        except NoJob:
            earlier = self._jobs[ident]
            if earlier is None:
                raise
            # Those of docs are forgotten when they are done.
            job = msgspec.structs.replace(earlier, status="done")
        self._jobs[ident] = job
        return job


def queue_state(txn: ReadTxn) -> QueueState:
    """How much there is, and is to do."""
    counts = queue.counts(txn)
    return QueueState(
        ready=counts.ready,
        running=counts.running,
        failed=counts.failed,
        docs=txn.count("versions"),
        passages=txn.count("chunks"),
    )


def doc_state(txn: ReadTxn, ident: DocId, scope: Scope) -> DocState:
    """How far the newest version of a doc has come, by its whole id."""
    state = _state(txn, ident, scope)
    return DocState(doc_id=ident, state=state, indexed=state not in ("pending", "failed", "gone"))


def _state(txn: ReadTxn, ident: DocId, scope: Scope) -> LedgerState | Literal["failed", "gone"]:
    try:
        newest = resolve_doc(txn, ident, scope)
    except NotFound:
        return "gone"
    entry = LEDGER.get(txn, newest.doc_id.encode())
    if entry is None:
        return "done"
    has_failed = any(job.state == "failed" for job in queue.of_doc(txn, newest.doc_id))
    return "failed" if entry.state == "pending" and has_failed else entry.state
