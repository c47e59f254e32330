"""Notes in the store: queued as jobs, and their reports."""

from collections.abc import Sequence
from itertools import chain
from typing import Final

import msgspec
from msgspec import Struct

from kb.errors import NoJob, UsageError
from kb.model.clock import Clock
from kb.model.ids import DocId, JobId, sha256_hex
from kb.model.job import Job, JobKind, JobState
from kb.model.note import NOTE_BYTES_MAX, Note, NoteStatus, NoteText
from kb.store.jobs import queue
from kb.store.kv import ReadTxn, WriteTxn
from kb.store.records import JOBS, NOTE_TEXTS, NOTES

_HINT_CHARS_MAX: Final = 1_000
_TAG_CHARS_MAX: Final = 100
_TAGS_MAX: Final = 32
# Waiting for a person's git also counts as an attempt.
_ATTEMPTS_MAX: Final = 8
_ID_HEX: Final = 20
_STATUS: Final[dict[JobState, NoteStatus]] = {
    "ready": "queued",
    "running": "processing",
    "failed": "failed",
    "done": "done",
}


class JobReport(Struct, frozen=True, kw_only=True):
    """A job of any kind; what stands behind `added_ms` is of notes."""

    job_id: JobId
    kind: JobKind
    status: NoteStatus
    subject: str
    """The id of the doc or the note that it is about."""
    attempts: int
    added_ms: int
    path: str | None = None
    commit: str | None = None
    reason: str | None = None
    """The error of the last attempt; for a placed note, a remark on it."""
    owner: str | None = None
    """For a note from a remote user: who added it."""


def checked_text(data: bytes) -> str:
    """The text of a note, ending in a newline. Raises UsageError, which names the fault."""
    if len(data) > NOTE_BYTES_MAX:
        raise UsageError(f"the note is over {NOTE_BYTES_MAX:,} bytes; `kb add` takes long texts")
    if b"\0" in data:
        raise UsageError("the note has NUL bytes; is it text?")
    try:
        text = data.decode("utf-8").removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise UsageError(f"the note is not UTF-8, from byte {error.start} on") from error
    if not text.strip():
        raise UsageError("the note is empty")
    return text if text.endswith("\n") else text + "\n"


def hand_in(
    txn: WriteTxn,
    clock: Clock,
    text: str,
    hint: str | None = None,
    tags: Sequence[str] = (),
    *,
    owner: str | None = None,
) -> JobId:
    """Queue a note; the same note of the same owner, while it waits, is the same job.

    `text` is checked already; without an owner the note belongs to the person at the machine.
    Raises UsageError for a hint or a tag that is not valid.
    """
    unique_tags = tuple(dict.fromkeys(tags))
    _check(hint, unique_tags)
    identity = msgspec.json.encode(
        [text, hint, unique_tags] if owner is None else [text, hint, unique_tags, owner]
    )
    subject = DocId(f"n{sha256_hex(identity)[:_ID_HEX]}")
    key = queue.dedupe_key("organize", subject)
    earlier = queue.by_key(txn, key)
    job = queue.enqueue(txn, clock, "organize", subject, key=key, attempts_max=_ATTEMPTS_MAX)
    if earlier is not None and earlier.job_id != job:
        # It had failed for good, and is now requested again.
        NOTES.delete(txn, earlier.job_id.encode())
        NOTE_TEXTS.delete(txn, earlier.job_id.encode())
    if NOTES.get(txn, job.encode()) is None:
        note = Note(job_id=job, hint=hint, tags=unique_tags, added_ms=clock.now_ms(), owner=owner)
        NOTES.put(txn, job.encode(), note)
        NOTE_TEXTS.put(txn, job.encode(), NoteText(text=text))
    return job


def get(txn: ReadTxn, job: JobId) -> tuple[Note, str] | None:
    """A note that is not placed yet, with its text; None if there is none."""
    note, text = NOTES.get(txn, job.encode()), NOTE_TEXTS.get(txn, job.encode())
    return (note, text.text) if note is not None and text is not None else None


def settle(txn: WriteTxn, note: Note) -> None:
    """Store the result of a placed note; its text is deleted, because the notebook has it."""
    NOTES.put(txn, note.job_id.encode(), msgspec.structs.replace(note, is_done=True))
    NOTE_TEXTS.delete(txn, note.job_id.encode())


def report(txn: ReadTxn, ident: str) -> JobReport:
    """The state of a job. Raises NoJob; of finished jobs only those of notes are known."""
    job = JobId(ident)
    job_record, note = queue.get(txn, job), NOTES.get(txn, ident.encode()) if ident else None
    if job_record is None and note is None:
        raise NoJob(id=ident)
    return _of_job(job_record, note) if job_record is not None else _of_note(txn, note)


def retry(txn: WriteTxn, ident: str) -> JobReport:
    """Retry a job that failed for good, with all attempts.

    Raises NoJob, and UsageError for a job that has not failed, or cannot be retried.
    """
    job = report(txn, ident)
    if not queue.retry_failed(txn, ident):
        raise UsageError(f"job {ident} is {job.status}; only a failed job can be retried")
    return report(txn, ident)


def reports(txn: ReadTxn, limit: int, status: NoteStatus | None = None) -> list[JobReport]:
    """The newest unfinished jobs, then placed notes, at most `limit`; by number.

    With `status` only those with this status.
    """
    unfinished = (job.job_id for _, job in JOBS.scan(txn, reverse=True))
    done = (note.job_id for _, note in NOTES.scan(txn, reverse=True))
    rows: dict[JobId, JobReport] = {}
    for ident in chain(unfinished, done):
        if len(rows) >= limit:
            break
        row = rows.get(ident) or report(txn, ident)
        if status in (None, row.status):
            rows[ident] = row
    return [rows[ident] for ident in sorted(rows)]


def _of_job(job: Job, note: Note | None) -> JobReport:
    return JobReport(
        job_id=job.job_id,
        kind=job.kind,
        status=_STATUS[job.state],
        subject=job.doc_id,
        attempts=job.attempts,
        added_ms=job.enqueued_ms,
        path=note.path if note else None,
        commit=note.commit if note else None,
        reason=job.last_error,
        owner=note.owner if note else None,
    )


def _of_note(txn: ReadTxn, note: Note | None) -> JobReport:
    assert note is not None
    status: NoteStatus = "done" if note.is_done else "failed"
    if note.doc_id is not None:
        cutting = queue.by_key(txn, queue.dedupe_key("chunk", note.doc_id))
        if cutting is not None and cutting.state != "failed":
            # It is in the notebook, but searches do not find it yet.
            status = "processing"
    return JobReport(
        job_id=note.job_id,
        kind="organize",
        status=status,
        subject=note.doc_id or note.job_id,
        attempts=0,
        added_ms=note.added_ms,
        path=note.path,
        commit=note.commit,
        reason=note.reason,
        owner=note.owner,
    )


def _check(hint: str | None, tags: tuple[str, ...]) -> None:
    if hint is not None and (len(hint) > _HINT_CHARS_MAX or not hint.isprintable()):
        raise UsageError(f"a hint is one line of at most {_HINT_CHARS_MAX:,} characters")
    if len(tags) > _TAGS_MAX:
        raise UsageError(f"a note has at most {_TAGS_MAX} tags")
    for tag in tags:
        if not tag.strip() or len(tag) > _TAG_CHARS_MAX or not tag.isprintable():
            raise UsageError(f"a tag is one line of 1 to {_TAG_CHARS_MAX} characters: {tag[:40]!r}")
