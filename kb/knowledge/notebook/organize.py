"""The organize job: places a note by one commit that names the job, then adds it to the store."""

import functools
import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from kb.errors import ConfigError, LlmError, NotebookUnfit, StaleToken, StoreBusy
from kb.knowledge.notebook import notes
from kb.knowledge.notebook.decision import (
    LISTING_CHARS_MAX,
    Decision,
    NotebookState,
    NoteMove,
    ask,
    problem_with,
)
from kb.knowledge.notebook.listing import Listing
from kb.knowledge.notebook.opening import at_work
from kb.knowledge.notebook.owners import folder_of, is_foreign, is_of_others
from kb.knowledge.notebook.paths import is_folder, note_path
from kb.knowledge.notebook.repository import Draft, Logged, Repository, commit_on_top
from kb.knowledge.notebook.rule import folder_for, summary_of
from kb.knowledge.notebook.sharing import SharedNotebook
from kb.knowledge.notebook.worktree import Change, OccupiedPaths
from kb.model.doc import LOCAL_USER
from kb.model.failpoints import failpoint
from kb.model.ids import DocId, JobId
from kb.model.job import Claim
from kb.model.note import Note
from kb.model.origin import NOTEBOOK_INDEX
from kb.store.jobs import queue
from kb.store.store import Store

LOCK_WAIT_S: Final = 30.0
_SUFFIX: Final = ".md"
_LIKE_CHARS: Final = 2_000

Complete = Callable[[str, str], str]
"""Returns the model's answer to a system prompt and a question; raises LlmError."""
ApplyChanges = Callable[["NotebookChanges"], dict[str, DocId]]
"""Adds changes to the store; returns the docs of added notes, by path. May be repeated."""
Nearest = Callable[[str], list[tuple[str, float]]]
"""Returns paths of notes with the cosine of their best chunk to a text, best first."""


class NotebookChanges(Struct, frozen=True, kw_only=True):
    """The changes of some commits, to be added to the store."""

    moves: tuple[NoteMove, ...] = ()
    added: Mapping[str, tuple[str, ...]] = {}
    """Tags by path."""
    owners: Mapping[str, str] = {}
    """The owner of each new note, by path; other notes keep theirs."""
    removed: tuple[str, ...] = ()


class CommittedNote(Struct, frozen=True, kw_only=True):
    """A note that has its commit."""

    note: Note
    moves: tuple[NoteMove, ...] = ()


class _NoteTask(Struct, frozen=True, kw_only=True):
    """A note with all that placing it needs; `decision` only if a model was asked."""

    claim: Claim
    note: Note
    text: str
    like: list[tuple[str, float]] = []
    decision: Decision | None = None
    remark: str | None = None


class _Unusable(Exception):
    """A decision cannot be followed in the notebook's present state."""


