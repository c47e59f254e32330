"""One answer of several: what each home found, merged by rank, in which nothing stands twice.

The lists are in the order of precedence: of what two have, that of the earlier one is answered.
Rank scores of two stores do not compare, for each knows its own words and chunks alone.
"""

import contextlib
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct

from kb.home.open_home import OpenHome
from kb.home.spaces.each import FAILURES, FailedSpace, warnings_of
from kb.intake.entities import extract, fold_key
from kb.model.doc import Scope
from kb.model.search import (
    EntityAlignment,
    Filters,
    Hit,
    KnownEntity,
    SearchResult,
    SpaceName,
)
from kb.model.text import indexed_text
from kb.search.filters import is_answerable
from kb.search.paging import Pager, with_falling_scores
from kb.store import docs

if TYPE_CHECKING:
    from kb.search.rerank import Reranking

_DIGITS: Final = 6
# So many of the best hits tell whether a store has something that fits.
_JUDGED: Final = 10


class SpaceHits(Struct, frozen=True, kw_only=True):
    """What one store found, best first."""

    name: SpaceName | None
    hits: tuple[Hit, ...]
    held: frozenset[str] = frozenset()
    """Ids of docs whose source an earlier store has too, so that they are not answered here."""

    @property
    def weight(self) -> float:
        """1, or how near the best of hits that all are weak comes to fitting."""
        judged = self.hits[:_JUDGED]
        if any(not hit.weak for hit in judged):
            return 1.0
        return max((hit.score for hit in judged), default=1.0)


class _Row(Struct, kw_only=True):
    rank_score: float
    place: int
    name: SpaceName | None
    hit: Hit


def merged_hits(lists: Sequence[SpaceHits], k: int) -> tuple[Hit, ...]:
    """The best k by their rank in their own list, at equal rank those of the earlier list first.

    A chunk that two lists hold, by its id or its text, is answered once, at the better of its
    ranks. Hits count by their reciprocal ranks: 1, 1/2, 1/3. Where a list holds weak hits alone,
    they count for less, and come after those of a list that holds better ones. A score says how
    well a hit fits, whatever list it is from, and falls along the answer.
    """
    rows: list[_Row] = []
    seen: dict[str, _Row] = {}
    for place, ranked in enumerate(lists):
        weight = ranked.weight
        fresh: list[_Row] = []
        for hit in ranked.hits:
            same = seen.get(hit.chunk_id) or seen.get(hit.text)
            rank_score = weight / hit.rank
            if same is not None:
                same.rank_score = max(same.rank_score, rank_score)
                same.hit = _better(same.hit, hit)
            elif hit.doc_id not in ranked.held:
                fresh.append(_Row(rank_score=rank_score, place=place, name=ranked.name, hit=hit))
        # Only now: equal chunks within one store are for that store to judge.
        for row in fresh:
            seen.setdefault(row.hit.chunk_id, row)
            seen.setdefault(row.hit.text, row)
        rows += fresh
    rows.sort(key=lambda row: (-row.rank_score, row.place, row.hit.rank))
    hits = (_answered(row, rank) for rank, row in enumerate(rows[:k], 1))
    return tuple(with_falling_scores(hits))


def _better(hit: Hit, other: Hit) -> Hit:
    """The hit, as good as another hit of the same chunk."""
    return msgspec.structs.replace(
        hit, weak=hit.weak and other.weak, score=max(hit.score, other.score)
    )


def _answered(row: _Row, rank: int) -> Hit:
    hit = row.hit
    explain = hit.explain
    if explain is not None:
        rank_score = round(row.rank_score, _DIGITS)
        explain = {**explain, "rank_score": rank_score, "space_rank": hit.rank}
    return msgspec.structs.replace(hit, rank=rank, source_space=row.name, explain=explain)


def merged_warnings(each: Sequence[tuple[SpaceName | None, Iterable[str]]]) -> tuple[str, ...]:
    """Every warning once: as it is where all stores say it, else after the name of its space."""
    by_space = [(name, tuple(warnings)) for name, warnings in each]
    shared = set.intersection(*(set(warnings) for _, warnings in by_space)) if by_space else set()
    lines = (
        line if line in shared else f"{name}: {line}" for name, lines in by_space for line in lines
    )
    return tuple(dict.fromkeys(lines))


def merged_alignments(
    each: Iterable[Sequence[EntityAlignment]], hits: Sequence[Hit]
) -> tuple[EntityAlignment, ...]:
    """The entities that the query names: known where any store knows them, counted in `hits`."""
    is_known: dict[tuple[str, str], bool] = {}
    for alignments in each:
        for alignment in alignments:
            name = (alignment.kind, alignment.entity)
            is_known[name] = is_known.get(name, False) or alignment.known
    if not is_known:
        return ()
    mentioned = [{mention.key for mention in extract(hit.text)} for hit in hits]
    return tuple(
        EntityAlignment(entity=entity, kind=kind, known=any_knows, in_hits=in_hits)
        for (kind, entity), any_knows in is_known.items()
        for keys in ({mention.key for mention in extract(entity)},)
        for in_hits in (sum(not keys.isdisjoint(mentions) for mentions in mentioned),)
    )


