"""What a search can be narrowed to: the values that docs have, and how many have each."""

from collections import Counter
from collections.abc import Iterable

from msgspec import Struct

from kb.model.doc import Scope
from kb.model.search import NO_FILTERS
from kb.model.source import place_of
from kb.search.filters import allowed_sources
from kb.store import docs
from kb.store.kv import ReadTxn


class FacetValue(Struct, frozen=True, kw_only=True):
    """A value by which a search can be narrowed."""

    value: str
    docs: int
    """How many active docs have it."""


class Facets(Struct, frozen=True, kw_only=True):
    """The values that active docs have; of each kind of value the most common ones, by value."""

    kinds: tuple[FacetValue, ...]
    tags: tuple[FacetValue, ...]
    sources: tuple[FacetValue, ...]
    """Folders of files and sites of pages."""


def facets_of(txn: ReadTxn, scope: Scope, values_max: int) -> Facets:
    """What the docs that a scope sees can be narrowed to; at most so many values of each kind.

    Reads the facets whole: about 2 us for each doc and value.
    """
    seen = allowed_sources(txn, NO_FILTERS, scope)

    def values(name: str) -> Iterable[str]:
        found = docs.facet_values(txn, name)
        return (value for value, source_no in found if seen is None or source_no in seen)

    places = (place_of(source) for source in values("source"))
    return Facets(
        kinds=_most(values("kind"), values_max),
        tags=_most(values("tag"), values_max),
        sources=_most((place for place in places if place is not None), values_max),
    )


def merged_facets(each: Iterable[Facets], values_max: int) -> Facets:
    """Those of several homes as one."""
    found = tuple(each)
    return Facets(
        kinds=_merged((one.kinds for one in found), values_max),
        tags=_merged((one.tags for one in found), values_max),
        sources=_merged((one.sources for one in found), values_max),
    )


def _most(values: Iterable[str], values_max: int) -> tuple[FacetValue, ...]:
    return _rows(Counter(values), values_max)


def _merged(each: Iterable[tuple[FacetValue, ...]], values_max: int) -> tuple[FacetValue, ...]:
    counted: Counter[str] = Counter()
    for rows in each:
        counted.update({row.value: row.docs for row in rows})
    return _rows(counted, values_max)


def _rows(counted: Counter[str], values_max: int) -> tuple[FacetValue, ...]:
    best = sorted(counted.items(), key=lambda one: (-one[1], one[0]))[:values_max]
    return tuple(FacetValue(value=value, docs=count) for value, count in sorted(best))
