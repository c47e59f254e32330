"""The job queue: all changes of a job's state, each inside the caller's transaction.

            (a) claim             (c) finish
    ready ───────────▶ running ───────────▶ done (the record goes)
      ▲  ▲   (d) fail, (e) expire │
      │  └────────────────────────┤ attempts left
      │ (f) retry                 │ (d) fail, (e) expire
      └──────────── failed ◀──────┘ none left

The token counts claims. Renew, finish and fail check it in their own transaction, so a worker that
has lost its lease changes nothing.
"""

# Long because every change of a job's state is here, and nowhere else.

import os
from collections.abc import Callable, Collection, Iterable, Iterator
from typing import Final, Literal

import msgspec
from msgspec import Struct

from kb.errors import StaleToken, StoreDamaged
from kb.model.clock import Clock
from kb.model.ids import DocId, JobId, job_id
from kb.model.job import Claim, Job, JobKind, JobState
from kb.store.codec import u64
from kb.store.keys import text_key
from kb.store.kv import ReadTxn, WriteTxn, prefix_stop
from kb.store.meta import expect_number, expect_words, get_word, next_number, set_word
from kb.store.records import JOBS, JOBS_DEDUPE, JOBS_FAILED, JOBS_READY, JOBS_RUNNING, JobRef

Event = Literal["claim", "finish", "fail", "expire", "retry"]

# (state, event) -> next state: with attempts left, with none left.
TRANSITIONS: Final[dict[tuple[JobState, Event], tuple[JobState, JobState]]] = {
    ("ready", "claim"): ("running", "running"),  # a
    ("running", "finish"): ("done", "done"),  # c
    ("running", "fail"): ("ready", "failed"),  # d
    ("running", "expire"): ("ready", "failed"),  # e
    ("failed", "retry"): ("ready", "ready"),  # f
}

_KINDS: Final[tuple[JobKind, ...]] = ("chunk", "organize", "embed", "reembed", "reread", "ocr")
PRIORITY: Final[dict[JobKind, int]] = dict(zip(_KINDS, (2, 3, 5, 7, 8, 9), strict=True))
# Reading a file takes long, and its lease is for one.
_ALONE: Final[frozenset[JobKind]] = frozenset(("reread", "ocr"))
LEASE_LOST: Final = "claim_token_expired"
_LISTS: Final = {records.name: records for records in (JOBS_READY, JOBS_RUNNING, JOBS_FAILED)}
_BACKOFF_FIRST_MS: Final = 2_000
_BACKOFF_MAX_MS: Final = 600_000
_ERROR_CHARS_MAX: Final = 500
_RANDOM_BYTES: Final = 5


class JobCounts(Struct, frozen=True, kw_only=True):
    """How many jobs are in each state."""

    ready: int
    running: int
    failed: int


def dedupe_key(kind: JobKind, doc_id: DocId, model: str = "") -> str:
    """The key of the logical work: two jobs with one key are never active at once."""
    return f"{kind}:{doc_id}:{model}" if model else f"{kind}:{doc_id}"


def enqueue(
    txn: WriteTxn, clock: Clock, kind: JobKind, doc_id: DocId, *, key: str, attempts_max: int = 5
) -> JobId:
    """Add a job, or return the id of the active one with the same dedupe key.

    A failed job with the key is replaced.
    """
    ref = JOBS_DEDUPE.get(txn, text_key(key))
    existing = get(txn, ref.job_id) if ref else None
    if existing is not None and existing.state in ("ready", "running"):
        return existing.job_id
    if existing is not None:
        _remove(txn, existing)
    job = Job(
        job_id=job_id(clock.now_ms(), os.urandom(_RANDOM_BYTES)),
        order=next_number(txn, "job"),
        kind=kind,
        doc_id=doc_id,
        dedupe_key=key,
        priority=PRIORITY[kind],
        state="ready",
        attempts=0,
        attempts_max=attempts_max,
        token=0,
        not_before_ms=0,
        deadline_ms=0,
        last_error=None,
        enqueued_ms=clock.now_ms(),
    )
    JOBS_DEDUPE.put(txn, text_key(key), JobRef(job_id=job.job_id))
    _put(txn, job)
    return job.job_id


def get(txn: ReadTxn, job: JobId) -> Job | None:
    """The job; None if it never existed or is done."""
    return JOBS.get(txn, job.encode())


