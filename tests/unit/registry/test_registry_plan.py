"""What is taken, given what is offered and what is here."""

from pathlib import Path

import pytest

from kb.knowledge.registry.index import IndexEntry, entry_path
from kb.knowledge.registry.plan import LocalEntry, Offer, decide
from kb.model.registry import PulledEntry

OLD, NEW, MINE = "1" * 64, "2" * 64, "3" * 64
FILE = Path("boats.md")


def offer(version: str = "1.10.0") -> Offer:
    entry = IndexEntry(
        zettel_id="boats",
        title="Boats",
        entry_type="note",
        version=version,
        path=entry_path("boats"),
        sha256=NEW,
        size=10,
    )
    return Offer(registry="team", entry=entry)


def pulled(version: str = "1.9.0", sha256: str = OLD, wanted: str = "") -> PulledEntry:
    return PulledEntry(
        zettel_id="boats",
        registry="team",
        version=version,
        sha256=sha256,
        wanted_sha256=wanted,
        pulled_ms=1,
    )


CASES = [
    # known, its file's hash, removed; asked, theirs: outcome, is fetched, is put aside
    (None, None, False, False, False, "new", True, False),
    (None, NEW, False, False, False, "new", True, False),
    (None, MINE, False, True, False, "kept", False, False),
    (None, MINE, False, False, True, "new", True, True),
    (pulled("", "", OLD), OLD, False, False, False, "new", True, False),
    (pulled("", "", OLD), MINE, False, False, False, "kept", False, False),
    (pulled(), OLD, False, False, False, "updated", True, False),
    (pulled(), MINE, False, False, False, "kept", False, False),
    (pulled(), MINE, False, True, True, "updated", True, True),
    (pulled(), NEW, False, False, False, "updated", True, False),
    (pulled(), None, False, False, False, "kept", False, False),
    (pulled(), None, False, True, False, "new", True, False),
    (pulled(), OLD, True, False, False, "kept", False, False),
    (pulled("1.10.0", NEW), NEW, True, True, False, "updated", True, False),
    (pulled("1.10.0", NEW), NEW, False, True, True, "unchanged", False, False),
    (pulled("1.10.0", OLD), OLD, False, False, False, "unchanged", False, False),
    (pulled("2.0.0"), OLD, False, True, True, "unchanged", False, False),
    (pulled("1.10.0", OLD, NEW), OLD, False, False, False, "updated", True, False),
]


@pytest.mark.parametrize(
    ("known", "sha256", "removed", "asked", "theirs", "outcome", "takes", "aside"), CASES
)
def test_every_state_has_its_step(
    known: PulledEntry | None,
    sha256: str | None,
    removed: bool,
    asked: bool,
    theirs: bool,
    outcome: str,
    takes: bool,
    aside: bool,
) -> None:
    """A file that is neither the registry's nor on its way from there is put aside, or stays."""
    here = LocalEntry(
        pulled=known, path=FILE if sha256 else None, sha256=sha256, is_removed=removed
    )
    step = decide(offer(), here, by_name=asked, take_theirs=theirs, unread={}, order=1)
    assert (step.outcome, step.takes, step.aside) == (outcome, takes, aside)
    assert (step.reason is None) == (outcome != "kept")


def test_a_file_that_cannot_be_read_is_kept() -> None:
    """Nobody knows whether it was changed."""
    here = LocalEntry(pulled=pulled(), path=FILE, sha256=None)
    step = decide(offer(), here, by_name=False, take_theirs=False, unread={}, order=1)
    assert (step.outcome, step.takes) == ("kept", False)


@pytest.mark.parametrize(("asked", "outcome"), [(False, "kept"), (True, "updated")])
def test_a_later_registry_takes_nothing_over(asked: bool, outcome: str) -> None:
    """While the first one was not read, its entries are taken from another by name only."""
    here = LocalEntry(pulled=pulled(), path=FILE, sha256=OLD)
    step = decide(offer(), here, by_name=asked, take_theirs=False, unread={"team": 1}, order=2)
    assert step.outcome == outcome
