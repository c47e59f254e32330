"""Jobs, which workers process under a lease, and entries of the change log."""

from typing import Literal

from msgspec import Struct

from kb.model.ids import DocId, JobId

JobKind = Literal["chunk", "embed", "reembed", "organize", "reread", "ocr"]
JobState = Literal["ready", "running", "done", "failed"]


class Job(Struct, frozen=True, kw_only=True):
    """One job. `token` is a fencing token: only the holder of the newest one may finish the job."""

    job_id: JobId
    order: int
    """Position among jobs of one priority; a job that lost its lease moves to the end."""
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
    """The process that claimed it last, so that others can tell whether it has died."""
    enqueued_ms: int


class Claim(Struct, frozen=True, kw_only=True):
    """A worker's claim on a job, valid while its token is the newest."""

    job: Job
    token: int
    lease_ms: int


class LogEntry(Struct, frozen=True, kw_only=True):
    """A change of chunks, which the caches must apply."""

    nos: tuple[int, ...]
    """Numbers of the chunks."""
    words: bool
    """Whether the lexical index must update them."""
    vectors: bool
    """Whether the dense index must update them."""
    nonce: int = 0
    """Random. It tells two entries that took one number from each other: of a store that lost its
    last commits, because a late replica took over or an older copy was put back. 0 of old."""