def by_key(txn: ReadTxn, key: str) -> Job | None:
    """The ready, running or failed job with this dedupe key, or None."""
    ref = JOBS_DEDUPE.get(txn, text_key(key))
    return get(txn, ref.job_id) if ref else None


def claim(
    txn: WriteTxn,
    clock: Clock,
    kinds: Collection[JobKind],
    *,
    limit: int,
    lease_ms: int,
    holder: str = "",
) -> list[Claim]:
    """Claim up to `limit` due jobs of one kind, most urgent first, each under a new token.

    A job that may kill its worker is claimed alone; so is one for a file.
    """
    expect_boot(txn)
    _reset_after_reboot(txn, clock)
    chosen: list[Job] = []
    # Choose first, then claim: a table must not be written during a scan.
    for job in _due(txn, clock.lease_ms(), kinds, limit):
        if chosen and job.kind != chosen[0].kind:
            break
        if chosen and is_suspect(job):
            continue
        chosen.append(job)
        if is_suspect(job) or job.kind in _ALONE or len(chosen) >= limit:
            break
    txn.expect("jobs_ready", (_ready_key(job) for job in chosen))
    return [_claim_one(txn, clock, job, lease_ms, holder) for job in chosen]


def is_suspect(job: Job) -> bool:
    """Whether a job may kill its worker: it failed before, or whoever held it did not end it."""
    return job.last_error is not None


def _due(txn: ReadTxn, now_ms: int, kinds: Iterable[JobKind], limit: int) -> Iterator[Job]:
    """The first `limit` due jobs of each kind, the most urgent kind first."""
    for pairs in txn.scan_many("jobs_ready", _ranges(kinds), limit):
        # In the order of their keys, which begin with when they are due.
        refs = [JOBS_READY.decode(key, stored) for key, stored in pairs if _is_due(key, now_ms)]
        yield from _existing(txn, [ref.job_id for ref in refs])


def _is_due(key: bytes, now_ms: int) -> bool:
    return key[1:9] <= u64(now_ms)


def _ranges(kinds: Iterable[JobKind]) -> list[tuple[bytes, bytes | None]]:
    """Where the ready jobs of each kind lie, the most urgent kind first."""
    starts = sorted(bytes([PRIORITY[kind]]) for kind in kinds)
    return [(start, prefix_stop(start)) for start in starts]


def expect_boot(txn: ReadTxn) -> None:
    """Say that `claim` is asked next."""
    expect_words(txn, "boot")


def _claim_one(txn: WriteTxn, clock: Clock, job: Job, lease_ms: int, holder: str) -> Claim:
    claimed = _move(
        txn,
        job,
        "claim",
        attempts=job.attempts + 1,
        token=job.token + 1,
        deadline_ms=clock.lease_ms() + lease_ms,
        holder=holder,
    )
    return Claim(job=claimed, token=claimed.token, lease_ms=lease_ms)


def renew(txn: WriteTxn, clock: Clock, claim: Claim) -> None:
    """Extend the lease of a claimed job. Raises StaleToken if the lease was lost."""
    job = _require_held(txn, claim)
    _put(txn, msgspec.structs.replace(job, deadline_ms=clock.lease_ms() + claim.lease_ms))


def expect_claims(txn: ReadTxn, claims: Iterable[Claim]) -> None:
    """Say that these jobs are renewed, finished or given back next."""
    jobs = [claim.job for claim in claims]
    ids = [job.job_id.encode() for job in jobs]
    txn.expect("jobs", ids)
    txn.expect("jobs_running", ids)
    expect_keys(txn, (job.dedupe_key for job in jobs))
    expect_number(txn, "job")


def expect_keys(txn: ReadTxn, keys: Iterable[str]) -> None:
    """Say that jobs are asked for, or added, by these dedupe keys next."""
    txn.expect("jobs_dedupe", (text_key(key) for key in keys))


def is_held(txn: ReadTxn, claim: Claim) -> bool:
    """Whether a claim still holds its job."""
    job = get(txn, claim.job.job_id)
    return job is not None and job.state == "running" and job.token == claim.token


def finish(txn: WriteTxn, claim: Claim) -> None:
    """Remove a finished job, in the transaction that writes its result. Raises StaleToken."""
    _remove(txn, _require_held(txn, claim))