class Organizer:
    """Handles organize jobs of one home. Without `complete` notes are placed by rule."""

    def __init__(
        self,
        store: Store,
        root: Path,
        take_in: ApplyChanges,
        nearest: Nearest,
        complete: Complete | None = None,
        *,
        lock_wait_s: float = LOCK_WAIT_S,
        may_make: Callable[[], bool] = lambda: True,
        shared: SharedNotebook | None = None,
    ) -> None:
        """`may_make` says whether a missing notebook may be made; `shared` is as in `at_work`."""
        self._store = store
        self._root = root
        self._take_in = take_in
        self._nearest = nearest
        self._complete = complete
        self._lock_wait_s = lock_wait_s
        self._may_make = may_make
        self._shared = shared
        self._one_at_a_time = threading.Lock()

    def work(self, claims: list[Claim]) -> None:
        """Place notes: by rule many in one move of the branch, by a model each alone.

        A job whose commit is in the log is done, whoever did it. If nobody can work in the notebook
        now, the jobs are released, with the reason.
        """
        tasks = [task for task in map(self._task_of, claims) if task is not None]
        batches = [[task] for task in tasks] if self._complete else [tasks] if tasks else []
        with self._one_at_a_time:
            for batch in batches:
                try:
                    self._work(batch)
                except (NotebookUnfit, StoreBusy) as error:
                    self._give_back(batch, str(error))

    def _task_of(self, claim: Claim) -> _NoteTask | None:
        with self._store.read() as txn:
            note_and_text = notes.get(txn, claim.job.job_id)
        if note_and_text is None:
            self._finish([claim], [])
            return None
        note, text = note_and_text
        like: list[tuple[str, float]] = []
        if (
            not note.hint
            and not note.tags
            and self._complete is None
            and not is_foreign(note.owner)
        ):
            like = self._nearest(text[:_LIKE_CHARS])
        return _NoteTask(claim=claim, note=note, text=text, like=like)

    def _work(self, batch: list[_NoteTask]) -> None:
        # The list shows the model everybody's notes, and another user's note must not steer by it.
        if self._complete is None or is_foreign(batch[0].note.owner):
            self._place(batch)
            return
        (task,) = batch
        problem: str | None = None
        for _ in range(2):
            try:
                decision = self._ask_model(self._complete, task, problem)
                self._place([msgspec.structs.replace(task, decision=decision)])
                return
            except (ConfigError, LlmError, _Unusable) as error:
                problem = str(error)
        self._place([msgspec.structs.replace(task, remark=f"placed by rule: {problem}")])

    def _ask_model(
        self, complete: Complete, task: _NoteTask, problem: str | None
    ) -> Decision | None:
        """The model's answer; None if the job has its commit. Holds no lock meanwhile."""
        with self._opened() as repository:
            if self._earlier(repository, [task]):
                return None
            listing = _listing_of(repository.draft())
        if len(listing.text) > LISTING_CHARS_MAX:
            raise _Unusable(f"{NOTEBOOK_INDEX} is too long to be shown to a model")
        return ask(complete, listing.text, task.note, task.text, problem)

    def _place(self, batch: list[_NoteTask]) -> None:
        """Commit the notes, add them to the store, and end their jobs. Raises _Unusable."""
        with self._opened() as repository:
            # Read the log under the lock: another worker that takes over a job comes later, and
            # reads our log.
            tasks = self._still_held(batch)
            earlier = self._earlier(repository, tasks)
            commits = [(task.note, earlier.get(task.note.job_id)) for task in tasks]
            done = [_as_placed(repository, note, logged) for note, logged in commits if logged]
            todo = [task for task in tasks if task.note.job_id not in earlier]
            fresh: list[CommittedNote] = []
            now_ms = self._store.clock.now_ms()

            def build(draft: Draft) -> None:
                places = OccupiedPaths(draft.files, repository.tree)
                fresh[:] = [_committed(repository, draft, places, task, now_ms) for task in todo]

            left = commit_on_top(repository, build, self._lock_wait_s) if todo else []
            placed = [*done, *fresh]
            docs = self._take_in(_changes_of(placed))
        failpoint("notebook.after_intake")
        settled = [_settled(committed.note, docs, left) for committed in placed]
        self._finish([task.claim for task in tasks], settled)

    def _still_held(self, batch: list[_NoteTask]) -> list[_NoteTask]:
        with self._store.read() as txn:
            return [task for task in batch if queue.is_held(txn, task.claim)]

    def _opened(self) -> AbstractContextManager[Repository]:
        now_ms, may_make = self._store.clock.now_ms(), self._may_make()
        return at_work(
            self._root, now_ms, self._lock_wait_s, may_make=may_make, shared=self._shared
        )

    def _earlier(self, repository: Repository, batch: Sequence[_NoteTask]) -> dict[JobId, Logged]:
        """The commits of jobs that were claimed before, whose holder may have died later."""
        job_ids = {task.claim.job.job_id for task in batch if task.claim.token > 1}
        commits: dict[JobId, Logged] = {}
        for logged in repository.log() if job_ids else ():
            job = JobId(logged.job_id)
            if logged.verb == "store" and job in job_ids:
                commits[job] = logged
            if len(commits) == len(job_ids):
                break
        return commits

    def _finish(self, claims: list[Claim], settled: list[Note]) -> None:
        with self._store.write() as txn:
            for claim in claims:
                try:
                    queue.finish(txn, claim)
                except StaleToken:
                    continue
            for note in settled:
                notes.settle(txn, note)

    def _give_back(self, batch: list[_NoteTask], reason: str) -> None:
        with self._store.write() as txn:
            for task in batch:
                try:
                    queue.fail(txn, self._store.clock, task.claim, reason)
                except StaleToken:
                    continue


