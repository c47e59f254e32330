"""What is asked and what is answered."""

from typing import Final, Literal

from msgspec import Struct

from kb.model.doc import Kind, PackPart
from kb.model.ids import ChunkId, DocId
from kb.model.text import EntityKind

SearchMode = Literal["hybrid", "lexical", "dense"]
Freshness = Literal["fresh", "changed", "gone", "unknown"]
SpaceName = Literal["user", "project", "home"]
"""Whose store it is; `home` is one that was named."""

NOTHING_HERE: Final = "there are no docs to search"
"""The warning of an answer where nothing could be found."""


class SearchRequest(Struct, frozen=True, kw_only=True):
    """A query and its limits. Who asks is not part of it."""

    query: str
    k: int = 10
    mode: SearchMode = "hybrid"
    tags: tuple[str, ...] = ()
    """All of them must be on a doc."""
    kinds: tuple[Kind, ...] = ()
    """Any of them."""
    doc_ids: tuple[DocId, ...] = ()
    """Any of them."""
    packs: tuple[str, ...] = ()
    """Ids; any of them."""
    sources: tuple[str, ...] = ()
    """Files, folders or addresses; docs from any of them or from below it."""
    require_entities: tuple[str, ...] = ()
    boost_entities: tuple[str, ...] = ()
    min_score: float = 0.0
    """Hits that score less are left out."""
    tokens_max: int | None = None
    """Fill a budget of about so many tokens with passages and their neighbours."""
    explain: bool = False


class Legs(Struct, frozen=True, kw_only=True):
    """A hit's place in each leg, from 1; None where the leg did not bring it."""

    lexical: int | None
    dense: int | None


class LearnCall(Struct, frozen=True, kw_only=True):
    """What loads a subject whole: `kb learn TOPIC SUBJECT`, or the tool `learn`."""

    topic: str
    """Its id."""
    subject: str
    """Its slug."""


class Via(Struct, frozen=True, kw_only=True):
    """The hit whose pack links it to another doc, and by what link."""

    doc_id: DocId
    selector: str
    """Of that hit's doc."""
    edge: str


class Hit(Struct, frozen=True, kw_only=True):
    """One passage found. `score` is the fused one; raw leg scores are never given out."""

    rank: int
    score: float
    chunk_id: ChunkId
    doc_id: DocId
    title: str
    source: str
    kind: Kind
    tags: tuple[str, ...]
    heading: tuple[str, ...]
    text: str
    start: int
    end: int
    page: int | None
    line: int | None
    """1-based line of `start` in the source; None where the source has no lines of its own."""
    freshness: Freshness
    legs: Legs
    learn: LearnCall | None = None
    """Of a topic's subject: what loads it whole."""
    source_space: SpaceName | None = None
    """Where it was found; None of a store that is asked alone, which knows no others."""
    zettel_id: str | None = None
    """Of an entry: its own id."""
    pack: PackPart | None = None
    """Of a pack's doc: which pack, and its name in it."""
    weak: bool = False
    """It hardly fits the question, and is merely the nearest there is."""
    via: Via | None = None
    """Of a neighbour, which matches nothing itself: the hit that brought it."""
    explain: dict[str, int | float | str] | None = None


class EntityAlignment(Struct, frozen=True, kw_only=True):
    """Whether an entity that the query names appears in what was found."""

    entity: str
    kind: str
    known: bool
    """Some passage that the caller may see mentions it."""
    in_hits: int


class KnownEntity(Struct, frozen=True, kw_only=True):
    """An entity that passages mention, as far as the caller may see them."""

    kind: EntityKind
    surface: str
    """As the first of these passages writes it."""
    passages: int
    docs: int


class SearchResult(Struct, frozen=True, kw_only=True):
    """The answer: same request, same store, same scope, same bytes."""

    query: str
    mode: SearchMode
    hits: tuple[Hit, ...]
    entity_alignment: tuple[EntityAlignment, ...]
    warnings: tuple[str, ...]
    truncated: str | None = None
    """What a token budget cut, in words."""
