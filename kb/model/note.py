"""Notes that people add to the notebook, and the results."""

from typing import Final, Literal

from msgspec import Struct

from kb.model.ids import DocId, JobId

NOTE_BYTES_MAX: Final = 1 << 20
"""The most bytes that a note may have."""

NoteStatus = Literal["queued", "processing", "done", "failed"]


class Note(Struct, frozen=True, kw_only=True):
    """A note and the job that places it; its text is stored separately until the job is done."""

    job_id: JobId
    hint: str | None
    tags: tuple[str, ...]
    added_ms: int
    path: str | None = None
    """Its path in the notebook, with slashes; None before it is placed."""
    commit: str | None = None
    """The commit that placed it, 40 hexadecimal digits."""
    doc_id: DocId | None = None
    """Its doc, by which searches find it."""
    reason: str | None = None
    """A remark on how it was placed, or why it was not."""
    is_done: bool = False
    owner: str | None = None
    """The remote user who added it; None for the person at the machine."""


class NoteText(Struct, frozen=True, kw_only=True):
    """The text of a note, stored until it is in the notebook."""

    text: str