def _committed(
    repository: Repository, draft: Draft, places: OccupiedPaths, task: _NoteTask, now_ms: int
) -> CommittedNote:
    """Make a note's commit in a draft: moves, the file, the list. Raises _Unusable."""
    listing = _listing_of(draft)
    moves: tuple[NoteMove, ...] = ()
    if task.decision is None:
        summary = summary_of(task.text)
        path = _place_by_rule(task, summary.title, places)
        index = listing.with_entry(path, summary.title, summary.description).text
    else:
        present = NotebookState(
            listing=listing,
            is_taken=places.__contains__,
            unmovable=functools.partial(_unmovable, repository, draft),
        )
        problem = problem_with(task.decision, present)
        if problem is not None:
            raise _Unusable(problem)
        moves, path = task.decision.refactors, task.decision.target_path
        index = task.decision.updated_index
    for move in moves:
        draft.move(move.old, move.new)
        places.discard(move.old)
        places.add(move.new)
    draft.put(path, task.text.encode())
    places.add(path)
    draft.put(NOTEBOOK_INDEX, index.encode("utf-8", "surrogateescape"))
    commit = draft.commit(f"store({task.note.job_id}): {path}", now_ms)
    note = msgspec.structs.replace(
        task.note, path=path, commit=commit.decode("ascii"), reason=task.remark
    )
    return CommittedNote(note=note, moves=moves)


def _place_by_rule(task: _NoteTask, title: str, places: OccupiedPaths) -> str:
    """A free path. For another user's note it depends only on the files in that user's folder."""
    note, all_folders = task.note, [folder for folder in places.folders() if is_folder(folder)]
    if note.owner is None or not is_foreign(note.owner):
        folders = [folder for folder in all_folders if not is_of_others(folder)]
        like = [(path, cosine) for path, cosine in task.like if path.rpartition("/")[0] in folders]
        folder = folder_for(note.hint, note.tags, folders, like)
        return _free_path(folder, title, places, note.job_id, "")
    own = folder_of(note.owner)
    inner = [
        folder.removeprefix(f"{own}/") for folder in all_folders if folder.startswith(f"{own}/")
    ]
    folder = folder_for(note.hint, note.tags, inner, ()).partition("/")[0]
    return _free_path(f"{own}/{folder}", title, places, note.job_id, own)


def _free_path(folder: str, title: str, places: OccupiedPaths, key: str, top: str) -> str:
    """A free path in a folder; if something is in its way, beside it, or at the top."""
    for candidate in (folder, f"{folder}-notes", top):
        path = note_path(candidate, title, places, key)
        if path is not None:
            return path
    raise NotebookUnfit("there is no free path for a note", place=folder or NOTEBOOK_INDEX)


def _unmovable(repository: Repository, draft: Draft, path: str) -> str | None:
    entry = draft.files.get(path)
    if entry is None or not entry.is_file or not path.endswith(_SUFFIX):
        return "there is no such note"
    if is_of_others(path):
        return "it belongs to somebody else"
    if not repository.is_clean(path, entry):
        return "it has changes that are not committed"
    return None


def _listing_of(draft: Draft) -> Listing:
    return Listing((draft.read(NOTEBOOK_INDEX) or b"").decode("utf-8", "surrogateescape"))


def _as_placed(repository: Repository, note: Note, logged: Logged) -> CommittedNote:
    changes = repository.changes_of(logged.commit)
    note = msgspec.structs.replace(note, path=logged.path, commit=logged.commit)
    return CommittedNote(note=note, moves=moves_in(changes))


def moves_in(changes: Sequence[Change]) -> tuple[NoteMove, ...]:
    """The files to which changes only give another path."""
    gone = {change.old: change.path for change in changes if change.old and not change.new}
    return tuple(
        NoteMove(old=gone[change.new], new=change.path)
        for change in changes
        if change.new in gone and not change.old
    )


def _changes_of(notes: Sequence[CommittedNote]) -> NotebookChanges:
    return NotebookChanges(
        moves=tuple(move for committed in notes for move in committed.moves),
        added={
            committed.note.path: committed.note.tags for committed in notes if committed.note.path
        },
        owners={
            committed.note.path: committed.note.owner or LOCAL_USER
            for committed in notes
            if committed.note.path
        },
    )


def _settled(note: Note, docs: Mapping[str, DocId], left: Sequence[str]) -> Note:
    """The note with its doc, and a remark on files that a person has changed."""
    remarks = [note.reason] if note.reason else []
    if left:
        shown = ", ".join(left[:3])
        remarks.append(f"left as they are in the work tree, because they have changes: {shown}")
    doc_id = docs.get(note.path or "")
    return msgspec.structs.replace(note, doc_id=doc_id, reason="; ".join(remarks) or None)
