"""Entities in a question: which passages must or should mention them, and whether any do."""

from collections.abc import Iterable, Iterator
from itertools import islice

from msgspec import Struct

from kb.intake.entities import extract, parse_entity_argument, parse_entity_prefix
from kb.model.doc import Doc, Scope
from kb.model.ids import ChunkNo
from kb.model.search import EntityAlignment, KnownEntity
from kb.model.text import Chunk
from kb.store import chunks, docs
from kb.store.kv import ReadTxn


class Asked(Struct, frozen=True, kw_only=True):
    """An entity that the caller asked for, and the passages that mention it."""

    argument: str
    nos: frozenset[ChunkNo]


def look_up(txn: ReadTxn, arguments: Iterable[str], scope: Scope) -> list[Asked]:
    """The passages that mention each argument, as far as the caller may see them."""
    return [
        Asked(argument=argument, nos=visible_mentions(txn, parse_entity_argument(argument), scope))
        for argument in arguments
    ]


def visible_mentions(txn: ReadTxn, keys: Iterable[str], scope: Scope) -> frozenset[ChunkNo]:
    """Numbers of the live, visible passages that mention any of the keys."""
    found: set[ChunkNo] = set()
    for key in keys:
        for no in chunks.mentioning(txn, key):
            alive = chunks.get_active(txn, no)
            if alive is not None and alive[1].visible_to(scope):
                found.add(no)
    return frozenset(found)


def list_entities(txn: ReadTxn, prefix: str, scope: Scope, limit: int) -> tuple[KnownEntity, ...]:
    """The first `limit` entities whose name starts with `prefix`, by kind and then by name.

    Every count and every way of writing is that of passages which the scope sees.
    """
    return tuple(islice(_entities(txn, prefix, scope), limit))


def _entities(txn: ReadTxn, prefix: str, scope: Scope) -> Iterator[KnownEntity]:
    doors: dict[int, bool] = {}
    for start in parse_entity_prefix(prefix):
        for key in chunks.entity_keys(txn, start):
            entity = _entity(txn, key, scope, doors)
            if entity is not None:
                yield entity


def _entity(txn: ReadTxn, key: str, scope: Scope, doors: dict[int, bool]) -> KnownEntity | None:
    """An entity by what is visible of it; `doors` keeps which sources are."""
    first: Chunk | None = None
    sources: set[int] = set()
    passages = 0
    for no in chunks.mentioning(txn, key):
        chunk = chunks.get(txn, no)
        if chunk is None:
            continue
        if chunk.source_no not in doors:
            doors[chunk.source_no] = _is_open(docs.latest(txn, chunk.source_no), scope)
        if doors[chunk.source_no]:
            first = first or chunk
            sources.add(chunk.source_no)
            passages += 1
    said = (mention for mention in extract(first.text) if mention.key == key) if first else ()
    mention = next(iter(said), None)
    if mention is None:
        return None
    return KnownEntity(
        kind=mention.kind, surface=mention.surface, passages=passages, docs=len(sources)
    )


def _is_open(doc: Doc | None, scope: Scope) -> bool:
    return doc is not None and doc.status == "active" and doc.visible_to(scope)


def required(asked: list[Asked]) -> frozenset[ChunkNo] | None:
    """The passages that mention all of what is required; None where nothing is."""
    if not asked:
        return None
    return frozenset.intersection(*(one.nos for one in asked))


def align(
    txn: ReadTxn, query: str, hit_nos: list[ChunkNo], scope: Scope
) -> tuple[tuple[EntityAlignment, ...], list[str]]:
    """How the entities that the query names stand to the hits, and what to warn of."""
    lines: list[EntityAlignment] = []
    warnings: list[str] = []
    for mention in extract(query):
        visible = visible_mentions(txn, [mention.key], scope)
        in_hits = sum(1 for no in hit_nos if no in visible)
        lines.append(
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
    return tuple(lines), warnings
