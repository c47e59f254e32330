"""What the command line asks of homes, in the same words here and of a server."""

from typing import Annotated, Final, Literal

from msgspec import Meta, Struct

from kb.model.doc import DocStatus, Kind
from kb.model.ids import DocId
from kb.model.search import SearchMode, SearchResult

_Words = Annotated[tuple[str, ...], Meta(max_length=1_000)]
_Kinds = Annotated[tuple[Kind, ...], Meta(max_length=1_000)]
_Tokens = Annotated[int, Meta(ge=1, le=1 << 62)]

Mark = tuple[int, int]
"""Half-open character span of a text."""


class SearchAsked(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A search, with the wide bounds of the command line."""

    query: str
    k: Annotated[int, Meta(ge=1, le=10_000)] = 10
    mode: SearchMode = "hybrid"
    tags: _Words = ()
    kinds: _Kinds = ()
    doc_ids: _Words = ()
    packs: _Words = ()
    sources: _Words = ()
    with_neighbors: bool = False
    require_entities: _Words = ()
    boost_entities: _Words = ()
    min_score: Annotated[float, Meta(ge=0, le=1)] = 0.0
    max_tokens: _Tokens | None = None
    """None is without a budget: each hit stands alone."""
    explain: bool = False
    with_marks: bool = False
    """Whether the places of the query's words are wanted, too."""
    fingerprint: Annotated[str, Meta(max_length=128)] | None = None
    """Of the home and the settings that are meant; a server with others does not answer."""


class Found(Struct, frozen=True, kw_only=True):
    """What a search found."""

    result: SearchResult
    marks: tuple[tuple[Mark, ...], ...] = ()
    """Of each hit, where the query's words stand in its text; empty where none were asked for."""


class QuestionAsked(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A question, and which passages are read for it."""

    question: str
    k: Annotated[int, Meta(ge=1, le=1_000)]
    max_tokens: _Tokens
    tags: _Words = ()
    kinds: _Kinds = ()
    doc_ids: _Words = ()
    packs: _Words = ()
    sources: _Words = ()
    with_model: bool = True
    """Whether a language model may be asked, where the home has one."""


class DocsAsked(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which docs are to be listed."""

    tags: _Words = ()
    kinds: _Kinds = ()
    sources: _Words = ()
    status: DocStatus | Literal["all"] = "active"
    limit: Annotated[int, Meta(ge=0)] = 50
    """0 for all."""


class ShowAsked(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is to be shown: an id, whole or short."""

    id: Annotated[str, Meta(min_length=1, max_length=200)]


class JobAsked(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which job is meant."""

    id: Annotated[str, Meta(min_length=1, max_length=64)]


class LogAsked(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How many of the notebook's commits are wanted."""

    limit: Annotated[int, Meta(ge=1, le=10_000)]


STANDINGS_MAX: Final = 64


class StandingsAsked(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Docs that are waited for, by their whole ids."""

    doc_ids: Annotated[
        tuple[Annotated[DocId, Meta(min_length=1, max_length=64)], ...],
        Meta(max_length=STANDINGS_MAX),
    ]


class Standing(Struct, frozen=True, kw_only=True):
    """How far the work on a doc has come."""

    doc_id: DocId
    state: Literal["pending", "done", "failed"]
    reason: str | None = None
    """Of one that failed, why; None where that is not for the caller to know."""
