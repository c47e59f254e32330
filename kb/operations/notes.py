"""Notes of an open home: handed in, read, taken back, put in order, and pushed."""

from typing import TYPE_CHECKING, Final

from msgspec import Struct, structs

from kb.errors import NoNote
from kb.model import note

if TYPE_CHECKING:
    from kb.home.app import App
    from kb.knowledge.notebook import Logged, PushReport, TidyReport, UndoResult
    from kb.model.doc import Doc, Scope
    from kb.operations.list_docs import ListedDoc

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


class ListedNote(Struct, frozen=True, kw_only=True):
    """A note as it is listed."""

    path: str
    """In the notebook, as `kb note get` and `/content` read it."""
    title: str
    doc_id: str
    tags: tuple[str, ...]
    updated_ms: int


class Notes(Struct, frozen=True, kw_only=True):
    """A page of notes, the newest change first."""

    notes: tuple[ListedNote, ...]
    total: int
    next_cursor: str | None


def add_note(app: "App", request: AddNoteRequest) -> str:
    """Queue a note of the caller; the id of its job.

    The same note again, while it waits, is the same job. Raises UsageError for what is no text of
    a note, ReadOnlyHome, StoreFull.
    """
    owner = app.caller.own_name
    return app.notebook.hand_in(request.data, request.hint, request.tags, owner=owner)


def list_notes(app: "App", tags: tuple[str, ...], limit: int, scope: "Scope") -> Notes:
    """The notes that a scope sees and that have all of these tags; a limit of 0 is none."""
    from kb.model.search import Filters
    from kb.operations.list_docs import matching

    with app.store.read() as txn:
        found = list(matching(txn, Filters(kinds=("notebook",), tags=tags), scope))
    found.sort(key=lambda doc: (-doc.updated_ms, doc.doc_id))
    rows = tuple(note_row(app, doc) for doc in found[: limit or None])
    return Notes(notes=rows, total=len(found), next_cursor=None)


def note_row(app: "App", doc: "Doc | ListedDoc") -> ListedNote:
    """A doc of the notebook as a note."""
    return ListedNote(
        path=app.notebook.named(doc.source),
        title=doc.title,
        doc_id=doc.doc_id,
        tags=doc.tags,
        updated_ms=doc.updated_ms,
    )


def read_note(app: "App", path: str, scope: "Scope") -> bytes:
    """The bytes of a note in the work tree, edits included, for a scope.

    Raises NoNote, equally for hidden and missing notes, TooLarge, and NotebookUnfit where the
    notebook's folder cannot be used.
    """
    from kb.knowledge import notebook

    if not is_seen_at(app, path, scope):
        raise NoNote(id=path)
    app.notebook.level_with_others()
    return notebook.read_note(app.notebook.root, path)


def is_seen_at(app: "App", path: str, scope: "Scope") -> bool:
    """Whether a scope sees what stands at a path: its doc says so, whatever the way to it."""
    from kb.model.doc import LOCAL_USER, audience_of
    from kb.model.origin import NOTEBOOK_INDEX
    from kb.store import docs

    if scope.operator:
        return True
    if path == NOTEBOOK_INDEX:
        # It lists every note, whoever sees it.
        return scope.reads(audience_of("private", LOCAL_USER))
    if (
        path.startswith("/")
        or "\0" in path
        or any(part in ("", ".", "..") for part in path.split("/"))
    ):
        return False
    with app.store.read() as txn:
        doc = docs.latest_of(txn, app.notebook.place_of(path))
    return doc is not None and doc.status == "active" and doc.visible_to(scope)


def list_commits(app: "App", limit: int, scope: "Scope") -> "list[Commit]":
    """The newest commits, the newest first, as far as a scope may know; none without a notebook.

    Raises NotebookGone for a notebook whose repository is no more, NotebookUnfit.
    """
    return [_shown_commit(app, commit, scope) for commit in app.notebook.commits(limit)]


def _shown_commit(app: "App", commit: "Commit", scope: "Scope") -> "Commit":
    """A commit for a scope: paths and titles stand in what a person writes, too."""
    if scope.operator or (commit.path and is_seen_at(app, commit.path, scope)):
        return commit
    subject = f"{commit.verb}({commit.job_id})" if commit.verb else ""
    return structs.replace(commit, subject=subject, path="")


def _check_whole(app: "App") -> None:
    """Raise OwnerOnly where others have notes in the notebook that the caller may not see."""
    from kb.operations.scopes import require_owner

    require_owner(app, "what is done with the whole notebook")


def undo(app: "App", job: str) -> "UndoResult":
    """Take a job's note back, or what a tidying commit did, by a commit that reverts it.

    Nothing is changed where later commits or edits stand on it. Raises NoJob, CannotUndo,
    NotebookUnfit, StoreBusy, OwnerOnly.
    """
    _check_whole(app)
    return app.notebook.undo(job)


def tidy(app: "App", *, apply: bool) -> "TidyResult":
    """What is out of order in the notebook; with `apply`, put in order by one commit.

    Raises NotebookUnfit, StoreBusy, OwnerOnly.
    """
    _check_whole(app)
    return app.notebook.tidy(apply=apply)


def unconfirmed_remote(app: "App") -> str | None:
    """The remote that nobody has agreed to push to yet; None where somebody has.

    The remote of a project's notebook may have come with the project. Raises NotebookUnfit.
    """
    _check_whole(app)
    return app.notebook.strange_remote()


def push(app: "App") -> "PushResult":
    """Push the notebook to its remote `origin` now, never forced.

    Whoever calls has asked about `unconfirmed_remote`. Raises NotPushed where there is no remote,
    NotebookUnfit, StoreBusy; a push that failed is a result that says so.
    """
    _check_whole(app)
    return app.notebook.push()


def push_if_due(app: "App") -> "PushResult | None":
    """Where the settings say so, push if it is time to; how it stands then. Raises NotebookUnfit.

    None where the settings do not say so.
    """
    return app.notebook.push_if_due()


def push_report(app: "App") -> "PushResult | None":
    """How the last push to the remote went; None before the first. Raises NotebookUnfit."""
    return app.notebook.push_report()
