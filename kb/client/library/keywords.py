"""The keywords of the library's methods, for people and type checkers; the requests judge them."""

import datetime as dt
import os
from collections.abc import Mapping, Sequence
from typing import Any, Final, Literal, TypedDict, TypeVar

from msgspec import Struct

from kb.model.doc import DocStatus, Visibility
from kb.model.search import SearchMode, WantedKind
from kb.operations.locate import source_named
from kb.operations.operation import meant_by, request_from

R = TypeVar("R", bound=Struct)
_DAY_CHARS: Final = len("2026-11-22")


class FilterKeywords(TypedDict, total=False):
    """Which docs are meant; a doc is meant that meets every one of these."""

    tags: Sequence[str]
    kinds: Sequence[WantedKind]
    doc_ids: Sequence[str]
    packs: Sequence[str]
    sources: Sequence[str | os.PathLike[str]]
    site_versions: Sequence[str]
    since: str | dt.date | None
    until: str | dt.date | None
    sender: str | None
    recipient: str | None
    linked_to: Sequence[str]
    links_from: Sequence[str]


class SearchKeywords(FilterKeywords, total=False):
    """Of `Home.search`."""

    k: int
    offset: int
    cursor: str | None
    mode: SearchMode
    with_neighbors: bool
    require_entities: Sequence[str]
    boost_entities: Sequence[str]
    min_score: float
    max_tokens: int | None
    sort: Literal["score", "date"]
    verbatim: bool
    rerank: bool | None
    explain: bool
    at_least: str
    marks: bool


class AskKeywords(FilterKeywords, total=False):
    """Of `Home.ask`."""

    k: int
    max_tokens: int
    with_text: bool
    with_model: bool


class GetKeywords(TypedDict, total=False):
    """Of `Home.get`."""

    neighbours: int | None
    start: int | None
    end: int | None
    page: int | None
    max_tokens: int | None


class ListKeywords(FilterKeywords, total=False):
    """Of `Home.list`."""

    status: DocStatus | Literal["all"]
    sort: Literal["changed", "date", "added", "title", "source"]
    limit: int


class SimilarKeywords(TypedDict, total=False):
    """Of `Home.similar`."""

    k: int
    max_tokens: int | None


class AddKeywords(TypedDict, total=False):
    """Of `Home.add`."""

    extensions: Sequence[str]
    no_ignore: bool
    title: str | None
    tags: Sequence[str] | None
    visibility: Visibility | None
    accept_deletions: bool
    dry_run: bool
    crawl: bool
    include: Sequence[str]
    exclude: Sequence[str]
    pages_max: int
    depth_max: int


class SyncKeywords(TypedDict, total=False):
    """Of `Home.sync`."""

    interval_min: int
    sources_max: int | None
    only: str | None
    accept_deletions: bool
    dry_run: bool


class EventsKeywords(TypedDict, total=False):
    """Of `Home.events`."""

    job: Sequence[str]
    doc: Sequence[str]


def request_of(
    request: type[R],
    method: str,
    keywords: Mapping[str, Any],
    *others: str,
    **values: Any,
) -> R:
    """A request of `values` and of what the caller of a method gave by keywords.

    `others` are keywords that the method has besides. Raises TypeError for a keyword that it does
    not have, which names those it has, and UsageError for a value that a field does not take.
    """
    names = [name for name in request.__struct_fields__ if name not in values]
    unknown = [name for name in keywords if name not in names]
    if unknown:
        meant = meant_by(unknown[0], (*names, *others), are="keywords")
        raise TypeError(f"Home.{method}() has no keyword {unknown[0]!r}{meant}")
    given = dict(keywords)
    for name in ("since", "until"):
        if isinstance(day := given.get(name), dt.date):
            given[name] = day.isoformat()[:_DAY_CHARS]
    if isinstance(given.get("sources"), list | tuple):
        given["sources"] = [source_named(os.fspath(source)) for source in given["sources"]]
    return request_from(request, {**given, **values}, lambda name, _: name)
