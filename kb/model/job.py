"""Jobs: durable work under a lease."""

from typing import Literal

from msgspec import Struct

from kb.model.ids import DocId, JobId

JobKind = Literal["chunk", "embed", "reembed", "organize"]
JobState = Literal["ready", "running", "done", "failed"]


class Job(Struct, frozen=True, kw_only=True):
    """One piece of work. `token` fences: only the holder of the newest one may finish it."""

    job_id: JobId
    order: int
    """Place among equals; a job that lost its lease takes a new one, at the end."""
    kind: JobKind
    doc_id: DocId
    dedupe_key: str
    priority: int
    """0 is served first, 9 last."""
    state: JobState
    attempts: int
    attempts_max: int
    token: int
    """Counts claims; 0 before the first."""
    not_before_ms: int
    """Lease clock; a ready job is not claimed before it."""
    deadline_ms: int
    """Lease clock; a running job past it may be reclaimed."""
    last_error: str | None
    holder: str = ""
    """Names the process that claimed it last, for whoever finds that it is gone."""
    enqueued_ms: int


class Claim(Struct, frozen=True, kw_only=True):
    """What a worker holds while it works."""

    job: Job
    token: int
    lease_ms: int


class LogEntry(Struct, frozen=True, kw_only=True):
    """A change: these passages must be looked at again by the caches that follow it."""

    nos: tuple[int, ...]
    words: bool
    """The lexical index must look."""
    vectors: bool
    """The dense index must look."""