def fail(
    txn: WriteTxn, clock: Clock, claim: Claim, reason: str, *, permanent: bool = False
) -> JobState:
    """Return a job after an error, as "ready" (back-off) or "failed". Raises StaleToken."""
    job = _require_held(txn, claim)
    wait_ms = min(_BACKOFF_FIRST_MS * 4 ** (job.attempts - 1), _BACKOFF_MAX_MS)
    return _give_back(txn, job, "fail", reason, clock.lease_ms() + wait_ms, permanent=permanent)


def release(txn: WriteTxn, claim: Claim) -> None:
    """Return a job at shutdown; the attempt does not count. Raises StaleToken."""
    job = _require_held(txn, claim)
    _move(txn, job, "expire", attempts=job.attempts - 1, deadline_ms=0)


def reclaim(
    txn: WriteTxn, clock: Clock, is_gone: Callable[[str], bool] = lambda _: False
) -> list[JobId]:
    """Make jobs with an expired lease ready or failed again; returns their ids.

    `is_gone` tells whether a holder has died; then its leases end at once.
    """
    _reset_after_reboot(txn, clock)
    now_ms = clock.lease_ms()
    expired = [job for job in running(txn) if job.deadline_ms <= now_ms or is_gone(job.holder)]
    for job in expired:
        _give_back(txn, job, "expire", LEASE_LOST, 0)
    return [job.job_id for job in expired]


def retry_failed(txn: WriteTxn, only: str | None = None) -> int:
    """Make every failed job, or `only` one, ready again with all attempts; returns how many."""
    failed_jobs = [job for job in failed(txn) if only in (None, job.job_id)]
    failed_jobs.sort(key=lambda job: job.order)
    for job in failed_jobs:
        _move(txn, job, "retry", attempts=0, not_before_ms=0)
    return len(failed_jobs)


def of_doc(txn: ReadTxn, doc: DocId) -> Iterator[Job]:
    """The jobs, in any state, that must finish before searches find all of a doc."""
    refs = [JOBS_DEDUPE.get(txn, text_key(dedupe_key("chunk", doc)))]
    refs += [ref for _, ref in JOBS_DEDUPE.scan(txn, f"embed:{doc}:".encode())]
    yield from _existing(txn, [ref.job_id for ref in refs if ref])


def cancel(txn: WriteTxn, doc: DocId) -> int:
    """Remove every job of an obsolete doc, in any state; returns how many.

    The token of a worker that holds one becomes stale.
    """
    jobs = list(of_doc(txn, doc))
    for job in jobs:
        _remove(txn, job)
    return len(jobs)


def listing(job: Job) -> tuple[str, bytes]:
    """The table that lists jobs of this state, and the job's key in it."""
    match job.state:
        case "ready":
            return "jobs_ready", _ready_key(job)
        case "running":
            return "jobs_running", job.job_id.encode()
        case "failed":
            return "jobs_failed", job.job_id.encode()
        case "done":
            raise AssertionError("a done job has no record")


def relist(txn: WriteTxn) -> None:
    """Rebuild the lists and dedupe keys from the jobs; of two with one key the first stays.

    Damaged jobs are removed: the ledger entry of the doc says that its work is still pending.
    """
    for table in ("jobs_ready", "jobs_running", "jobs_failed", "jobs_dedupe"):
        for key in [key for key, _ in txn.scan(table)]:
            txn.delete(table, key)
    for key in [key for key, _ in txn.scan("jobs")]:
        try:
            job = JOBS.get(txn, key)
        except StoreDamaged:
            job = None
        if job is None or JOBS_DEDUPE.get(txn, text_key(job.dedupe_key)):
            JOBS.delete(txn, key)
            continue
        JOBS_DEDUPE.put(txn, text_key(job.dedupe_key), JobRef(job_id=job.job_id))
        _put(txn, job)


def failed(txn: ReadTxn) -> Iterator[Job]:
    """The failed jobs, each with its last error."""
    yield from _existing(txn, [ref.job_id for _, ref in JOBS_FAILED.scan(txn)])


def running(txn: ReadTxn) -> Iterator[Job]:
    """The running jobs; their holder may have died."""
    yield from _existing(txn, [ref.job_id for _, ref in JOBS_RUNNING.scan(txn)])


def counts(txn: ReadTxn) -> JobCounts:
    """How many jobs are in each state."""
    return JobCounts(
        ready=txn.count("jobs_ready"),
        running=txn.count("jobs_running"),
        failed=txn.count("jobs_failed"),
    )


