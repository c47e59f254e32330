"""Find what is out of order in a notebook's newest commit. Nothing is changed here."""

import posixpath
from collections.abc import Callable, Collection, Iterator
from itertools import islice
from typing import Final

from msgspec import Struct

from kb.intake.chunker.links import FileNames, Link, LinkSpan, link_spans
from kb.knowledge.notebook.likeness import lowest, pairs
from kb.knowledge.notebook.listing import Listing
from kb.knowledge.notebook.merging import body_of, parts_only_in
from kb.knowledge.notebook.organize import moves_in
from kb.knowledge.notebook.paths import is_index, problem_of
from kb.knowledge.notebook.relink import relinked, target_from
from kb.knowledge.notebook.repository import Draft, Repository
from kb.knowledge.notebook.rule import summary_of
from kb.model.origin import NOTEBOOK_INDEX

# Beyond these the rest is counted in `left_out`; the next run sees what is left then.
FINDINGS_MAX: Final = 500
_NOTES_MAX: Final = 20_000
_NOTE_BYTES_MAX: Final = 1 << 20
_LOG_MAX: Final = 500
_SUFFIX: Final = ".md"

MayMerge = Callable[[Collection[str]], bool]
"""Whether the notes at some paths are of one person and seen by the same: such may be merged."""


class BrokenLink(Struct, frozen=True, kw_only=True):
    """A link of a note that leads to no file, or by its name to several."""

    path: str
    line: int
    target: str
    moved_to: str | None
    """Where the file stands now that stood there; None where the log knows of none."""


class DeadEntry(Struct, frozen=True, kw_only=True):
    """A line of the list without a file."""

    line: int
    path: str
    moved_to: str | None


class Duplicate(Struct, frozen=True, kw_only=True):
    """Two notes that say nearly the same, and what the one that is kept would get."""

    keep: str
    drop: str
    likeness: float
    adds: tuple[str, ...]
    """The parts that only `drop` has."""
    held_back: str | None
    """Why the two are not merged by kb; None where they can be."""


class OddName(Struct, frozen=True, kw_only=True):
    """A note whose path breaks the rules."""

    path: str
    problem: str


class NotebookSurvey(Struct, frozen=True, kw_only=True):
    """What is out of order; each list in the order of paths, entries by line."""

    broken_links: tuple[BrokenLink, ...] = ()
    unlisted: tuple[str, ...] = ()
    dead_entries: tuple[DeadEntry, ...] = ()
    duplicates: tuple[Duplicate, ...] = ()
    empty: tuple[str, ...] = ()
    odd_names: tuple[OddName, ...] = ()
    left_out: int = 0
    """How many more there are than were looked at closely, findings and notes."""


