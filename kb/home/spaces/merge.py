"""One answer of several: what each store answered, put together by rank. Pure.

The lists are in the order of precedence: of what two have, that of the earlier one is answered.
Scores of two stores do not compare, for each knows its own words and passages alone.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

import msgspec
from msgspec import Struct

from kb.intake.entities import extract, fold_key
from kb.model.search import EntityAlignment, Hit, KnownEntity, SpaceName

_DIGITS: Final = 6


class SpaceHits(Struct, frozen=True, kw_only=True):
    """What one store found, best first."""

    name: SpaceName
    hits: tuple[Hit, ...]
    held: frozenset[str] = frozenset()
    """Ids of docs whose source an earlier store has too, so that they are not answered here."""

    @property
    def weight(self) -> float:
        """1, or how near the best of hits that all are weak comes to fitting."""
        if any(not hit.weak for hit in self.hits):
            return 1.0
        return max((hit.score for hit in self.hits), default=1.0)


class _Row(Struct, kw_only=True):
    score: float
    place: int
    name: SpaceName
    hit: Hit


def merged_hits(lists: Sequence[SpaceHits], k: int) -> tuple[Hit, ...]:
    """The best k by their rank in their own list, at equal rank those of the earlier list first.

    A passage that two lists hold, by its id or its text, is answered once, at the better of its
    ranks. Scores are reciprocal ranks: 1, 1/2, 1/3. Where a list holds weak hits alone, they have
    less, and come after those of a list that holds better ones.
    """
    rows: list[_Row] = []
    known: dict[str, _Row] = {}
    for place, one in enumerate(lists):
        weight = one.weight
        fresh: list[_Row] = []
        for hit in one.hits:
            same = known.get(hit.chunk_id) or known.get(hit.text)
            score = weight / hit.rank
            if same is not None:
                same.score = max(same.score, score)
                if same.hit.weak and not hit.weak:
                    same.hit = msgspec.structs.replace(same.hit, weak=False)
            elif hit.doc_id not in one.held:
                fresh.append(_Row(score=score, place=place, name=one.name, hit=hit))
        # Only now: equal passages within one store are for that store to judge.
        for row in fresh:
            known.setdefault(row.hit.chunk_id, row)
            known.setdefault(row.hit.text, row)
        rows += fresh
    rows.sort(key=lambda row: (-row.score, row.place, row.hit.rank))
    return tuple(_answered(row, rank) for rank, row in enumerate(rows[:k], 1))


def _answered(row: _Row, rank: int) -> Hit:
    hit = row.hit
    said = hit.explain
    if said is not None:
        said = {**said, "space_score": hit.score, "space_rank": hit.rank}
    score = round(row.score, _DIGITS)
    return msgspec.structs.replace(hit, rank=rank, score=score, source_space=row.name, explain=said)


def merged_warnings(each: Sequence[tuple[SpaceName, Iterable[str]]]) -> tuple[str, ...]:
    """Every warning once: as it is where all stores say it, else after the name of its space."""
    said = [(name, tuple(warnings)) for name, warnings in each]
    shared = set.intersection(*(set(warnings) for _, warnings in said)) if said else set()
    lines = (
        line if line in shared else f"{name}: {line}" for name, lines in said for line in lines
    )
    return tuple(dict.fromkeys(lines))


def merged_alignments(
    each: Iterable[Sequence[EntityAlignment]], hits: Sequence[Hit]
) -> tuple[EntityAlignment, ...]:
    """The entities that the query names: known where any store knows them, counted in `hits`."""
    known: dict[tuple[str, str], bool] = {}
    for alignments in each:
        for one in alignments:
            name = (one.kind, one.entity)
            known[name] = known.get(name, False) or one.known
    if not known:
        return ()
    mentioned = [{mention.key for mention in extract(hit.text)} for hit in hits]
    return tuple(
        EntityAlignment(entity=entity, kind=kind, known=any_knows, in_hits=in_hits)
        for (kind, entity), any_knows in known.items()
        for keys in ({mention.key for mention in extract(entity)},)
        for in_hits in (sum(not keys.isdisjoint(said) for said in mentioned),)
    )


def merged_entities(each: Iterable[Iterable[KnownEntity]]) -> Iterator[KnownEntity]:
    """Entities by kind and name, counts added up, written as the earliest store writes them."""
    found: dict[str, KnownEntity] = {}
    for entities in each:
        for entity in entities:
            key = fold_key(entity.kind, entity.surface)
            first = found.get(key)
            if first is not None:
                passages, docs = first.passages + entity.passages, first.docs + entity.docs
                found[key] = msgspec.structs.replace(first, passages=passages, docs=docs)
            else:
                found[key] = entity
    return (found[key] for key in sorted(found))