def retrying(txn: ReadTxn) -> int:
    """How many jobs failed and wait for another attempt."""
    # The key contains `not_before_ms`, which only a failure sets.
    return sum(1 for key, _ in txn.scan("jobs_ready") if any(key[1:9]))


def expect_pending(txn: ReadTxn, *kinds: JobKind) -> None:
    """Say that the jobs of these kinds that are ready or running are read next."""
    for kind in kinds:
        JOBS_READY.expect_scan(txn, bytes([PRIORITY[kind]]))
    JOBS_RUNNING.expect_scan(txn)


def pending(txn: ReadTxn, kind: JobKind) -> Iterator[Job]:
    """The jobs of a kind that are ready or running."""
    start = bytes([PRIORITY[kind]])
    yield from _existing(txn, [ref.job_id for _, ref in JOBS_READY.scan(txn, start)])
    yield from (job for job in running(txn) if job.kind == kind)


def count_of_kind(txn: ReadTxn, kind: JobKind) -> int:
    """How many jobs of a kind are ready, running or failed."""
    return sum(1 for _ in JOBS_DEDUPE.scan(txn, f"{kind}:".encode()))


def due_in_ms(txn: ReadTxn, clock: Clock, kinds: Iterable[JobKind] = _KINDS) -> int | None:
    """Milliseconds until the next ready job of these kinds is due; None if there is none."""
    expect_boot(txn)
    firsts = [pair for pairs in txn.scan_many("jobs_ready", _ranges(kinds), 1) for pair in pairs]
    jobs = _existing(txn, [JOBS_READY.decode(key, stored).job_id for key, stored in firsts])
    return min((max(0, job.not_before_ms - clock.lease_ms()) for job in jobs), default=None)


def _existing(txn: ReadTxn, ids: Iterable[JobId]) -> Iterator[Job]:
    if isinstance(ids, list):
        txn.expect("jobs", (job.encode() for job in ids))
    yield from (row for job in ids if (row := get(txn, job)) is not None)


def _require_held(txn: ReadTxn, claim: Claim) -> Job:
    job = get(txn, claim.job.job_id)
    if job is None or job.state != "running" or job.token != claim.token:
        raise StaleToken(id=claim.job.job_id, token=claim.token)
    return job


def _give_back(
    txn: WriteTxn,
    job: Job,
    event: Event,
    reason: str,
    not_before_ms: int,
    *,
    permanent: bool = False,
) -> JobState:
    moved = _move(
        txn,
        job,
        event,
        spent=permanent or job.attempts >= job.attempts_max,
        last_error=reason[:_ERROR_CHARS_MAX],
        not_before_ms=not_before_ms,
        deadline_ms=0,
    )
    return moved.state


def _move(txn: WriteTxn, job: Job, event: Event, *, spent: bool = False, **changes: object) -> Job:
    state = TRANSITIONS[job.state, event][1 if spent else 0]
    if state == "ready":
        changes["order"] = next_number(txn, "job")
    moved = msgspec.structs.replace(job, state=state, **changes)
    _unlist(txn, job)
    _put(txn, moved)
    return moved


def _put(txn: WriteTxn, job: Job) -> None:
    JOBS.put(txn, job.job_id.encode(), job)
    table, key = listing(job)
    _LISTS[table].put(txn, key, JobRef(job_id=job.job_id))


def _unlist(txn: WriteTxn, job: Job) -> None:
    table, key = listing(job)
    _LISTS[table].delete(txn, key)


def _remove(txn: WriteTxn, job: Job) -> None:
    _unlist(txn, job)
    JOBS.delete(txn, job.job_id.encode())
    JOBS_DEDUPE.delete(txn, text_key(job.dedupe_key))


def _ready_key(job: Job) -> bytes:
    return bytes([job.priority]) + u64(job.not_before_ms) + u64(job.order)


def _reset_after_reboot(txn: WriteTxn, clock: Clock) -> None:
    # The lease clock restarts with the machine, so stored lease times are meaningless: every
    # holder is gone, and every back-off is over.
    if get_word(txn, "boot") == clock.boot_id():
        return
    set_word(txn, "boot", clock.boot_id())
    for job in list(running(txn)):
        _give_back(txn, job, "expire", LEASE_LOST, 0)
    waiting = [ref.job_id for _, ref in JOBS_READY.scan(txn)]
    for job in list(_existing(txn, waiting)):
        if job.not_before_ms:
            _unlist(txn, job)
            _put(txn, msgspec.structs.replace(job, not_before_ms=0))