def merged_entities(each: Iterable[Iterable[KnownEntity]]) -> Iterator[KnownEntity]:
    """Entities by kind and name, counts added up, written as the earliest store writes them."""
    by_key: dict[str, KnownEntity] = {}
    for entities in each:
        for entity in entities:
            key = fold_key(entity.kind, entity.surface)
            first = by_key.get(key)
            if first is not None:
                passages, docs = first.passages + entity.passages, first.docs + entity.docs
                by_key[key] = msgspec.structs.replace(first, passages=passages, docs=docs)
            else:
                by_key[key] = entity
    return (by_key[key] for key in sorted(by_key))


class Limits(Struct, frozen=True, kw_only=True):
    """How much is answered of what was found, and to whom."""

    pager: Pager
    max_tokens: int | None
    scope: Scope
    filters: Filters | None
    """Which docs may be answered; None where they were named one by one."""


HomeResults = Sequence[tuple[OpenHome, SearchResult]]


def merged(
    each: HomeResults,
    failed: Sequence[FailedSpace],
    limits: Limits,
    reranking: "Reranking | None" = None,
) -> SearchResult:
    """One answer, `each` being in the order of precedence; that of one space stays as it is.

    With `reranking` each has enough hits for it, and the best of all are reranked together.
    """
    home, first = each[0]
    left_out = warnings_of(failed, limits.scope)
    if len(each) == 1:
        hits = tuple(msgspec.structs.replace(hit, source_space=home.name) for hit in first.hits)
        return msgspec.structs.replace(first, hits=hits, warnings=(*left_out, *first.warnings))
    lists = [
        SpaceHits(name=space.name, hits=result.hits, held=_held(each, place, limits))
        for place, (space, result) in enumerate(each)
    ]
    depth = limits.pager.depth
    ranked = merged_hits(lists, max(depth, reranking.count) if reranking else depth)
    if reranking is not None:
        ranked = _reranked(ranked, reranking)[:depth]
        left_out = (*left_out, *reranking.warnings)
    shown, page = limits.pager.page(ranked)
    hits, cut = _fitting(each, page.numbered(shown), limits.max_tokens)
    cuts = merged_warnings([(home.name, filter(None, [answer.truncated])) for home, answer in each])
    warnings = merged_warnings([(home.name, answer.warnings) for home, answer in each])
    return SearchResult(
        query=first.query,
        mode=first.mode,
        hits=hits,
        entity_alignment=merged_alignments([answer.entity_alignment for _, answer in each], hits),
        warnings=(*left_out, *warnings, *page.warnings),
        next_cursor=page.next_cursor,
        truncated="; ".join(filter(None, (*cuts, cut))) or None,
    )


def _reranked(hits: tuple[Hit, ...], reranking: "Reranking") -> tuple[Hit, ...]:
    """The hits as the reranker orders them, each with the least score so far."""
    from kb.search.rerank import Candidate

    candidates = [
        Candidate(key=hit.chunk_id, text=indexed_text(hit.title, hit.heading, hit.text))
        for hit in hits
    ]
    rows: list[Hit] = []
    for place, (position, score) in enumerate(reranking.order(candidates), 1):
        hit = hits[position]
        explain = hit.explain
        if explain is not None and score is not None:
            explain = {**explain, "rerank": score}
        rows.append(msgspec.structs.replace(hit, rank=place, explain=explain))
    return tuple(with_falling_scores(rows))


def _held(each: HomeResults, place: int, limits: Limits) -> frozenset[str]:
    """The docs found in one space whose source an earlier space has, and may answer, too."""
    if limits.filters is None:
        return frozenset()
    space, result = each[place]
    held: set[str] = set()
    for earlier, _ in each[:place]:
        # Where it cannot be told, the chunk is shown.
        with (
            contextlib.suppress(*FAILURES),
            space.store.read() as mine,
            earlier.store.read() as txn,
        ):
            for doc_id in {hit.doc_id for hit in result.hits}:
                doc = docs.get(mine, doc_id)
                if doc is None:
                    continue
                there, scope = space.store.local_place(doc.place), earlier.scope(limits.scope)
                if is_answerable(txn, there, limits.filters, scope):
                    held.add(doc_id)
    return frozenset(held)


def _fitting(
    each: HomeResults, hits: tuple[Hit, ...], max_tokens: int | None
) -> tuple[tuple[Hit, ...], str | None]:
    """The first hits that fit the budget together: each store has filled one of its own."""
    if max_tokens is None:
        return hits, None
    from kb.operations.budget import counts_of, hits_fitting

    counts: dict[int, int] = {}
    for home, _ in each:
        counts |= counts_of(home, [hit for hit in hits if hit.source_space == home.name])
    return hits_fitting(hits, [counts[hit.rank] for hit in hits], max_tokens)
