"""Jobs of an open home: how each stands, and having those that failed tried again."""

from typing import TYPE_CHECKING, Final

from msgspec import Struct, structs

from kb.errors import NoJob

if TYPE_CHECKING:
    from kb.home.app import App
    from kb.knowledge.notebook import JobReport
    from kb.model.doc import Scope
    from kb.store.jobs.queue import JobCounts

    JobInfo = JobReport
    """How it stands with one job."""


_LISTED_MAX: Final = 10_000
_NOT_PLACED: Final = "the note could not be placed; ask the operator to look at the job"


class JobList(Struct, frozen=True, kw_only=True):
    """Jobs that are not done, and the newest notes that are."""

    jobs: "list[JobInfo]"


def list_jobs(app: "App", limit: int) -> JobList:
    """The jobs that are not done, and the newest notes that are; at most `limit` together.

    Only those of the caller's own notes, and of docs that they see.
    """
    from kb.knowledge.notebook import reports

    scope = app.caller
    with app.store.read() as txn:
        rows = reports(txn, limit if scope.operator else _LISTED_MAX)
    about = [row for row in rows if _is_about(app, row, scope)][-limit:]
    return JobList(jobs=[shown_job(app, row, scope) for row in about])


def show_job(app: "App", ident: str) -> "JobInfo":
    """How it stands with a job. Raises NoJob; of jobs that are done only notes are known.

    One that is neither of a note of the caller's own nor of a doc that they see is not there.
    """
    from kb.knowledge.notebook import report

    with app.store.read() as txn:
        job = report(txn, ident)
    if not _is_about(app, job, app.caller):
        raise NoJob(id=ident)
    return shown_job(app, job, app.caller)


def shown_job(app: "App", job: "JobInfo", scope: "Scope") -> "JobInfo":
    """A job as far as a scope may know: of what it does not see, no more than that it is there."""
    from kb.operations.notes import is_seen_at

    if scope.operator:
        return job
    is_seen = job.path is None or is_seen_at(app, job.path, scope)
    return structs.replace(
        job,
        subject=job.subject if _is_about(app, job, scope) else "",
        path=job.path if is_seen else None,
        commit=job.commit if is_seen else None,
        # Causes may quote anything.
        reason=_NOT_PLACED if job.reason is not None and job.status == "failed" else None,
    )


def _is_about(app: "App", job: "JobInfo", scope: "Scope") -> bool:
    """Whether a job is of a note that the scope handed in, or of a doc that it sees."""
    return scope.operator or is_own_note(job, scope) or is_seen_doc(app, job.subject, scope)


def is_own_note(job: "JobInfo", scope: "Scope") -> bool:
    """Whether a job places a note that the scope handed in."""
    from kb.model.doc import LOCAL_USER

    return job.kind == "organize" and scope.user == (job.owner or LOCAL_USER)


def is_seen_doc(app: "App", ident: str, scope: "Scope") -> bool:
    """Whether a scope sees the newest version of a doc."""
    from kb.model.ids import DocId
    from kb.store import docs

    with app.store.read() as txn:
        doc = docs.get(txn, DocId(ident))
        newest = docs.latest(txn, doc.source_no) if doc else None
    return newest is not None and newest.visible_to(scope)


def retry_job(app: "App", ident: str) -> "JobInfo":
    """Have a job that failed for good tried once more. Raises as `show_job`, and ReadOnlyHome.

    Raises UsageError for a job that has not failed.
    """
    from kb.knowledge.notebook import retry

    show_job(app, ident)
    with app.store.write() as txn:
        return retry(txn, ident)


def retry_failed(app: "App") -> int:
    """Have every job that failed for good tried once more; how many there were."""
    from kb.store.jobs import queue

    with app.store.write() as txn:
        return queue.retry_failed(txn)


def count_jobs(app: "App") -> "JobCounts":
    """How many jobs are ready, running and failed."""
    from kb.store.jobs import queue

    with app.store.read() as txn:
        return queue.counts(txn)


def jobs_left(app: "App") -> int:
    """How many jobs are still to do or in hand, such as a call that was cut short has left."""
    counts = count_jobs(app)
    return counts.ready + counts.running


def jobs_retrying(app: "App") -> int:
    """How many jobs failed and wait for another try."""
    from kb.store.jobs import queue

    with app.store.read() as txn:
        return queue.retrying(txn)
