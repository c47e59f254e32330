"""Tidies the notebook: one commit with the fixes that need no judgement, or none."""

from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Final

import msgspec

from kb.knowledge.notebook.listing import Listing
from kb.knowledge.notebook.merging import merged, parts_only_in
from kb.knowledge.notebook.opening import at_work, whole
from kb.knowledge.notebook.organize import LOCK_WAIT_S, ApplyChanges, NotebookChanges
from kb.knowledge.notebook.repository import Draft, Repository, commit_on_top
from kb.knowledge.notebook.rule import summary_of
from kb.knowledge.notebook.sharing import SharedNotebook
from kb.knowledge.notebook.survey import Duplicate, MayMerge, NotebookSurvey, NotebookSurveyor
from kb.model.clock import Clock
from kb.model.failpoints import failpoint
from kb.model.origin import NOTEBOOK_INDEX

_ID_HEX: Final = 12


class TidyReport(NotebookSurvey, frozen=True, kw_only=True):
    """The findings, and the fixes."""

    commit: str | None = None
    """The commit with the fixes; None if none was requested or needed."""
    tidy_id: str | None = None
    """The id by which that commit can be undone."""
    done: tuple[str, ...] = ()
    """The steps of the commit, one line each."""
    left: tuple[str, ...] = ()
    """Paths that stay as they are, because a person has changed them without a commit."""


def look(root: Path, may_merge: MayMerge) -> TidyReport:
    """What is out of order in the newest commit. Locks and makes nothing.

    A folder without a notebook has nothing. Raises NotebookUnfit.
    """
    if not (root / ".git").exists():
        return TidyReport()
    with whole(root), closing(Repository(root)) as repository:
        survey = NotebookSurveyor(repository, repository.draft(), may_merge).survey()
    return TidyReport(**msgspec.structs.asdict(survey))


def tidy(
    root: Path,
    clock: Clock,
    take_in: ApplyChanges,
    may_merge: MayMerge,
    wait_s: float = LOCK_WAIT_S,
    *,
    shared: SharedNotebook | None = None,
) -> TidyReport:
    """Apply the fixes that need no judgement in one commit, and add the changes to the store.

    Links and entries follow moved files; notes get an entry, and entries without a file go; a note
    that is nearly equal to another is merged into it. A step is left out if a person has changed a
    file that it touches. Raises NotebookUnfit, StoreBusy.
    """
    if not (root / ".git").exists():
        return TidyReport()
    steps: list[_TidySteps] = []
    commits: list[str] = []
    with at_work(root, clock.now_ms(), wait_s, shared=shared) as repository:

        def build(draft: Draft) -> None:
            steps[:] = [_TidySteps(repository, draft, may_merge)]
            steps[0].take()
            if steps[0].done:
                commits[:] = [draft.commit(steps[0].message(), clock.now_ms()).decode("ascii")]

        left = commit_on_top(repository, build, wait_s)
        (last,) = steps
        if last.done:
            added: dict[str, tuple[str, ...]] = dict.fromkeys(sorted(last.changed), ())
            take_in(NotebookChanges(added=added, removed=tuple(last.removed)))
            failpoint("notebook.after_intake")
    return TidyReport(
        **msgspec.structs.asdict(last.survey),
        commit=commits[0] if last.done else None,
        tidy_id=last.ident if last.done else None,
        done=tuple(last.done),
        left=tuple(sorted({*last.left, *left})),
    )


