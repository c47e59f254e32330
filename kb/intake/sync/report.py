"""The result of every source that was seen."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final, Literal

import msgspec
from msgspec import Struct

from kb.model.ids import DocId
from kb.model.origin import Origin

SyncOutcome = Literal["synced", "failed", "gone", "held_back", "busy"]
PartKind = Literal["mails", "attachments", "records"]
Outcome = Literal["added", "updated", "unchanged", "resurrected", "skipped", "failed"]
ProblemOutcome = Outcome | Literal["held_back"]


class DocLine(Struct, frozen=True, kw_only=True):
    """A source that is in the store now; doc_id is empty in a dry run for what is new."""

    doc_id: DocId
    source: str
    status: Outcome


class SourceProblem(Struct, frozen=True, kw_only=True):
    """A source that was not added, or not completely.

    `outcome` is the one that counts it, or `held_back` for a mailbox whose vanished mails keep
    their docs; that is also counted as what else became of it.
    """

    source: str
    outcome: ProblemOutcome
    reason: str


class PartCounts(Struct, frozen=True, kw_only=True):
    """What became of the mails of the files seen, of their attachments, or of an export's records.

    scanned is the sum of the six outcomes after it.
    """

    scanned: int = 0
    added: int = 0
    updated: int = 0
    unchanged: int = 0
    resurrected: int = 0
    skipped: int = 0
    failed: int = 0
    removed: int = 0
    """Docs whose mail is no longer in its file; not among those scanned."""


NO_PARTS: Final = PartCounts()


class AddReport(Struct, frozen=True, kw_only=True):
    """scanned = added + updated + unchanged + resurrected + skipped + failed, always."""

    scanned: int
    added: int
    updated: int
    unchanged: int
    resurrected: int
    skipped: int
    failed: int
    docs: tuple[DocLine, ...]
    problems: tuple[SourceProblem, ...]
    ocr_waiting: int = 0
    """Files of this call whose pages are pictures, which are read in the background."""
    ocr_missing: int = 0
    """Those that would be if `tesseract` were installed."""
    mails: PartCounts = NO_PARTS
    """The mails of mailboxes; a mailbox itself is one source."""
    attachments: PartCounts = NO_PARTS
    """Of the mails that were read; those of unchanged mails are not looked at."""
    records: PartCounts = NO_PARTS
    """The conversations, pages and notes of exports; an export itself is one source."""
    moved: int = 0
    """How many of them were recognised in a new place."""
    hold_back_reason: str | None = None
    """Why docs of vanished mails were not removed."""
    transaction: str | None = None
    """The token of a state of the home that has all of it; None where nothing was written."""


class SiteReport(Struct, frozen=True, kw_only=True):
    """What became of one source with many pages."""

    report: AddReport
    after: Origin
    """The source as the sync leaves it."""
    removed: int = 0
    hold_back_reason: str | None = None
    """Why docs of vanished pages were not removed."""
    stopped: str | None = None
    """Why not all of it was looked at; the next run goes on."""


class SourceLine(Struct, frozen=True, kw_only=True):
    """The result of one source; scanned is the sum of the six outcomes after it."""

    origin_id: str
    kind: str
    location: str
    outcome: SyncOutcome
    scanned: int = 0
    added: int = 0
    updated: int = 0
    unchanged: int = 0
    resurrected: int = 0
    skipped: int = 0
    failed: int = 0
    moved: int = 0
    """How many of them were recognised in a new place."""
    removed: int = 0
    """Docs whose source is gone; not among those scanned."""
    reason: str | None = None
    problems: tuple[SourceProblem, ...] = ()
    mails: PartCounts = NO_PARTS
    attachments: PartCounts = NO_PARTS
    records: PartCounts = NO_PARTS


class SyncReport(Struct, frozen=True, kw_only=True):
    """The sources' lines, and their sums."""

    sources: tuple[SourceLine, ...]
    scanned: int
    added: int
    updated: int
    unchanged: int
    resurrected: int
    skipped: int
    failed: int
    moved: int
    removed: int
    mails: PartCounts
    attachments: PartCounts
    records: PartCounts


