"""What a pull is to do, and its report."""

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

    template = "no registry could be read ({detail}); what is here can be used as before"


class NotOffered(NotFound):
    """No registry that could be read has an entry of this id."""

    template = "no registry has the entry {id}; `kb registry ls` lists the registries"


class PullSelection(Struct, frozen=True, kw_only=True):
    """Which entries a pull is to take."""

    names: tuple[str, ...] = ()
    """Ids; none means all that is new or newer."""
    registry: str | None = None
    """This one alone."""
    theirs: bool = False
    """Whether the registry's file is taken where another is in its place; that is put aside."""


class PullTask(Struct, frozen=True, kw_only=True):
    """An entry that is offered, and what is to become of it."""

    offer: Offer
    here: LocalEntry
    step: PullStep

    @property
    def ident(self) -> str:
        """The entry's id."""
        return self.offer.entry.zettel_id


class PulledLine(Struct, frozen=True, kw_only=True):
    """What became of one entry."""

    zettel_id: str
    registry: str
    version: str
    """In the registry; empty where it is not there any more."""
    before: str
    """The version that was pulled before; empty where none was."""
    outcome: PullOutcome
    reason: str | None = None
    put_aside: str | None = None
    """Where the file that was in its place lies now."""
    space: SpaceName | None = None
    """Which one it is in; None where one alone was asked."""


class ReadLine(Struct, frozen=True, kw_only=True):
    """What was found of one registry."""

    name: str
    location: str
    outcome: Literal["changed", "unchanged", "failed"]
    entries: int
    shadowed: tuple[str, ...]
    """Entries that a registry added before it gives, so that they were not taken from here."""
    reason: str | None = None
    space: SpaceName | None = None
    """Whose it is; None where one alone was asked."""


class PullReport(Struct, frozen=True, kw_only=True):
    """seen = new + updated + unchanged + kept + failed, always."""

    seen: int
    new: int
    updated: int
    unchanged: int
    kept: int
    failed: int
    ready: int
    """Of the new and updated, those that came with chunks and vectors of this home's model."""
    registries: tuple[ReadLine, ...]
    entries: tuple[PulledLine, ...]
    """All but the unchanged, by id."""


def reported(
    lines: list[PulledLine], registries: tuple[ReadLine, ...], *, ready: int
) -> PullReport:
    """The lines, one to each entry that was seen, added up."""
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
    """The pulls of several spaces as one report, each line with its space."""
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
    """What became of an entry, that it failed, or where the file in its place was put."""
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
    """Entries that were pulled, are still here, and are offered no more."""
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
                reason=f"not in {registry} any more; what is here stays",
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
