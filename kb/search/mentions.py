"""Entities in a question: which passages must or should mention them, and whether any do."""

from collections.abc import Iterable

from msgspec import Struct

from kb.entities import extract, parse_entity_argument
from kb.model.doc import Scope
from kb.model.ids import ChunkNo
from kb.model.search import EntityAlignment
from kb.store import chunks
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
            alive = chunks.live(txn, no)
            if alive is not None and alive[1].visible_to(scope):
                found.add(no)
    return frozenset(found)


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