class Tally:
    """Collects outcomes; each source is counted exactly once."""

    def __init__(self) -> None:
        self._counts: dict[Outcome, int] = {}
        self._docs: list[DocLine] = []
        self._problems: list[SourceProblem] = []
        self._ocr_waiting = 0
        self._ocr_missing = 0
        self._parts: dict[tuple[PartKind, str], int] = {}
        self.moved = 0
        """How many sources were recognised in a new place."""
        self.hold_back_reason: str | None = None
        """Why docs of vanished mails stay; the first reason there was."""

    def part(self, kind: PartKind, outcome: Outcome | Literal["removed"], count: int = 1) -> None:
        """Count docs of this kind."""
        self._parts[kind, outcome] = self._parts.get((kind, outcome), 0) + count

    def part_left(
        self, kind: PartKind, source: str, outcome: Literal["skipped", "failed"], reason: str
    ) -> None:
        """Count one that was skipped or failed."""
        self.part(kind, outcome)
        self.note(source, outcome, reason)

    def _part_counts(self, kind: PartKind) -> PartCounts:
        counts = {name: n for (of, name), n in self._parts.items() if of == kind}
        scanned = sum(n for name, n in counts.items() if name != "removed")
        return PartCounts(scanned=scanned, **counts)

    def has_pictures(self, *, can_be_read: bool) -> None:
        """Count a file with pages that are pictures; it is also counted as what it became."""
        self._ocr_waiting += can_be_read
        self._ocr_missing += not can_be_read

    def took(self, source: str, doc_id: DocId, status: Outcome) -> None:
        """A source that is in the store now."""
        self._counts[status] = self._counts.get(status, 0) + 1
        self._docs.append(DocLine(doc_id=doc_id, source=source, status=status))

    def left(self, source: str, outcome: Literal["skipped", "failed"], reason: str) -> None:
        """Count a source that was skipped or failed."""
        self._counts[outcome] = self._counts.get(outcome, 0) + 1
        self.note(source, outcome, reason)

    def hold_back(self, source: str, reason: str) -> None:
        """Say of a source that is counted elsewhere that docs of it stay, though they are gone."""
        self.note(source, "held_back", reason)
        self.hold_back_reason = self.hold_back_reason or f"{source}: {reason}"

    def note(self, source: str, outcome: ProblemOutcome, reason: str) -> None:
        """Add a remark on a source that is counted elsewhere."""
        self._problems.append(SourceProblem(source=source, outcome=outcome, reason=reason))

    @property
    def scanned(self) -> int:
        """How many sources have an outcome."""
        return sum(self._counts.values())

    def report(self) -> AddReport:
        """The figures and lines so far."""
        count = self._counts.get
        return AddReport(
            scanned=self.scanned,
            added=count("added", 0),
            updated=count("updated", 0),
            unchanged=count("unchanged", 0),
            resurrected=count("resurrected", 0),
            skipped=count("skipped", 0),
            failed=count("failed", 0),
            docs=tuple(self._docs),
            problems=tuple(self._problems),
            ocr_waiting=self._ocr_waiting,
            ocr_missing=self._ocr_missing,
            mails=self._part_counts("mails"),
            attachments=self._part_counts("attachments"),
            records=self._part_counts("records"),
            moved=self.moved,
            hold_back_reason=self.hold_back_reason,
        )


def merged_report(reports: Sequence[AddReport]) -> AddReport:
    """The reports of several calls as one."""
    if len(reports) == 1:
        return reports[0]
    outcomes = ("scanned", "added", "updated", "unchanged", "resurrected", "skipped", "failed")
    counts = (*outcomes, "moved", "ocr_waiting", "ocr_missing")
    sums = {name: sum(getattr(report, name) for report in reports) for name in counts}
    reasons = (report.hold_back_reason for report in reports)
    return AddReport(
        hold_back_reason=next(filter(None, reasons), None),
        mails=sum_of(report.mails for report in reports),
        attachments=sum_of(report.attachments for report in reports),
        records=sum_of(report.records for report in reports),
        docs=tuple(line for report in reports for line in report.docs),
        problems=tuple(problem for report in reports for problem in report.problems),
        **sums,
    )


def total_report(lines: list[SourceLine]) -> SyncReport:
    """The report of all sources, with the sums of their counts."""
    apart = ("mails", "attachments", "records")
    names = [name for name in SyncReport.__struct_fields__ if name not in ("sources", *apart)]
    sums: dict[str, Any] = {name: sum(getattr(line, name) for line in lines) for name in names}
    sums |= {name: sum_of(getattr(line, name) for line in lines) for name in apart}
    return SyncReport(sources=tuple(lines), **sums)


def sum_of(parts: Iterable[PartCounts]) -> PartCounts:
    """The sum of several counts."""
    each = list(parts)
    names = PartCounts.__struct_fields__
    return PartCounts(**{name: sum(getattr(counts, name) for counts in each) for name in names})


def with_failed(report: AddReport, reasons: Mapping[DocId, str]) -> AddReport:
    """The report with docs counted as failures if work on them failed for good.

    `reasons` says why, by doc. The sum of the counts stays.
    """
    failed = [line for line in report.docs if line.doc_id in reasons]
    if not failed:
        return report
    moved = {
        status: sum(1 for line in failed if line.status == status)
        for status in ("added", "updated", "unchanged", "resurrected")
    }
    changes: dict[str, Any] = {status: getattr(report, status) - n for status, n in moved.items()}
    problems = [
        SourceProblem(source=line.source, outcome="failed", reason=reasons[line.doc_id])
        for line in failed
    ]
    lines = [
        msgspec.structs.replace(line, status="failed") if line.doc_id in reasons else line
        for line in report.docs
    ]
    return msgspec.structs.replace(
        report,
        failed=report.failed + len(failed),
        docs=tuple(lines),
        problems=(*report.problems, *problems),
        **changes,
    )
