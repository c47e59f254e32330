"""The selection of a pull, and its report."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from kb.errors import KbError, NotFound, SourceError
from kb.knowledge.registry.plan import LocalEntry, Offer, Offers, PullOutcome, PullStep
from kb.knowledge.registry.reading import RegistryReading
from kb.model.search import SpaceName
from kb.model.source import display_name


class RegistriesUnread(KbError):
    """None of the registries could be read."""

    template = "no registry could be read ({detail}); the entries that are here stay as they are"


class NotOffered(NotFound):
    """No readable registry has an entry with this id."""

    template = "no registry has the entry {id}; `kb registry ls` lists the registries"


class PullSelection(Struct, frozen=True, kw_only=True):
    """Which entries a pull is to take."""

    names: tuple[str, ...] = ()
    """Ids; empty for all new and newer entries."""
    registry: str | None = None
    """Only this registry."""
    theirs: bool = False
    """Whether the registry's file replaces a different one, which is moved aside."""


class PullTask(Struct, frozen=True, kw_only=True):
    """An offered entry, and the decision on it."""

    offer: Offer
    here: LocalEntry
    step: PullStep

    @property
    def ident(self) -> str:
        """The entry's id."""
        return self.offer.entry.zettel_id


class PulledLine(Struct, frozen=True, kw_only=True):
    """The result for one entry."""

    zettel_id: str
    registry: str
    version: str
    """Its version in the registry; empty if it is not there any more."""
    before: str
    """The version that was pulled before; empty if none was."""
    outcome: PullOutcome
    reason: str | None = None
    put_aside: str | None = None
    """The new path of the file that had its place."""
    space: SpaceName | None = None
    """Its space; None if only one was asked."""


class ReadLine(Struct, frozen=True, kw_only=True):
    """The result for one registry."""

    name: str
    location: str
    outcome: Literal["changed", "unchanged", "failed"]
    entries: int
    shadowed: tuple[str, ...]
    """Entries that were not taken from here, because an earlier registry offers them."""
    reason: str | None = None
    space: SpaceName | None = None
    """Its space; None if only one was asked."""


class PullReport(Struct, frozen=True, kw_only=True):
    """seen = new + updated + unchanged + kept + failed, always."""

    seen: int
    new: int
    updated: int
    unchanged: int
    kept: int
    failed: int
    ready: int
    """How many new and updated entries came with chunks and vectors of this home's model."""
    registries: tuple[ReadLine, ...]
    entries: tuple[PulledLine, ...]
    """All lines but those of unchanged entries, by id."""


def reported(
    lines: list[PulledLine], registries: tuple[ReadLine, ...], *, ready: int
) -> PullReport:
    """The report of these lines, one for each entry."""
    counts = [line.outcome for line in lines]
    return PullReport(
        seen=len(lines),
        new=counts.count("new"),
        updated=counts.count("updated"),
        unchanged=counts.count("unchanged"),
        kept=counts.count("kept"),
        failed=counts.count("failed"),
        ready=ready,
        registries=registries,
        entries=tuple(
            sorted(
                (line for line in lines if line.outcome != "unchanged"),
                key=lambda line: line.zettel_id,
            )
        ),
    )


def combined(reports: Sequence[tuple[SpaceName, PullReport]]) -> PullReport:
    """The reports of several spaces as one, each line with its space."""
    each = [report for _, report in reports]
    return PullReport(
        seen=sum(report.seen for report in each),
        new=sum(report.new for report in each),
        updated=sum(report.updated for report in each),
        unchanged=sum(report.unchanged for report in each),
        kept=sum(report.kept for report in each),
        failed=sum(report.failed for report in each),
        ready=sum(report.ready for report in each),
        registries=tuple(
            replace(line, space=name) for name, report in reports for line in report.registries
        ),
        entries=tuple(
            replace(line, space=name) for name, report in reports for line in report.entries
        ),
    )


def line_of(
    task: PullTask, *, failure: SourceError | None = None, aside: Path | None = None
) -> PulledLine:
    """The result for an entry: its error, or the new path of the file in its place."""
    return PulledLine(
        zettel_id=task.ident,
        registry=task.offer.registry,
        version=task.offer.entry.version,
        before=task.here.pulled.version if task.here.pulled else "",
        outcome="failed" if failure else task.step.outcome,
        reason=str(failure) if failure else task.step.reason,
        put_aside=display_name(aside) if aside else None,
    )


def gone_lines(here: dict[str, LocalEntry], lost: dict[str, str]) -> list[PulledLine]:
    """Lines of entries that were pulled and are still here, but no longer offered."""
    lines: list[PulledLine] = []
    for ident, registry in lost.items():
        pulled = here[ident].pulled
        if pulled is not None and here[ident].path is not None:
            line = PulledLine(
                zettel_id=ident,
                registry=registry,
                version="",
                before=pulled.version,
                outcome="kept",
                reason=f"not in {registry} any more; the entry here stays",
            )
            lines.append(line)
    return lines


def read_lines(readings: Sequence[RegistryReading], offers: Offers) -> Iterator[ReadLine]:
    """What was found of each registry."""
    for reading in readings:
        outcome: Literal["changed", "unchanged"] = (
            "unchanged" if reading.is_unchanged else "changed"
        )
        yield ReadLine(
            name=reading.record.name,
            location=reading.record.location,
            outcome="failed" if reading.error else outcome,
            entries=len(reading.index.entries) if reading.index and not reading.error else 0,
            shadowed=offers.shadowed.get(reading.record.name, ()),
            reason=str(reading.error) if reading.error else None,
        )
