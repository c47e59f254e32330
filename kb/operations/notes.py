"""Notes of an open home: handed in, read, taken back, put in order, and pushed."""

from typing import TYPE_CHECKING, Final

from msgspec import Struct

from kb.model import note

if TYPE_CHECKING:
    from kb.home.app import App
    from kb.knowledge.notebook import Logged, PushReport, TidyReport, UndoResult

    Commit = Logged
    """A commit of the notebook."""
    PushResult = PushReport
    """How the last push went, and how far the remote is behind."""
    TidyResult = TidyReport
    """What was out of order, and what was done about it."""

NOTE_BYTES_MAX: Final = note.NOTE_BYTES_MAX
"""A note that has more is refused."""


class AddNoteRequest(Struct, frozen=True, kw_only=True):
    """A note to hand in."""

    data: bytes
    """UTF-8 text."""
    hint: str | None = None
    """Where it belongs: a folder, or words that name one."""
    tags: tuple[str, ...] = ()


def add_note(app: "App", request: AddNoteRequest) -> str:
    """Queue a note of the local user; the id of its job.

    The same note again, while it waits, is the same job. Raises UsageError for what is no text of
    a note, ReadOnlyHome, StoreFull.
    """
    return app.notebook.hand_in(request.data, request.hint, request.tags)


def read_note(app: "App", path: str) -> bytes:
    """The bytes of a note in the work tree, edits included.

    Raises NoNote, TooLarge, and NotebookUnfit where the notebook's folder cannot be used.
    """
    from kb.knowledge import notebook

    app.notebook.level_with_others()
    return notebook.read_note(app.notebook.root, path)


def list_commits(app: "App", limit: int) -> "list[Commit]":
    """The newest commits, the newest first; none without a notebook.

    Raises NotebookGone for a notebook whose repository is no more, NotebookUnfit.
    """
    return app.notebook.commits(limit)


def undo(app: "App", job: str) -> "UndoResult":
    """Take a job's note back, or what a tidying commit did, by a commit that reverts it.

    Nothing is changed where later commits or edits stand on it. Raises NoJob, CannotUndo,
    NotebookUnfit, StoreBusy.
    """
    return app.notebook.undo(job)


def tidy(app: "App", *, apply: bool) -> "TidyResult":
    """What is out of order in the notebook; with `apply`, put in order by one commit.

    Raises NotebookUnfit, StoreBusy.
    """
    return app.notebook.tidy(apply=apply)


def unconfirmed_remote(app: "App") -> str | None:
    """The remote that nobody has agreed to push to yet; None where somebody has.

    The remote of a project's notebook may have come with the project. Raises NotebookUnfit.
    """
    return app.notebook.strange_remote()


def push(app: "App") -> "PushResult":
    """Push the notebook to its remote `origin` now, never forced.

    Whoever calls has asked about `unconfirmed_remote`. Raises NotPushed where there is no remote,
    NotebookUnfit, StoreBusy; a push that failed is a result that says so.
    """
    return app.notebook.push()


def push_if_due(app: "App") -> "PushResult | None":
    """Where the settings say so, push if it is time to; how it stands then. Raises NotebookUnfit.

    None where the settings do not say so.
    """
    return app.notebook.push_if_due()


def push_report(app: "App") -> "PushResult | None":
    """How the last push to the remote went; None before the first. Raises NotebookUnfit."""
    return app.notebook.push_report()
