"""Entities of a query: which chunks mention them, and whether the hits do."""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice

from msgspec import Struct

from kb.intake.entities import extract, parse_entity_argument, parse_entity_prefix
from kb.model.doc import Doc, Scope
from kb.model.ids import ChunkNo
from kb.model.search import EntityAlignment, KnownEntity
from kb.model.text import Chunk
from kb.store import chunks, docs
from kb.store.kv import ReadTxn


class EntityMatches(Struct, frozen=True, kw_only=True):
    """An entity argument of a request, and the numbers of the chunks that mention it."""

    argument: str
    chunk_nos: frozenset[ChunkNo]


def match_entities(txn: ReadTxn, arguments: Iterable[str], scope: Scope) -> list[EntityMatches]:
    """The visible chunks that mention each entity argument, in the order of the arguments."""
    return [
        EntityMatches(
            argument=argument,
            chunk_nos=visible_mentions(txn, parse_entity_argument(argument), scope),
        )
        for argument in arguments
    ]


def visible_mentions(txn: ReadTxn, keys: Iterable[str], scope: Scope) -> frozenset[ChunkNo]:
    """Numbers of the live, visible chunks that mention any of the entity keys."""
    visible: set[ChunkNo] = set()
    for key in keys:
        for no in chunks.mentioning(txn, key):
            live = chunks.get_active(txn, no)
            if live is not None and live[1].visible_to(scope):
                visible.add(no)
    return frozenset(visible)


def list_entities(txn: ReadTxn, prefix: str, scope: Scope, limit: int) -> tuple[KnownEntity, ...]:
    """The first `limit` entities whose name starts with `prefix`, by kind and then by name.

    Counts and spellings come only from chunks that the scope sees.
    """
    return tuple(islice(_visible_entities(txn, prefix, scope), limit))


def _visible_entities(txn: ReadTxn, prefix: str, scope: Scope) -> Iterator[KnownEntity]:
    visible_sources: dict[int, bool] = {}
    for start in parse_entity_prefix(prefix):
        for key in chunks.entity_keys(txn, start):
            entity = _visible_entity(txn, key, scope, visible_sources)
            if entity is not None:
                yield entity


def _visible_entity(
    txn: ReadTxn, key: str, scope: Scope, visible_sources: dict[int, bool]
) -> KnownEntity | None:
    """An entity with its visible mentions; None without any. Caches into `visible_sources`."""
    first: Chunk | None = None
    sources: set[int] = set()
    chunk_count = 0
    for no in chunks.mentioning(txn, key):
        chunk = chunks.get(txn, no)
        if chunk is None:
            continue
        if chunk.source_no not in visible_sources:
            visible_sources[chunk.source_no] = _is_visible(docs.latest(txn, chunk.source_no), scope)
        if visible_sources[chunk.source_no]:
            first = first or chunk
            sources.add(chunk.source_no)
            chunk_count += 1
    mentions = extract(first.text) if first else ()
    mention = next((mention for mention in mentions if mention.key == key), None)
    if mention is None:
        return None
    return KnownEntity(
        kind=mention.kind, surface=mention.surface, passages=chunk_count, docs=len(sources)
    )


def _is_visible(doc: Doc | None, scope: Scope) -> bool:
    return doc is not None and doc.status == "active" and doc.visible_to(scope)


def mentioning_all(required: list[EntityMatches]) -> frozenset[ChunkNo] | None:
    """Numbers of the chunks that mention all required entities; None where none is required."""
    if not required:
        return None
    return frozenset.intersection(*(entity.chunk_nos for entity in required))


def align(
    txn: ReadTxn, query: str, hit_nos: list[ChunkNo], scope: Scope
) -> tuple[tuple[EntityAlignment, ...], list[str]]:
    """Whether the hits mention the entities that the query names, and the warnings about it."""
    return align_mentions(query, hit_nos, lambda key: visible_mentions(txn, [key], scope))


def align_mentions(
    query: str, hit_nos: list[ChunkNo], mentions_of: Callable[[str], frozenset[ChunkNo]]
) -> tuple[tuple[EntityAlignment, ...], list[str]]:
    """As `align`; `mentions_of` returns the visible chunks that mention an entity key."""
    alignment: list[EntityAlignment] = []
    warnings: list[str] = []
    for mention in extract(query):
        visible = mentions_of(mention.key)
        in_hits = sum(1 for no in hit_nos if no in visible)
        alignment.append(
            EntityAlignment(
                entity=mention.surface, kind=mention.kind, known=bool(visible), in_hits=in_hits
            )
        )
        if visible and not in_hits:
            warnings.append(
                f"the query names {mention.surface}, but no hit mentions it; "
                f"{len(visible)} other passage(s) do"
            )
        elif not visible:
            warnings.append(f"the query names {mention.surface}, which no passage mentions")
    return tuple(alignment), warnings
