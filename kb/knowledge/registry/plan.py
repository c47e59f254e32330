"""Plan a pull: what to take from the registries, given what the home has. Pure."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal

from msgspec import Struct

from kb.knowledge.entries import compare
from kb.knowledge.registry.index import IndexEntry
from kb.knowledge.registry.reading import RegistryReading
from kb.model.registry import PulledEntry

PullOutcome = Literal["new", "updated", "unchanged", "kept", "failed"]


class Offer(Struct, frozen=True, kw_only=True):
    """An entry, and the registry that gives it."""

    registry: str
    entry: IndexEntry


class Offers(Struct, frozen=True, kw_only=True):
    """What the registries have to give, each entry once."""

    by_id: dict[str, Offer]
    shadowed: dict[str, tuple[str, ...]]
    """By registry, the entries that one added before it gives."""


class LocalEntry(Struct, frozen=True, kw_only=True):
    """An entry as the home has it."""

    pulled: PulledEntry | None = None
    path: Path | None = None
    """Its file, or one that has its name; None where there is none."""
    sha256: str | None = None
    """Of that file; None where it cannot be read."""
    is_removed: bool = False
    """Whether a person removed it from the searches."""


class PullStep(Struct, frozen=True, kw_only=True):
    """What becomes of an entry."""

    outcome: PullOutcome
    reason: str | None = None
    takes: bool = False
    """Whether its file is fetched."""
    aside: bool = False
    """Whether the file that is here is put aside first."""


def offered(readings: Sequence[RegistryReading]) -> Offers:
    """Of several registries with one entry the first gives it, also when it cannot be reached."""
    winners: dict[str, str] = {}
    by_id: dict[str, Offer] = {}
    shadowed: dict[str, list[str]] = {}
    for reading in readings:
        name = reading.record.name
        for entry in reading.index.entries if reading.index else ():
            if winners.setdefault(entry.zettel_id, name) != name:
                shadowed.setdefault(name, []).append(entry.zettel_id)
            elif reading.error is None:
                by_id[entry.zettel_id] = Offer(registry=name, entry=entry)
    return Offers(by_id=by_id, shadowed={name: tuple(ids) for name, ids in shadowed.items()})


def decide(
    offer: Offer,
    here: LocalEntry,
    *,
    by_name: bool,
    take_theirs: bool,
    unread: Mapping[str, int],
    order: int,
) -> PullStep:
    """What becomes of one entry that is offered by the registry with this `order`.

    `by_name` says that a person named it, `take_theirs` that the registry's file wins over changes
    made here. `unread` has the order of each registry that is known and was not read now.
    """
    pulled = here.pulled
    if pulled is not None and not by_name and unread.get(pulled.registry, order) < order:
        return _kept(f"it comes from {pulled.registry}, which was added first")
    if here.is_removed and not by_name:
        return _kept(f"removed here; kb pull {offer.entry.zettel_id} brings it back")
    if pulled is None or not pulled.sha256:
        return _never_pulled(offer, here, take_theirs=take_theirs)
    return _pulled(offer, pulled, here, by_name=by_name, take_theirs=take_theirs)


def _never_pulled(offer: Offer, here: LocalEntry, *, take_theirs: bool) -> PullStep:
    """An entry that never came, or not wholly."""
    intended_sha256 = here.pulled.wanted_sha256 if here.pulled else ""
    if here.path is None:
        return PullStep(outcome="new", takes=True)
    if here.sha256 is not None and here.sha256 in (intended_sha256, offer.entry.sha256):
        return PullStep(outcome="new", takes=True)
    if take_theirs:
        return PullStep(outcome="new", takes=True, aside=True)
    return _kept("a file of your own is in its place; --theirs puts that aside")


def _pulled(
    offer: Offer, pulled: PulledEntry, here: LocalEntry, *, by_name: bool, take_theirs: bool
) -> PullStep:
    if here.path is None:
        if by_name:
            return PullStep(outcome="new", takes=True)
        return _kept(f"deleted here; kb pull {offer.entry.zettel_id} brings it back")
    is_newer = compare(offer.entry.version, pulled.version) > 0
    if here.sha256 in (pulled.sha256, pulled.wanted_sha256):
        takes = is_newer or bool(pulled.wanted_sha256) or here.is_removed
        return PullStep(outcome="updated" if takes else "unchanged", takes=takes)
    if here.sha256 == offer.entry.sha256:
        return PullStep(outcome="updated", takes=True)
    if take_theirs:
        return PullStep(outcome="updated", takes=True, aside=True)
    newer = f", and {offer.entry.version} is there" if is_newer else ""
    return _kept(f"changed here since {pulled.version}{newer}; --theirs puts that aside")


def withdrawn(
    readings: Iterable[RegistryReading], pulled: Mapping[str, PulledEntry], offers: Offers
) -> dict[str, str]:
    """Entries that were pulled and are offered no more, with the registry that had them."""
    read = {reading.record.name for reading in readings if reading.error is None}
    return {
        ident: record.registry
        for ident, record in pulled.items()
        if record.sha256 and record.registry in read and ident not in offers.by_id
    }


def _kept(reason: str) -> PullStep:
    return PullStep(outcome="kept", reason=reason)
