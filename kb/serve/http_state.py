"""How it stands with the server's own home: sources, jobs and counts, for admins."""

from typing import Annotated, Any, Final

from msgspec import Meta, Struct, structs

from kb.errors import NotFound
from kb.home.stats import Stats, counted, without_names
from kb.intake.sync.origins import is_seen, list_origins
from kb.knowledge.notebook import JobReport, reports
from kb.knowledge.notebook.repository import Logged
from kb.model.doc import Scope
from kb.model.ids import DocId
from kb.model.note import NoteStatus
from kb.model.origin import Origin
from kb.model.standing import Standing, StandingsRequest
from kb.model.token import Role
from kb.operations.events import queue_state
from kb.operations.jobs import shown_job
from kb.operations.notes import list_commits
from kb.search.resolve import resolve_doc
from kb.serve.http_content import JobQuery, job_report
from kb.serve.http_reply import Reply, json_of
from kb.serve.http_routes import Caller, Route, Served
from kb.store.jobs import queue
from kb.store.kv import ReadTxn
from kb.store.records import LEDGER

_ROWS_MAX: Final = 1_000

Limit = Annotated[int, Meta(ge=1, le=_ROWS_MAX, description="How many are wanted.")]


class ListInput(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How many rows are wanted."""

    limit: Limit = 50


class JobsInput(ListInput, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which jobs are wanted."""

    state: Annotated[NoteStatus | None, Meta(description="Only those that stand so.")] = None


class LogRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How many of the notebook's commits are wanted."""

    limit: Annotated[int, Meta(ge=1, le=10_000)] = 50


class Sources(Struct, frozen=True, kw_only=True):
    """What is kept current, and how many such there are in all."""

    sources: tuple[Origin, ...]
    total: int


class Jobs(Struct, frozen=True, kw_only=True):
    """Jobs that are not done, and the newest notes that are."""

    jobs: tuple[JobReport, ...]


class Me(Struct, frozen=True, kw_only=True):
    """Who asks, as the server knows them."""

    user: str | None
    """None for somebody without a token."""
    role: Role


# Long because it is a list of routes, which are data.
def state_routes() -> tuple[Route, ...]:
    """What is kept current, what is to do, and how much there is."""
    return (
        Route(
            method="GET",
            path="/v1/sources",
            role="admin",
            summary="List what is kept current.",
            run=_sources,
            input=ListInput,
            outputs=(Sources,),
        ),
        Route(
            method="GET",
            path="/v1/stats",
            role="admin",
            summary="Count what there is.",
            run=_stats,
            outputs=(Stats,),
        ),
        Route(
            method="GET",
            path="/v1/jobs",
            role="admin",
            summary="List jobs that are not done, and notes that are.",
            run=_jobs,
            input=JobsInput,
            outputs=(Jobs,),
        ),
        Route(
            method="GET",
            path="/v1/jobs/{id}",
            role="writer",
            summary="Say how it stands with a job, with all that is kept of it.",
            run=_job,
            input=JobQuery,
            outputs=(JobReport,),
        ),
        Route(
            method="GET",
            path="/v1/notes/log",
            role="admin",
            summary="List what was done in the notebook, the newest first.",
            run=_log,
            input=LogRequest,
            outputs=(tuple[Logged, ...],),
        ),
        Route(
            method="POST",
            path="/v1/standings",
            role="reader",
            summary="Say how far the work on docs has come.",
            run=_standings,
            input=StandingsRequest,
            outputs=(tuple[Standing, ...],),
        ),
        Route(
            method="GET",
            path="/v1/me",
            role="reader",
            summary="Say who asks, and what their token allows.",
            run=_me,
            outputs=(Me,),
        ),
        Route(
            method="GET",
            path="/metrics",
            role="admin",
            summary="The state in numbers, as Prometheus reads it.",
            run=_metrics,
        ),
    )


def _sources(served: Served, request: ListInput, caller: Caller) -> Reply:
    with served.app.store.read() as txn:
        origins_seen = [origin for origin in list_origins(txn) if is_seen(origin, caller.scope)]
    return json_of(Sources(sources=tuple(origins_seen[: request.limit]), total=len(origins_seen)))


def _jobs(served: Served, request: JobsInput, caller: Caller) -> Reply:
    with served.app.store.read() as txn:
        jobs = reports(txn, request.limit, request.state)
    return json_of(Jobs(jobs=tuple(shown_job(served.app, job, caller.scope) for job in jobs)))


def _job(served: Served, request: JobQuery, caller: Caller) -> Reply:
    return json_of(job_report(served, request.id, caller))


def _standings(served: Served, request: StandingsRequest, caller: Caller) -> Reply:
    with served.app.store.read() as txn:
        rows = tuple(_standing(txn, ident, caller.scope) for ident in request.doc_ids)
    return json_of(rows)


def _standing(txn: ReadTxn, ident: DocId, scope: Scope) -> Standing:
    """Of a doc that the scope does not see any more there is nothing to wait for."""
    try:
        newest = resolve_doc(txn, ident, scope)
    except NotFound:
        return Standing(doc_id=ident, state="done")
    entry = LEDGER.get(txn, newest.doc_id.encode())
    if entry is None or entry.state != "pending":
        return Standing(doc_id=ident, state="done")
    failed = [job for job in queue.of_doc(txn, newest.doc_id) if job.state == "failed"]
    if not failed:
        return Standing(doc_id=ident, state="pending")
    reason = (failed[0].last_error or "unknown") if scope.operator else None
    return Standing(doc_id=ident, state="failed", reason=reason)


def _log(served: Served, request: LogRequest, caller: Caller) -> Reply:
    return json_of(tuple(list_commits(served.app, request.limit, caller.scope)))


def _stats(served: Served, _: Any, caller: Caller) -> Reply:
    stats = counted(served.app)
    if not caller.scope.operator:
        # Where the home lies, and what it is pushed to, is for whoever is there.
        stats = structs.replace(without_names(stats), home="")
    return json_of(stats)


def _me(served: Served, _: Any, caller: Caller) -> Reply:  # noqa: ARG001  the caller is the answer
    return json_of(Me(user=caller.scope.user, role=caller.role))


def _metrics(served: Served, _: Any, caller: Caller) -> Reply:  # noqa: ARG001  the role is enough
    with served.app.store.read() as txn:
        counts = queue_state(txn)
    rows = {"docs": counts.docs, "passages": counts.passages}
    lines = ["# TYPE kb_jobs gauge"]
    states = (("ready", counts.ready), ("running", counts.running), ("failed", counts.failed))
    lines += [f'kb_jobs{{state="{state}"}} {count}' for state, count in states]
    for name, count in rows.items():
        lines += [f"# TYPE kb_{name} gauge", f"kb_{name} {count}"]
    lines += ["# TYPE kb_worker_up gauge", f"kb_worker_up {int(served.trouble() is None)}"]
    text = served.counters() + "\n".join(lines) + "\n"
    return Reply(body=text.encode(), media="text/plain; version=0.0.4; charset=utf-8")
