"""Jobs of an open home: how each stands, and having those that failed tried again."""

from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from kb.home.app import App
    from kb.knowledge.notebook import JobReport
    from kb.store.jobs.queue import JobCounts

    JobInfo = JobReport
    """How it stands with one job."""


class JobList(Struct, frozen=True, kw_only=True):
    """Jobs that are not done, and the newest notes that are."""

    jobs: "list[JobInfo]"


def list_jobs(app: "App", limit: int) -> JobList:
    """The jobs that are not done, and the newest notes that are; at most `limit` together."""
    from kb.knowledge.notebook import reports

    with app.store.read() as txn:
        return JobList(jobs=reports(txn, limit))


def show_job(app: "App", ident: str) -> "JobInfo":
    """How it stands with a job. Raises NoJob; of jobs that are done only notes are known."""
    from kb.knowledge.notebook import report

    with app.store.read() as txn:
        return report(txn, ident)


def retry_job(app: "App", ident: str) -> "JobInfo":
    """Have a job that failed for good tried once more. Raises NoJob, UsageError, ReadOnlyHome."""
    from kb.knowledge.notebook import retry

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
