"""Which home has what an id names?"""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from kb.errors import AmbiguousId, NotFound
from kb.home.open_home import OpenHome
from kb.home.spaces.each import FailedSpace, ask_each
from kb.model.doc import Scope
from kb.model.ids import DocId
from kb.model.search import Filters, SearchRequest, SpaceName
from kb.model.source import display_name, names_machine, place_on
from kb.operations import entries
from kb.search.resolve import ResolvedId, resolve_doc, resolve_id
from kb.store.kv import ReadTxn

if TYPE_CHECKING:
    import datetime as dt

Finds = Callable[[OpenHome], str]
"""The full id of what is sought in a space. Raises NotFound, and AmbiguousId for a short one."""


def locate(
    homes: Sequence[OpenHome], ident: str, finds: Finds, failed: list[FailedSpace]
) -> Mapping[SpaceName | None, str]:
    """The full id that `finds` finds for an id, by the homes that have it, in their order.

    Raises AmbiguousId where it is short for one thing here and for another there, NotFound
    where it names nothing, and a space's own error where only that one could tell.
    """

    def look(home: OpenHome) -> str | None:
        try:
            return finds(home)
        except NotFound:
            return None

    answers = ask_each(homes, look, failed)
    ids = {home.name: full for home, full in answers if full is not None}
    if len({full for full in ids.values() if full.startswith(ident)}) > 1:
        each = (f"{full} in the {name} space" for name, full in ids.items())
        raise AmbiguousId(id=ident, candidates=", ".join(each))
    if not ids:
        raise failed[0].error if failed else NotFound(id=ident)
    return ids


def locate_pack(
    homes: Sequence[OpenHome], name: str, scope: Scope, failed: list[FailedSpace]
) -> Mapping[SpaceName | None, str]:
    """The id of the pack that a name means, by space. Raises UnknownPack, SharedSelector."""
    from kb.knowledge.packs.load import UnknownPack
    from kb.knowledge.packs.register import resolve

    def look(home: OpenHome) -> str:
        with home.store.read() as txn:
            return resolve(txn, name, home.scope(scope)).pack_id

    try:
        return locate(homes, name, look, failed)
    except NotFound as error:
        raise UnknownPack(id=name) from error


def doc_named(ident: str, scope: Scope) -> Finds:
    """Finds the doc that an id names for a scope."""

    def finds(home: OpenHome) -> str:
        with home.store.read() as txn:
            return resolve_doc(txn, ident, home.scope(scope)).doc_id

    return finds


def doc_of_any_state(ident: str, scope: Scope) -> Finds:
    """Finds the doc that an id names; for an operator also an older version or a removed one."""

    def finds(home: OpenHome) -> str:
        with home.store.read() as txn:
            return entries.doc_named(txn, ident, home.scope(scope)).doc_id

    return finds


def doc_or_chunk(ident: str, scope: Scope) -> Finds:
    """Finds the doc or the chunk that an id names for a scope."""

    def finds(home: OpenHome) -> str:
        with home.store.read() as txn:
            return _full(resolve_id(txn, ident, home.scope(scope)))

    return finds


def text_named(ident: str, scope: Scope) -> Finds:
    """Finds the doc, chunk or entry that an id names for a scope."""

    def finds(home: OpenHome) -> str:
        with home.store.read() as txn:
            return _full(open_text(txn, ident, home.scope(scope)))

    return finds


def source_named(source: str) -> str:
    """What docs call a source that is named from here: a path by where it really lies."""
    if "://" in source or (names_machine(source) and not os.path.exists(source)):
        return source
    return display_name(Path(os.path.realpath(os.path.expanduser(source))))


def place_from_here(named: str) -> str:
    """What names a doc: the path of a file that is there as docs call it, else as it was given."""
    is_path = "/" in named or "." in named or named.startswith("~")
    is_there = is_path and os.path.exists(os.path.expanduser(named))
    return source_named(named) if is_there else named


def id_named(homes: Sequence[OpenHome], named: str, scope: Scope) -> str:
    """The full id of the doc, chunk or entry that an id names for a scope, or else a path.

    A path is that of `doc_at`. Raises NotFound and AmbiguousId, and a space's own error where only
    that one could tell.
    """
    from kb.operations.doc_at import doc_at

    failed: list[FailedSpace] = []
    try:
        return next(iter(locate(homes, named, text_named(named, scope), failed).values()))
    except NotFound:
        return doc_at(homes, named, scope, failed)


def open_text(txn: ReadTxn, ident: str, scope: Scope) -> ResolvedId:
    """The entry that a scope sees by its whole id, or else what `resolve_id` opens and raises."""
    entry = entries.entry_doc(txn, ident)
    if entry is not None and entry.visible_to(scope):
        return ResolvedId(doc=entry, chunk=None, is_older=False)
    return resolve_id(txn, ident, scope)


def home_with(homes: Sequence[OpenHome], located: Mapping[SpaceName | None, str]) -> OpenHome:
    """The first home in which something was located."""
    return next(home for home in homes if home.name in located)


def _full(opened: ResolvedId) -> str:
    return opened.chunk.chunk_id if opened.chunk else opened.doc.doc_id


