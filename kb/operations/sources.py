"""Sources of an open home: the folders and pages that are kept current."""

from typing import TYPE_CHECKING

from msgspec import Struct

from kb.model.origin import Origin
from kb.model.source import on_machine

if TYPE_CHECKING:
    from kb.home.app import App

CurrentSource = Origin


def place_of(source: CurrentSource) -> str:
    """The place of a source for people, with its machine where machines share the home."""
    return on_machine(source.location, source.machine)


class SourceList(Struct, frozen=True, kw_only=True):
    """Every source that is kept current, as far as the caller sees what it brings."""

    sources: list[CurrentSource]


def list_sources(app: "App") -> SourceList:
    """The sources, in the order of kind and place."""
    from kb.intake.sync.origins import is_seen, list_origins

    with app.store.read() as txn:
        return SourceList(sources=[o for o in list_origins(txn) if is_seen(o, app.caller)])


def remove_source(app: "App", ident: str) -> CurrentSource:
    """Leave a source of the caller alone from now on, by its id or place; its docs stay.

    Raises UnknownSource, AmbiguousId, ReadOnlyHome.
    """
    from kb.intake.sync.origins import unregister

    return unregister(app.store, ident)
