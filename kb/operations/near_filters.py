"""What filters that let nothing through probably meant: the nearest tags and places there are."""

import difflib
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from msgspec import Struct

from kb.home.open_home import OpenHome
from kb.home.spaces.each import ask_each
from kb.intake.entities import fold_key
from kb.model.doc import Scope, is_tag_within
from kb.model.search import NO_FILTERS, Filters
from kb.model.source import from_machine, is_within
from kb.operations.locate import LocatedFilters
from kb.search.entities import visible_mentions
from kb.search.filters import allowed_sources
from kb.store import docs

_NEAR_MAX: Final = 3
_NEAR: Final = 0.6


class _Values(Struct, frozen=True, kw_only=True):
    """What a scope can filter the docs of a home by."""

    tags: frozenset[str]
    hashtags: frozenset[str]
    """Those of the tags asked for that stand in a chunk as #TAG."""
    sources: frozenset[str]


def filter_hints(homes: Sequence[OpenHome], filters: Filters, scope: Scope) -> tuple[str, ...]:
    """A sentence for each tag, place and version that no doc has which the scope sees.

    For an answer without docs: every value is read, 2 us each.
    """
    if not homes or not (filters.tags or filters.sources or filters.site_versions):
        return ()

    def values(home: OpenHome) -> _Values:
        here = home.scope(scope)
        with home.store.read() as txn:
            allowed = allowed_sources(txn, NO_FILTERS, here)
            machine = home.store.machine
            tags, sources = (
                frozenset(
                    from_machine(value, machine) or value
                    for value, source_no in docs.facet_values(txn, name)
                    if allowed is None or source_no in allowed
                )
                for name in ("tag", "source")
            )
            hashtags = frozenset(
                tag
                for tag in filters.tags
                if not _is_there(tag, tags)
                and visible_mentions(txn, [fold_key("hashtag", f"#{tag.lstrip('#')}")], here)
            )
            return _Values(tags=tags, hashtags=hashtags, sources=sources)

    each = [home_values for _, home_values in ask_each(homes, values, [])]
    tags = frozenset().union(*(home_values.tags for home_values in each))
    hashtags = frozenset().union(*(home_values.hashtags for home_values in each))
    sources = frozenset().union(*(home_values.sources for home_values in each))
    if not sources:
        return ()
    return (
        *(
            _hashtag_hint(tag) if tag in hashtags else _tag_hint(tag, tags)
            for tag in filters.tags
            if not _is_there(tag, tags)
        ),
        *(
            _place_hint(place, sources)
            for place in filters.sources
            if not any(is_within(source, place) for source in sources)
        ),
        *_version_hints(filters.site_versions, sources),
    )


def idle_filters(homes: Sequence[OpenHome], located: LocatedFilters, scope: Scope) -> list[Filters]:
    """Those that a query leaves docs out by, but that meet none which the scope sees."""

    def met(home: OpenHome) -> list[bool]:
        with home.store.read() as txn:
            return [
                bool(allowed_sources(txn, filters, home.scope(scope)))
                for filters in located.of(home).without
            ]

    each = [home_met for _, home_met in ask_each(homes, met, [])]
    return [
        filters
        for n, filters in enumerate(located.filters.without)
        if not any(home_met[n] for home_met in each)
    ]


def _is_there(wanted: str, tags: Iterable[str]) -> bool:
    return any(is_tag_within(tag, wanted) for tag in tags)


def _tag_hint(tag: str, tags: Iterable[str]) -> str:
    by_folded = {other.casefold(): other for other in sorted(tags)}
    near = nearest(tag.casefold(), by_folded)
    return f"no doc has the tag {tag!r}" + _listed([by_folded[other] for other in near], "tags")


def _hashtag_hint(tag: str) -> str:
    name = f"#{tag.lstrip('#')}"
    option = f"--require-entity '{name}'"
    return f"no doc has the tag {tag!r}, but passages mention {name}: kb search {option}"


def _version_hints(wanted: Iterable[str], sources: Iterable[str]) -> Iterator[str]:
    from kb.model.site_version import site_version

    versions: set[str] | None = None
    for version in wanted:
        if versions is None:
            versions = {there for source in sources if (there := site_version(source))}
        if version.lower() not in versions:
            near = nearest(version.lower(), sorted(versions))
            yield f"no page is of the version {version!r}" + _listed(near, "versions")


def _place_hint(place: str, sources: Iterable[str]) -> str:
    places = {above for source in sources for above in _with_those_above(source)}
    by_name: dict[str, list[str]] = {}
    for other in sorted(places, key=lambda other: (len(other), other)):
        by_name.setdefault(_name_of(other), []).append(other)
    near = [other for name in nearest(_name_of(place), by_name) for other in by_name[name]]
    return f"no doc lies at or below {place}" + _listed(near[:_NEAR_MAX], "places")


def _with_those_above(source: str) -> Iterable[str]:
    """A source, and the folders or addresses above it."""
    yield source
    while "/" in source.strip("/") and not source.endswith("//"):
        source = source.rpartition("/")[0]
        if source.rstrip(":/"):
            yield source


def _name_of(place: str) -> str:
    return place.rstrip("/").rpartition("/")[2].casefold()


def nearest(name: str, names: Iterable[str]) -> list[str]:
    """The same name, else those that begin with it, else those that are spelt nearly as it is."""
    names = list(names)
    if name in names:
        return [name]
    starts = [other for other in names if name and other.startswith(name)]
    near = difflib.get_close_matches(name, names, n=_NEAR_MAX, cutoff=_NEAR)
    return list(dict.fromkeys((*starts[:_NEAR_MAX], *near)))[:_NEAR_MAX]


def _listed(near: Sequence[str], noun: str) -> str:
    if near:
        return "; did you mean " + " or ".join(repr(value) for value in near) + "?"
    return f"; `kb facets` lists the {noun} that docs have"