class LocatedFilters(Struct, frozen=True, kw_only=True):
    """Filters whose docs and packs are named by what each home calls them."""

    filters: Filters
    docs: tuple[Mapping[SpaceName | None, str], ...]
    packs: tuple[Mapping[SpaceName | None, str], ...]
    linked_to: tuple[Mapping[SpaceName | None, str], ...] = ()
    links_from: tuple[Mapping[SpaceName | None, str], ...] = ()
    machines: tuple[str, ...] = ()
    """What this machine is called in homes that machines share."""

    @property
    def names_docs(self) -> bool:
        """Whether docs are named, of which each home has its own."""
        return bool(self.docs or self.linked_to or self.links_from)

    def homes(self, homes: Sequence[OpenHome]) -> list[OpenHome]:
        """The homes that have one of the docs, and one of the packs, where some are named."""
        return [
            home
            for home in homes
            if all(
                not some or any(home.name in ids for ids in some)
                for some in (self.docs, self.packs, self.linked_to, self.links_from)
            )
        ]

    def of(self, home: OpenHome) -> Filters:
        """The filters as one home takes them: with whole ids."""
        machine = home.store.machine
        return msgspec.structs.replace(
            with_places(
                self.filters, lambda places: (place_on(place, machine) for place in places)
            ),
            doc_ids=_ids_in(home, self.docs),
            linked_to=_ids_in(home, self.linked_to),
            links_from=_ids_in(home, self.links_from),
            packs=tuple(ids[home.name] for ids in self.packs if home.name in ids),
        )

    def request_in(self, home: OpenHome, request: SearchRequest) -> SearchRequest:
        """The request with docs, packs and places named as one home names them."""
        return with_filters(request, self.of(home))

    @property
    def of_all(self) -> Filters:
        """The filters with the packs and the places of every home and without docs."""
        packs = dict.fromkeys(ident for ids in self.packs for ident in ids.values())
        machines = self.machines

        def on_all(places: tuple[str, ...]) -> Iterator[str]:
            yield from places
            yield from (place_on(place, name) for name in machines for place in places)

        return msgspec.structs.replace(
            with_places(self.filters, on_all),
            doc_ids=(),
            linked_to=(),
            links_from=(),
            packs=tuple(packs),
        )


def with_filters(request: SearchRequest, filters: Filters) -> SearchRequest:
    """The request with other filters, which may leave docs out."""
    if filters.without:
        from kb.model.left_out import NarrowedSearch

        fields = {name: getattr(request, name) for name in SearchRequest.__struct_fields__}
        request = NarrowedSearch(**fields)
    named = {name: getattr(filters, name) for name in filters.__struct_fields__}
    return msgspec.structs.replace(request, **named)


def with_places(filters: Filters, places_of: Callable[[tuple[str, ...]], Iterable[str]]) -> Filters:
    """The filters with their places, and those of what they leave out, named otherwise."""
    named = msgspec.structs.replace(filters, sources=tuple(places_of(filters.sources)))
    if not filters.without:
        return named
    without = tuple(with_places(one, places_of) for one in filters.without)
    return msgspec.structs.replace(named, without=without)


def _ids_in(home: OpenHome, located: Sequence[Mapping[SpaceName | None, str]]) -> tuple[DocId, ...]:
    return tuple(DocId(ids[home.name]) for ids in located if home.name in ids)


def locate_filters(
    homes: Sequence[OpenHome],
    filters: Filters,
    scope: Scope,
    failed: list[FailedSpace],
    doc_finds: Callable[[str, Scope], Finds] = doc_named,
) -> LocatedFilters:
    """Look for the docs, packs and days that filters name.

    Raises as `locate` and `locate_pack` do, and UsageError for words that are no date.
    """
    if filters.since or filters.until:
        from kb.model.days import dated

        filters = dated(filters, today_in(homes))
    return LocatedFilters(
        filters=filters,
        docs=tuple(
            locate_or_at(homes, ident, doc_finds, scope, failed) for ident in filters.doc_ids
        ),
        packs=tuple(locate_pack(homes, ident, scope, failed) for ident in filters.packs),
        linked_to=tuple(
            locate_or_at(homes, ident, doc_named, scope, failed) for ident in filters.linked_to
        ),
        links_from=tuple(
            locate_or_at(homes, ident, doc_named, scope, failed) for ident in filters.links_from
        ),
        machines=tuple({home.store.machine for home in homes} - {""}),
    )


def today_in(homes: Sequence[OpenHome]) -> "dt.date":
    """The day on this machine, by the clock of the homes."""
    import datetime as dt

    from kb.model.clock import SystemClock

    clock = homes[0].store.clock if homes else SystemClock()
    return dt.datetime.fromtimestamp(clock.now_ms() / 1000).astimezone().date()


def locate_or_at(
    homes: Sequence[OpenHome],
    named: str,
    finds: Callable[[str, Scope], Finds],
    scope: Scope,
    failed: list[FailedSpace],
) -> Mapping[SpaceName | None, str]:
    """What an id names, or else the doc at a path. Raises as `locate` and `doc_at` do."""
    from kb.operations.doc_at import doc_at

    try:
        return locate(homes, named, finds(named, scope), failed)
    except NotFound:
        ident = doc_at(homes, named, scope, failed)
        return locate(homes, ident, finds(ident, scope), failed)
