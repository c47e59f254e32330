"""Notes: what a person hands in for the notebook, and what became of it."""

from typing import Final, Literal

from msgspec import Struct

from kb.model.ids import DocId, JobId

NOTE_BYTES_MAX: Final = 1 << 20
"""A text that has more is no note."""

NoteStatus = Literal["queued", "processing", "done", "failed"]


class Note(Struct, frozen=True, kw_only=True):
    """A note under the job that places it; its text lies apart until the job is done."""

    job_id: JobId
    hint: str | None
    tags: tuple[str, ...]
    added_ms: int
    path: str | None = None
    """Where it stands in the notebook, with slashes; None before it does."""
    commit: str | None = None
    """The commit that placed it, 40 hexadecimal digits."""
    doc_id: DocId | None = None
    """What searches find of it."""
    reason: str | None = None
    """What is to be said of how it was placed, or why it was not."""
    is_done: bool = False
    owner: str | None = None
    """Whose it is: the user who handed it in from outside; None is the person at the machine."""


class NoteText(Struct, frozen=True, kw_only=True):
    """What a note says, kept until it is in the notebook."""

    text: str
