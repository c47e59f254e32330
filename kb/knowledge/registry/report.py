"""What a pull is asked for, and what it says it did."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from kb.errors import KbError, NotFound, SourceError
from kb.knowledge.registry.plan import Here, Offer, Offers, PullOutcome, Step
from kb.knowledge.registry.reading import Reading
from kb.model.search import SpaceName
from kb.model.source import display_name


class RegistriesUnread(KbError):
    """None of the registries could be read."""

    template = "no registry could be read ({detail}); what is here can be used as before"


class NotOffered(NotFound):
    """No registry that could be read has an entry of this id."""

    template = "no registry has the entry {id}; `kb registry ls` lists the registries"


class Wanted(Struct, frozen=True, kw_only=True):
    """What a pull is asked for."""

    names: tuple[str, ...] = ()
    """Ids; none means all that is new or newer."""
    registry: str | None = None
    """This one alone."""
    theirs: bool = False
    """Whether the registry's file is taken where another is in its place; that is put aside."""


class Task(Struct, frozen=True, kw_only=True):
    """An entry that is offered, and what is to become of it."""

    offer: Offer
    here: Here
    step: Step

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
    """Of the new and updated, those that came with passages and vectors of this home's model."""
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


def together(reports: Sequence[tuple[SpaceName, PullReport]]) -> PullReport:
    """What the pulls of several spaces did, each line with its space."""
    each = [report for _, report in reports]
    return PullReport(
        seen=sum(one.seen for one in each),
        new=sum(one.new for one in each),
        updated=sum(one.updated for one in each),
        unchanged=sum(one.unchanged for one in each),
        kept=sum(one.kept for one in each),
        failed=sum(one.failed for one in each),
        ready=sum(one.ready for one in each),
        registries=tuple(
            replace(line, space=name) for name, one in reports for line in one.registries
        ),
        entries=tuple(replace(line, space=name) for name, one in reports for line in one.entries),
    )


def line_of(
    task: Task, *, failure: SourceError | None = None, aside: Path | None = None
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


def gone_lines(here: dict[str, Here], lost: dict[str, str]) -> list[PulledLine]:
    """Entries that were pulled, are still here, and are offered no more."""
    lines: list[PulledLine] = []
    for ident, registry in lost.items():
        known = here[ident].pulled
        if known is not None and here[ident].path is not None:
            line = PulledLine(
                zettel_id=ident,
                registry=registry,
                version="",
                before=known.version,
                outcome="kept",
                reason=f"not in {registry} any more; what is here stays",
            )
            lines.append(line)
    return lines


def read_lines(readings: Sequence[Reading], offers: Offers) -> Iterator[ReadLine]:
    """What was found of each registry."""
    for one in readings:
        outcome: Literal["changed", "unchanged"] = "unchanged" if one.is_unchanged else "changed"
        yield ReadLine(
            name=one.record.name,
            location=one.record.location,
            outcome="failed" if one.error else outcome,
            entries=len(one.index.entries) if one.index and not one.error else 0,
            shadowed=offers.shadowed.get(one.record.name, ()),
            reason=str(one.error) if one.error else None,
        )
