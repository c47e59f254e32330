"""Facets: the values that a search can filter by, and how many docs have each."""

from collections import Counter
from collections.abc import Iterable

from msgspec import Struct

from kb.model.doc import Scope
from kb.model.search import NO_FILTERS
from kb.model.site_version import site_version
from kb.model.source import kind_of_source, place_of
from kb.search.filters import allowed_sources
from kb.store import docs
from kb.store.kv import ReadTxn


class FacetValue(Struct, frozen=True, kw_only=True):
    """A value that a search can filter by."""

    value: str
    docs: int
    """How many active docs have it."""


class Facets(Struct, frozen=True, kw_only=True):
    """The most common values of each facet of active docs, sorted by value."""

    kinds: tuple[FacetValue, ...]
    tags: tuple[FacetValue, ...]
    sources: tuple[FacetValue, ...]
    """Folders of files and sites of pages, each with the docs below it, as the filter counts."""
    versions: tuple[FacetValue, ...]
    """Of sites, as the addresses of their pages name them."""


class FacetCounts(Struct, frozen=True, kw_only=True):
    """How many active docs of a home have each value."""

    kinds: Counter[str]
    tags: Counter[str]
    places: Counter[str]
    """Folders and sites, without those below them."""
    versions: Counter[str]


def count_facets(txn: ReadTxn, scope: Scope) -> FacetCounts:
    """Count the values of the docs that a scope sees: about 2 us for each doc and value."""
    allowed = allowed_sources(txn, NO_FILTERS, scope)

    def values(name: str) -> Iterable[str]:
        rows = docs.facet_values(txn, name)
        return (value for value, source_no in rows if allowed is None or source_no in allowed)

    sources = list(values("source"))
    places = map(place_of, sources)
    versions = map(site_version, sources)
    return FacetCounts(
        kinds=Counter(values("kind")) + Counter(filter(None, map(kind_of_source, sources))),
        tags=Counter(values("tag")),
        places=Counter(place for place in places if place is not None),
        versions=Counter(version for version in versions if version is not None),
    )


def facets_of(counts: Iterable[FacetCounts], values_max: int) -> Facets:
    """The facets of one or several homes, with at most `values_max` values each."""
    kinds: Counter[str] = Counter()
    tags: Counter[str] = Counter()
    places: Counter[str] = Counter()
    versions: Counter[str] = Counter()
    for home in counts:
        kinds += home.kinds
        tags += home.tags
        places += home.places
        versions += home.versions
    return Facets(
        kinds=_most_common(kinds, values_max),
        tags=_most_common(tags, values_max),
        sources=_most_common(_with_those_below(places), values_max),
        versions=_most_common(versions, values_max),
    )


def _with_those_below(places: Counter[str]) -> Counter[str]:
    """The same places, each with the docs of those below it."""
    sums = Counter(places)
    for place, count in places.items():
        above = place.rpartition("/")[0]
        while above:
            if above in places:
                sums[above] += count
            above = above.rpartition("/")[0]
    return sums


def _most_common(counts: Counter[str], values_max: int) -> tuple[FacetValue, ...]:
    best = sorted(counts.items(), key=lambda row: (-row[1], row[0]))[:values_max]
    return tuple(FacetValue(value=value, docs=count) for value, count in sorted(best))
