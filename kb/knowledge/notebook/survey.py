"""What is out of order in a notebook? Its newest commit is looked at; nothing is changed here."""

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

Together = Callable[[Collection[str]], bool]
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
    """A note whose path is off the rules."""

    path: str
    problem: str


class Survey(Struct, frozen=True, kw_only=True):
    """What is out of order; each list in the order of paths, entries by line."""

    broken_links: tuple[BrokenLink, ...] = ()
    unlisted: tuple[str, ...] = ()
    dead_entries: tuple[DeadEntry, ...] = ()
    duplicates: tuple[Duplicate, ...] = ()
    empty: tuple[str, ...] = ()
    odd_names: tuple[OddName, ...] = ()
    left_out: int = 0
    """How many more there are than were looked at closely, findings and notes."""


class Surveyor:
    """Looks at one draft of a notebook; a draft that was changed needs another."""

    def __init__(self, repository: Repository, draft: Draft, together: Together) -> None:
        self._repository = repository
        self._draft = draft
        self._together = together
        self.listing = Listing(_decoded(draft.read(NOTEBOOK_INDEX) or b""))
        self._files = {path for path, _ in draft.files.files()}
        named = [path for path in sorted(self._files) if _is_note(path)]
        self.notes = named[:_NOTES_MAX]
        self._uncounted = len(named) - len(self.notes)
        titles = {entry.path: entry.title for entry in self.listing.entries()}
        known = {path: titles.get(path) or self.title_of(path) for path in named}
        self._names = FileNames({**known, NOTEBOOK_INDEX: ""})
        self._referring: dict[str, set[str]] = {}
        self._basenames = {posixpath.basename(path) for path in self._files}

    def survey(self) -> Survey:
        """All that is out of order."""
        empty, broken, lows = [], [], []
        for path in self.notes:
            text = self.text(path)
            body = body_of(text) if text is not None else ""
            if text is None:
                self._uncounted += 1
            elif not body.strip():
                empty.append(path)
            else:
                lows.append((path, lowest(body)))
                broken += [(path, text, one) for one in self._astray(path, text)]
        listed = [entry.path for entry in self.listing.entries()]
        dead = [entry for entry in self.listing.entries() if not self._is_there(entry.path)]
        moved, was = self._moved() if broken or dead else ({}, {})
        named = ((path, problem_of(path)) for path in self.notes)
        wrong = [OddName(path=path, problem=why) for path, why in named if why]
        unlisted = sorted({*self.notes} - {*listed} - {*empty})
        found = (broken, unlisted, dead, wrong, empty)
        over = sum(max(0, len(one) - FINDINGS_MAX) for one in found)
        return Survey(
            broken_links=tuple(
                _broken(path, text, one, self._moved_to(path, one.link, moved, was))
                for path, text, one in broken[:FINDINGS_MAX]
            ),
            unlisted=tuple(unlisted[:FINDINGS_MAX]),
            dead_entries=tuple(
                DeadEntry(line=one.line + 1, path=one.path, moved_to=moved.get(one.path))
                for one in dead[:FINDINGS_MAX]
            ),
            duplicates=tuple(islice(self._duplicates(lows, listed), FINDINGS_MAX)),
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
        """The notes with links to one, once `survey` has read them and `led_on` changed them."""
        return self._referring.get(path, set())

    def led_on(self, source: str, text: str, ways: dict[str, str]) -> str:
        """The text of `source` with its broken links to some targets leading to other notes."""
        for new in ways.values():
            self._referring.setdefault(new, set()).add(source)

        def wanted(one: LinkSpan) -> str | None:
            is_broken = self.leads_to(source, one.link) is None
            return ways.get(one.link.target) if is_broken else None

        return relinked(text, source, wanted)

    def without_links_to(self, source: str, text: str, drop: str, keep: str) -> str:
        """The text of `source` with its links to one note leading to another."""

        def wanted(one: LinkSpan) -> str | None:
            return keep if self.leads_to(source, one.link) == drop else None

        return relinked(text, source, wanted)

    def as_part_of(self, drop: str, keep: str) -> str:
        """The text of `drop` as it is to stand in `keep`, its links leading where they led."""

        def wanted(one: LinkSpan) -> str | None:
            found = self.leads_to(drop, one.link)
            if found == drop:
                return keep
            is_elsewhere = posixpath.dirname(drop) != posixpath.dirname(keep)
            if one.link.kind == "wiki" or not is_elsewhere:
                return None
            return found or target_from(drop, one.link)

        return relinked(self.text(drop) or "", drop, wanted, seen_from=keep)

    def _astray(self, source: str, text: str) -> Iterator[LinkSpan]:
        for one in link_spans(text):
            found = self.leads_to(source, one.link)
            if found is not None:
                self._referring.setdefault(found, set()).add(source)
            elif self._leads_astray(source, one):
                yield one

    def _leads_astray(self, source: str, one: LinkSpan) -> bool:
        if one.link.kind == "wiki":
            name = one.link.target
            return name not in self._basenames and not self._is_there(name)
        target = target_from(source, one.link)
        # What lies outside the notebook is nobody's business here.
        return target is not None and not any(map(self._is_there, (target, target + _SUFFIX)))

    def _is_there(self, path: str) -> bool:
        return path in self._files or self._repository.tree.is_there(path)

    def _moved(self) -> tuple[dict[str, str], dict[str, str]]:
        """Where files stand now that stood elsewhere, by old path; and where they stood first."""
        moved: dict[str, str] = {}
        was: dict[str, str] = {}
        for logged in islice(self._repository.log(), _LOG_MAX):
            for move in moves_in(self._repository.changes_of(logged.commit)):
                now = moved.get(move.new, move.new)
                moved.setdefault(move.old, now)
                was[now] = move.old
        return {old: new for old, new in moved.items() if new in self._files}, was

    def _moved_to(
        self, source: str, link: Link, moved: dict[str, str], was: dict[str, str]
    ) -> str | None:
        for start in (source, was.get(source)):
            target = target_from(start, link) if start else None
            for path in (target, f"{target}{_SUFFIX}") if target else ():
                if path in moved or (start != source and path in self._files):
                    return moved.get(path, path)
        return None

    def _duplicates(
        self, lows: list[tuple[str, tuple[int, ...]]], listed: list[str]
    ) -> Iterator[Duplicate]:
        """Pairs of which no note is in another; the next run sees the rest."""
        places = {path: at for at, path in reversed(list(enumerate(listed)))}
        taken: set[str] = set()
        for pair in pairs(lows, lambda path: body_of(self.text(path) or "")):
            if pair.a in taken or pair.b in taken:
                continue
            taken |= {pair.a, pair.b}
            keep, drop = sorted(
                (pair.a, pair.b),
                key=lambda path: (places.get(path, len(listed)), -len(self.text(path) or ""), path),
            )
            kept = self.text(keep) or ""
            yield Duplicate(
                keep=keep,
                drop=drop,
                likeness=pair.likeness,
                adds=parts_only_in(self.as_part_of(drop, keep), kept),
                held_back=self._held_back(keep, drop),
            )

    def _held_back(self, keep: str, drop: str) -> str | None:
        if not self._together((keep, drop)):
            return "they are not of one person, or not for the same eyes"
        text = self.text(drop) or ""
        head = text.removesuffix(body_of(text)).strip()
        if head and not (self.text(keep) or "").startswith(head):
            return "what it says of itself above its text differs"
        return None


def _is_note(path: str) -> bool:
    hidden = any(part.startswith(".") for part in path.split("/"))
    return path.endswith(_SUFFIX) and not hidden and not is_index(path)


def _broken(path: str, text: str, one: LinkSpan, moved_to: str | None) -> BrokenLink:
    line = text.count("\n", 0, one.start) + 1
    return BrokenLink(path=path, line=line, target=one.link.target, moved_to=moved_to)


def _decoded(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")