class _TidySteps:
    """The steps on one draft; each changes the draft completely, or is left out."""

    def __init__(self, repository: Repository, draft: Draft, may_merge: MayMerge) -> None:
        self._repository = repository
        self._draft = draft
        self._before = repository.snapshot(draft.head.commit)
        self._surveyor = NotebookSurveyor(repository, draft, may_merge)
        self.survey = self._surveyor.survey()
        self._listing = self._surveyor.listing
        # Each commit of the branch has one successor, so this id is unique.
        self.ident = f"t{(draft.head.commit or b'').decode('ascii')[:_ID_HEX]}"
        self._known_clean: dict[str, bool] = {}
        self._counts: dict[str, int] = {}
        self.done: list[str] = []
        self.changed: set[str] = set()
        self.removed: list[str] = []
        self.left: set[str] = set()

    def take(self) -> None:
        """Run all steps, except those that would touch a person's changes."""
        self._lead_links_on()
        if self._wants_listing() and self._are_clean([NOTEBOOK_INDEX]):
            for pair in self.survey.duplicates:
                self._merge(pair)
            self._bring_listing_level()
            before = self._surveyor.listing.text
            if self._listing.text != before:
                data = self._listing.text.encode("utf-8", "surrogateescape")
                self._draft.put(NOTEBOOK_INDEX, data)

    def message(self) -> str:
        """The commit's message: an id to undo it by, how much was done, and each step."""
        counts = ", ".join(f"{count} {verb}" for verb, count in self._counts.items())
        return "\n".join([f"tidy({self.ident}): {counts}", "", *self.done])

    def _wants_listing(self) -> bool:
        survey = self.survey
        return bool(survey.unlisted or survey.dead_entries or survey.duplicates)

    def _lead_links_on(self) -> None:
        moves: dict[str, dict[str, str]] = {}
        for link in self.survey.broken_links:
            if link.moved_to is not None:
                moves.setdefault(link.path, {})[link.target] = link.moved_to
        for path, moves_of_note in moves.items():
            if not self._are_clean([path]):
                continue
            text = self._surveyor.text(path) or ""
            self._put(path, self._surveyor.with_moved_links(path, text, moves_of_note))
            for target, new in moves_of_note.items():
                self._note("relinked", f"{path}: the link to {target} leads to {new}")

    def _merge(self, pair: Duplicate) -> None:
        keep, drop = pair.keep, pair.drop
        surveyor = self._surveyor
        referring = surveyor.referring_to(drop) - {drop}
        if pair.held_back is not None or not self._are_clean({keep, drop, *referring}):
            return
        keep_text = surveyor.text(keep) or ""
        parts = parts_only_in(surveyor.as_part_of(drop, keep), keep_text)
        new = merged(keep_text, surveyor.title_of(drop), parts)
        self._put(keep, surveyor.without_links_to(keep, new, drop, keep))
        for path in sorted(referring - {keep}):
            text = surveyor.text(path) or ""
            self._put(path, surveyor.without_links_to(path, text, drop, keep))
        listed = {entry.path for entry in self._listing.entries()}
        listing = self._listing
        listing = listing.without([drop]) if keep in listed else listing.moved({drop: keep})
        text = surveyor.without_links_to(NOTEBOOK_INDEX, listing.text, drop, keep)
        self._listing = Listing(text)
        self._draft.files.remove(drop)
        self.changed.discard(drop)
        self.removed.append(drop)
        self._note("merged", f"{drop} is merged into {keep}")

    def _bring_listing_level(self) -> None:
        listed = {entry.path for entry in self._listing.entries()}
        for entry in self.survey.dead_entries:
            if entry.moved_to and entry.moved_to not in {*listed, *self.removed}:
                self._listing = self._listing.moved({entry.path: entry.moved_to})
                listed.add(entry.moved_to)
                self._note("moved", f"the entry of {entry.path} leads to {entry.moved_to}")
            elif entry.path in {listed_entry.path for listed_entry in self._listing.entries()}:
                self._listing = self._listing.without([entry.path])
                self._note("struck", f"the entry of {entry.path} goes, there is no such file")
        for path in self.survey.unlisted:
            if path not in {*listed, *self.removed}:
                summary = summary_of(self._surveyor.text(path) or "")
                self._listing = self._listing.with_entry(path, summary.title, summary.description)
                self._note("listed", f"{path} is listed")

    def _put(self, path: str, text: str) -> None:
        data = text.encode()
        if data != self._draft.read(path):
            self._draft.put(path, data)
            self.changed.add(path)

    def _are_clean(self, paths: Iterable[str]) -> bool:
        changed = [path for path in paths if not self._is_clean(path)]
        self.left.update(changed)
        return not changed

    def _is_clean(self, path: str) -> bool:
        if path not in self._known_clean:
            entry = self._before.get(path)
            self._known_clean[path] = (
                entry is not None and entry.is_file and self._repository.is_clean(path, entry)
            )
        return self._known_clean[path]

    def _note(self, verb: str, line: str) -> None:
        self._counts[verb] = self._counts.get(verb, 0) + 1
        self.done.append("".join(sign if sign.isprintable() else "?" for sign in line))
