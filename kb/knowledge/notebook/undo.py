"""Undoes a note: reverts its job's commit, if no later change builds on it."""

from collections.abc import Sequence
from pathlib import Path

from msgspec import Struct

from kb.errors import CannotUndo, NoJob
from kb.knowledge.notebook.listing import Listing
from kb.knowledge.notebook.opening import at_work
from kb.knowledge.notebook.organize import LOCK_WAIT_S, ApplyChanges, NotebookChanges, moves_in
from kb.knowledge.notebook.repository import Draft, Logged, Repository, commit_on_top
from kb.knowledge.notebook.rule import summary_of
from kb.knowledge.notebook.sharing import SharedNotebook
from kb.knowledge.notebook.worktree import Change
from kb.model.clock import Clock
from kb.model.failpoints import failpoint
from kb.model.origin import NOTEBOOK_INDEX


class UndoResult(Struct, frozen=True, kw_only=True):
    """What was undone."""

    job_id: str
    path: str
    """The note's path; for a commit that tidied, how much it did."""
    commit: str
    """The commit that reverts it."""


def undo(
    root: Path,
    ident: str,
    clock: Clock,
    take_in: ApplyChanges,
    wait_s: float = LOCK_WAIT_S,
    *,
    shared: SharedNotebook | None = None,
) -> UndoResult:
    """Revert the commit of a job: removes its note, moves notes back, and updates the list.

    A commit that tidied is named by the id in its message; the notes that it merged come back.
    Raises NoJob if the branch has no such commit; CannotUndo, which says why, if it was undone
    already, if a later commit or a person's edit has changed a file that it touched, or if
    something is in a place to which a file goes back.
    """
    if shared is None and not (root / ".git").exists():
        raise NoJob(id=ident)
    with at_work(root, clock.now_ms(), wait_s, shared=shared) as repository:
        logged = _commit_of(repository, ident)
        changes = repository.changes_of(logged.commit)
        made: list[str] = []

        def build(draft: Draft) -> None:
            _check(repository, draft, logged, changes)
            _revert(repository, draft, logged, changes)
            commit = draft.commit(f"undo({ident}): {logged.path}", clock.now_ms())
            made[:] = [commit.decode("ascii")]

        commit_on_top(repository, build, wait_s)
        take_in(_arrival(logged, changes))
    failpoint("notebook.after_intake")
    return UndoResult(job_id=ident, path=logged.path, commit=made[0])


def _arrival(logged: Logged, changes: Sequence[Change]) -> NotebookChanges:
    if logged.verb == "tidy":
        paths = (change.path for change in changes if change.path != NOTEBOOK_INDEX)
        return NotebookChanges(added=dict.fromkeys(paths, ()))
    back = tuple(move.back for move in moves_in(changes))
    return NotebookChanges(moves=back, removed=(logged.path,))


def _commit_of(repository: Repository, ident: str) -> Logged:
    for logged in repository.log():
        if logged.job_id == ident and logged.verb == "undo":
            raise CannotUndo(f"commit {logged.commit[:10]} has undone it already", id=ident)
        if logged.job_id == ident:
            return logged
    raise NoJob(id=ident)


def _check(repository: Repository, draft: Draft, logged: Logged, changes: Sequence[Change]) -> None:
    for change in changes:
        if change.path == NOTEBOOK_INDEX:
            continue
        if draft.files.get(change.path) != change.new:
            detail = f"a later commit has changed {change.path}"
            raise CannotUndo(detail, id=logged.job_id)
        if change.new is not None and not repository.is_clean(change.path, change.new):
            detail = f"{change.path} has changes that are not committed"
            raise CannotUndo(detail, id=logged.job_id)
        if change.new is None and repository.tree.is_there(change.path):
            detail = f"something stands at {change.path} now"
            raise CannotUndo(detail, id=logged.job_id)


def _revert(
    repository: Repository, draft: Draft, logged: Logged, changes: Sequence[Change]
) -> None:
    listed = next((change for change in changes if change.path == NOTEBOOK_INDEX), None)
    is_same = listed is not None and draft.files.get(NOTEBOOK_INDEX) == listed.new
    if listed is not None and listed.old is not None and is_same:
        draft.put(NOTEBOOK_INDEX, repository.blob(listed.old.sha))
    else:
        text = (draft.read(NOTEBOOK_INDEX) or b"").decode("utf-8", "surrogateescape")
        back = {move.new: move.old for move in moves_in(changes)}
        listing = Listing(text).without([logged.path]).moved(back)
        for change in changes if logged.verb == "tidy" else ():
            if change.old is not None and change.new is None:
                note = summary_of(repository.blob(change.old.sha).decode("utf-8", "replace"))
                listing = listing.with_entry(change.path, note.title, note.description)
        draft.put(NOTEBOOK_INDEX, listing.text.encode("utf-8", "surrogateescape"))
    for change in changes:
        if change.path == NOTEBOOK_INDEX:
            continue
        if change.new is not None:
            draft.files.remove(change.path)
        if change.old is not None:
            draft.files.put(change.path, change.old)
