"""Entries of registries, pulled into an open home."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from kb.home.app import App
    from kb.home.spaces.homes import SpaceHome
    from kb.knowledge.registry.report import PulledLine, PullReport
    from kb.model.search import SpaceName

    PullResult = PullReport
    """What became of the entries, and how the registries were read."""
    PulledEntryResult = PulledLine
    """What became of one entry."""
    SpacePull = tuple[SpaceName, PullReport]
    """The result of one space, by its name."""


class PullRequest(Struct, frozen=True, kw_only=True):
    """Which entries are pulled."""

    names: tuple[str, ...] = ()
    """Ids; none means all that are new or newer."""
    registry: str | None = None
    """This one alone."""
    theirs: bool = False
    """Whether the registry's file is taken where another is in its place; that is put aside."""


def run(app: "App", request: PullRequest) -> "PullResult":
    """Take entries from registries into the home; to be found they still need workers.

    A file that was changed here is left as it is, unless the request says otherwise; what a person
    removed comes back when it is named, and only then. One entry's failure, or one registry's, is
    its own. Raises RegistriesUnread, NotOffered, UnknownRegistry, ReadOnlyHome, StoreFull.
    """
    from kb.intake.sync.add import AddOptions
    from kb.knowledge.registry.report import PullSelection

    selection = PullSelection(names=request.names, registry=request.registry, theirs=request.theirs)
    options = AddOptions(
        file_bytes_max=app.settings.ingest.file_bytes_max,
        keep_current=False,
        revive=bool(request.names),
    )
    with app.parser() as parser:
        return app.registries.pull(selection, lambda: app.adder(parser, options))


def combined(results: "Sequence[SpacePull]") -> "PullResult":
    """The results of several spaces as one, each entry and registry with its space."""
    from kb.knowledge.registry import report

    return report.combined(results)


def made_homes(homes: "Sequence[SpaceHome]") -> "tuple[SpaceHome, ...]":
    """The homes that were made, or the first of all where none was."""
    from kb.store.content.layout import HomePaths

    return tuple(home for home in homes if HomePaths(home.home).has_store) or tuple(homes[:1])