class NotebookSurveyor:
    """Surveys one draft of a notebook; after a change to the draft, a new surveyor is needed."""

    def __init__(self, repository: Repository, draft: Draft, may_merge: MayMerge) -> None:
        self._repository = repository
        self._draft = draft
        self._may_merge = may_merge
        self.listing = Listing(_decoded(draft.read(NOTEBOOK_INDEX) or b""))
        self._files = {path for path, _ in draft.files.files()}
        note_paths = [path for path in sorted(self._files) if _is_note(path)]
        self.notes = note_paths[:_NOTES_MAX]
        self._uncounted = len(note_paths) - len(self.notes)
        titles = {entry.path: entry.title for entry in self.listing.entries()}
        all_titles = {path: titles.get(path) or self.title_of(path) for path in note_paths}
        self._names = FileNames({**all_titles, NOTEBOOK_INDEX: ""})
        self._referring: dict[str, set[str]] = {}
        self._basenames = {posixpath.basename(path) for path in self._files}

    def survey(self) -> NotebookSurvey:
        """All that is out of order."""
        empty, broken, shingles = [], [], []
        for path in self.notes:
            text = self.text(path)
            body = body_of(text) if text is not None else ""
            if text is None:
                self._uncounted += 1
            elif not body.strip():
                empty.append(path)
            else:
                shingles.append((path, lowest(body)))
                broken += [(path, text, link) for link in self._broken_links(path, text)]
        listed = [entry.path for entry in self.listing.entries()]
        dead = [entry for entry in self.listing.entries() if not self._is_there(entry.path)]
        moves, origins = self._moved() if broken or dead else ({}, {})
        problems = ((path, problem_of(path)) for path in self.notes)
        wrong = [OddName(path=path, problem=problem) for path, problem in problems if problem]
        unlisted = sorted({*self.notes} - {*listed} - {*empty})
        findings = (broken, unlisted, dead, wrong, empty)
        over = sum(max(0, len(rows) - FINDINGS_MAX) for rows in findings)
        return NotebookSurvey(
            broken_links=tuple(
                _broken(path, text, link, self._moved_to(path, link.link, moves, origins))
                for path, text, link in broken[:FINDINGS_MAX]
            ),
            unlisted=tuple(unlisted[:FINDINGS_MAX]),
            dead_entries=tuple(
                DeadEntry(line=entry.line + 1, path=entry.path, moved_to=moves.get(entry.path))
                for entry in dead[:FINDINGS_MAX]
            ),
            duplicates=tuple(islice(self._duplicates(shingles, listed), FINDINGS_MAX)),
            empty=tuple(empty[:FINDINGS_MAX]),
            odd_names=tuple(wrong[:FINDINGS_MAX]),
            left_out=self._uncounted + over,
        )

    def text(self, path: str) -> str | None:
        """What a note says; None where it is no UTF-8, or over 1 MiB."""
        data = self._draft.read(path)
        if data is None or len(data) > _NOTE_BYTES_MAX:
            return None
        try:
            return data.decode("utf-8")
        except UnicodeDecodeError:
            return None

    def title_of(self, path: str) -> str:
        """What a note calls itself."""
        return summary_of(self.text(path) or "").title

    def leads_to(self, source: str, link: Link) -> str | None:
        """The note that a link in `source` leads to."""
        return self._names.resolve(source, link)

    def referring_to(self, path: str) -> set[str]:
        """The notes with links to one, as `survey` and `with_moved_links` have recorded them."""
        return self._referring.get(path, set())

    def with_moved_links(self, source: str, text: str, new_paths: dict[str, str]) -> str:
        """The text of `source` with its broken links to some targets leading to other notes."""
        for new in new_paths.values():
            self._referring.setdefault(new, set()).add(source)

        def new_path(link: LinkSpan) -> str | None:
            is_broken = self.leads_to(source, link.link) is None
            return new_paths.get(link.link.target) if is_broken else None

        return relinked(text, source, new_path)

    def without_links_to(self, source: str, text: str, drop: str, keep: str) -> str:
        """The text of `source` with its links to one note leading to another."""

        def new_path(link: LinkSpan) -> str | None:
            return keep if self.leads_to(source, link.link) == drop else None

        return relinked(text, source, new_path)

    def as_part_of(self, drop: str, keep: str) -> str:
        """The text of `drop` as it is to stand in `keep`, its links leading where they led."""

        def new_path(link: LinkSpan) -> str | None:
            target = self.leads_to(drop, link.link)
            if target == drop:
                return keep
            is_elsewhere = posixpath.dirname(drop) != posixpath.dirname(keep)
            if link.link.kind == "wiki" or not is_elsewhere:
                return None
            return target or target_from(drop, link.link)

        return relinked(self.text(drop) or "", drop, new_path, seen_from=keep)

    def _broken_links(self, source: str, text: str) -> Iterator[LinkSpan]:
        for link in link_spans(text):
            target = self.leads_to(source, link.link)
            if target is not None:
                self._referring.setdefault(target, set()).add(source)
            elif self._is_broken(source, link):
                yield link

    def _is_broken(self, source: str, link: LinkSpan) -> bool:
        if link.link.kind == "wiki":
            name = link.link.target
            return name not in self._basenames and not self._is_there(name)
        target = target_from(source, link.link)
        # What lies outside the notebook is nobody's business here.
        return target is not None and not any(map(self._is_there, (target, target + _SUFFIX)))

    def _is_there(self, path: str) -> bool:
        return path in self._files or self._repository.tree.is_there(path)

    def _moved(self) -> tuple[dict[str, str], dict[str, str]]:
        """Where files stand now that stood elsewhere, by old path; and where they stood first."""
        moves: dict[str, str] = {}
        origins: dict[str, str] = {}
        for logged in islice(self._repository.log(), _LOG_MAX):
            for move in moves_in(self._repository.changes_of(logged.commit)):
                now = moves.get(move.new, move.new)
                moves.setdefault(move.old, now)
                origins[now] = move.old
        return {old: new for old, new in moves.items() if new in self._files}, origins

    def _moved_to(
        self, source: str, link: Link, moves: dict[str, str], origins: dict[str, str]
    ) -> str | None:
        for start in (source, origins.get(source)):
            target = target_from(start, link) if start else None
            for path in (target, f"{target}{_SUFFIX}") if target else ():
                if path in moves or (start != source and path in self._files):
                    return moves.get(path, path)
        return None

    def _duplicates(
        self, lows: list[tuple[str, tuple[int, ...]]], listed: list[str]
    ) -> Iterator[Duplicate]:
        """Pairs of which no note is in another; the next run sees the rest."""
        positions = {path: at for at, path in reversed(list(enumerate(listed)))}
        paired: set[str] = set()
        for pair in pairs(lows, lambda path: body_of(self.text(path) or "")):
            if pair.a in paired or pair.b in paired:
                continue
            paired |= {pair.a, pair.b}
            keep, drop = sorted(
                (pair.a, pair.b),
                key=lambda path: (
                    positions.get(path, len(listed)),
                    -len(self.text(path) or ""),
                    path,
                ),
            )
            keep_text = self.text(keep) or ""
            yield Duplicate(
                keep=keep,
                drop=drop,
                likeness=pair.likeness,
                adds=parts_only_in(self.as_part_of(drop, keep), keep_text),
                held_back=self._held_back(keep, drop),
            )

    def _held_back(self, keep: str, drop: str) -> str | None:
        if not self._may_merge((keep, drop)):
            return "they are not of one person, or not for the same eyes"
        text = self.text(drop) or ""
        head = text.removesuffix(body_of(text)).strip()
        if head and not (self.text(keep) or "").startswith(head):
            return "what it says of itself above its text differs"
        return None


def _is_note(path: str) -> bool:
    hidden = any(part.startswith(".") for part in path.split("/"))
    return path.endswith(_SUFFIX) and not hidden and not is_index(path)


def _broken(path: str, text: str, link: LinkSpan, moved_to: str | None) -> BrokenLink:
    line = text.count("\n", 0, link.start) + 1
    return BrokenLink(path=path, line=line, target=link.link.target, moved_to=moved_to)


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")
