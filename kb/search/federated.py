"""Federated search: one ranking over the chunks of several homes.

The homes' hits are merged leg by leg and then ranked as those of a single home are. For that the
homes must have one embedding model, or search by words alone, and terms are weighted by the joint
statistics of all homes. Only the audiences that a home lets its scope read count there.
"""

import contextlib
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from kb.model.doc import Scope
from kb.model.ids import ChunkNo
from kb.model.search import Filters, Hit, SearchRequest, SearchResult
from kb.model.text import Chunk
from kb.search.candidates import Candidates, WordCandidates, merge_legs
from kb.search.engine import Searcher
from kb.search.entities import EntityMatches, align_mentions, visible_mentions
from kb.search.federated_homes import (
    LOCAL_MASK,
    AdmissionFilter,
    FirstHomeFilter,
    HomeFilter,
    HomePart,
    home_position,
    localized,
)
from kb.search.fit import BACKGROUND_CHUNKS, apply_fit, fit_context, fit_rule
from kb.search.hits import ScoredChunk, build_hit, fill_hits
from kb.search.index.hits import IndexHits
from kb.search.index.lexical_tantivy import rank_rows
from kb.search.legs import PreparedQuery, as_meant
from kb.search.order import Ordering
from kb.search.paging import ResultPage, pager_of
from kb.search.pending import pending_warnings
from kb.search.wording import Respelled
from kb.store import chunks
from kb.store.kv import ReadTxn

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from kb.search.budget import ChunkSpan
    from kb.search.index.idf import TermFrequencies


class HomeQuery(Struct, frozen=True, kw_only=True):
    """A home to search, and the request with the ids of docs and packs that are valid there."""

    searcher: Searcher
    request: SearchRequest
    scope: Scope
    """Who asks, as that home knows them."""


class FederatedResult(Struct, frozen=True, kw_only=True):
    """The hits of several homes in one order."""

    result: SearchResult
    """Its warnings are those about all homes together."""
    home_positions: tuple[int, ...]
    """For each hit the position of its home in the list of queries."""
    home_warnings: tuple[tuple[str, ...], ...]
    """The warnings of each home."""


def search_homes(
    queries: Sequence[HomeQuery], shared_filters: Filters | None
) -> FederatedResult | None:
    """The hits of two homes or more, as one home with all of their docs would rank them.

    Of a source that several homes hold and may answer under `shared_filters`, only the earliest
    home's chunks are hits; without these filters (None) all are. Of hits with equal text in
    different homes only the earliest home's stays. The first home's settings apply.

    None where the homes are not comparable: their embedding models differ, or one has none.
    Raises what a search of one of the homes raises; nothing is told then of which.
    """
    parts = [
        HomePart(
            position=position,
            legs=query.searcher.legs,
            query=query.searcher.legs.prepare(query.request, query.scope),
        )
        for position, query in enumerate(queries)
    ]
    if len({_comparable_key(part.query) for part in parts}) > 1:
        return None
    behind = frozenset(part.position for part in parts if part.legs.follow_lexical(part.query))
    parts = _as_meant_in_all(parts, is_behind=bool(behind))
    with contextlib.ExitStack() as stack:
        txns = [stack.enter_context(part.legs.store.read()) for part in parts]
        admission = AdmissionFilter(parts, txns)
        first_home = FirstHomeFilter(admission, parts, txns, shared_filters)
        ranking = _Ranking(parts, admission, first_home, behind)
        return _result(parts, txns, ranking.ranked(), ranking.warnings)


def _as_meant_in_all(parts: Sequence[HomePart], *, is_behind: bool) -> list[HomePart]:
    """The homes with the query narrowed in each, and with one spelling in all."""
    frequencies = [part.legs.frequencies(part.query) for part in parts]
    words: tuple[Respelled, ...] = ()
    for part in () if is_behind else parts:
        others = [of for n, home in enumerate(frequencies) if n != part.position for of in home]
        known = {word.typed for word in words}
        found = part.legs.respelled(part.query, others)
        words += tuple(word for word in found if word.typed not in known)
    return [
        msgspec.structs.replace(part, query=as_meant(part.legs.narrowed(part.query), words))
        for part in parts
    ]


def _comparable_key(query: PreparedQuery) -> tuple[str, str | None]:
    fingerprint = query.dense.embedder.fingerprint if query.dense else None
    return query.text, fingerprint


def _result(
    parts: Sequence[HomePart],
    txns: Sequence[ReadTxn],
    ranked: "_RankedPage",
    ranking_warnings: Sequence[str],
) -> FederatedResult:
    first, page = parts[0].query, ranked.page
    positions: list[int] = []

    def build(rank: int, row: ScoredChunk, span: "ChunkSpan | None") -> Hit:
        part, local = localized(parts, row.chunk)
        positions.append(part.position)
        if span is not None:
            _, start = localized(parts, span.first)
            _, end = localized(parts, span.last)
            span = msgspec.structs.replace(span, first=start, last=end)
        row = msgspec.structs.replace(row, chunk=local)
        legs = part.legs
        txn = txns[part.position]
        request, rank = part.query.request, page.first + rank
        return build_hit(txn, legs.content, rank, row, request, legs.learn, span, ranked.weights)

    def chunk_at(source_no: int, ordinal: int) -> Chunk | None:
        position = home_position(source_no)
        chunk = chunks.at(txns[position], source_no & LOCAL_MASK, ordinal)
        return parts[position].globalized(chunk) if chunk else None

    def mentions_of(key: str) -> frozenset[ChunkNo]:
        return frozenset(
            part.global_no(no)
            for part, txn in zip(parts, txns, strict=True)
            for no in visible_mentions(txn, [key], part.query.scope)
        )

    hits, truncated = fill_hits(ranked.rows, first.request.max_tokens, build, chunk_at)
    alignment, warnings = align_mentions(
        first.text, [row.chunk.no for row in ranked.rows], mentions_of
    )
    for part, txn in zip(parts, txns, strict=True):
        clock, scope = part.legs.store.clock, part.query.scope
        part.query.warnings.extend(pending_warnings(txn, clock, first.request.mode, scope))
    return FederatedResult(
        result=SearchResult(
            query=first.request.query,
            mode=first.request.mode,
            hits=hits,
            entity_alignment=alignment,
            warnings=tuple(dict.fromkeys((*ranking_warnings, *warnings, *page.warnings))),
            next_cursor=page.next_cursor,
            truncated=truncated,
        ),
        home_positions=tuple(positions),
        home_warnings=tuple(tuple(dict.fromkeys(part.query.warnings)) for part in parts),
    )


class _FederatedVectors:
    """The vectors of chunks with global numbers."""

    def __init__(self, parts: Sequence[HomePart]) -> None:
        self._parts = parts

    def vectors(self, nos: list[int]) -> "tuple[NDArray[np.float32], NDArray[np.bool_]]":
        """As `DenseIndex.vectors`; `nos` ascend."""
        import numpy as np

        parts = [
            part.query.dense.index.vectors(
                [no & LOCAL_MASK for no in nos if home_position(no) == part.position]
            )
            for part in self._parts
            if part.query.dense is not None
        ]
        return np.concatenate([rows for rows, _ in parts]), np.concatenate(
            [has for _, has in parts]
        )


class _GatheredLegs(Struct, frozen=True, kw_only=True):
    """What the homes found: scores with global chunk numbers, in no order."""

    lexical: list[tuple[float, int]] | None
    """None where the leg was not used, as in `dense`."""
    dense: list[tuple[float, int]] | None
    vector: "NDArray[np.float32] | None"
    """Of the query; None without a dense leg."""

    @property
    def nos(self) -> set[int]:
        """The numbers of all chunks found."""
        return {no for leg in (self.lexical, self.dense) for _, no in leg or ()}


class _RankedPage(Struct, frozen=True, kw_only=True):
    """The hits of a page in order, with global numbers."""

    rows: list[ScoredChunk]
    page: ResultPage
    weights: Mapping[str, float]
    """Of the query's terms, by their rarity."""


class _Ranking:
    """Ranks the chunks of all homes for one query."""

    def __init__(
        self,
        parts: Sequence[HomePart],
        admission: AdmissionFilter,
        first_home: FirstHomeFilter,
        behind: frozenset[int],
    ) -> None:
        """`behind` are the homes whose lexical indexes may hold what the scope may not see."""
        self._parts = parts
        self._admission = admission
        self._first_home = first_home
        self._behind = behind
        self._candidates = max(part.query.candidates_wanted for part in parts)
        self._pager = pager_of(parts[0].query.request, self._candidates)
        self._frequencies = [part.legs.frequencies(part.query) for part in parts]
        self._boosted = [
            EntityMatches(
                argument=entity.argument,
                chunk_nos=frozenset(part.global_no(no) for no in entity.chunk_nos),
            )
            for part in parts
            for entity in part.query.boosted
        ]

        self._called = frozenset(
            part.global_no(ChunkNo(no)) for part in parts for no in part.legs.called(part.query)
        )
        first = parts[0]
        self._reranking = first.legs.reranking(first.query.request, first.query.text)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the order lacks."""
        return self._reranking.warnings if self._reranking else ()

    def ranked(self) -> "_RankedPage":
        """The hits of the page in order, with global numbers, and where it is.

        As in one home, the store is read for the best candidates only. Where one of them may not
        appear, all candidates are gathered again through the filter. Where an earlier home has one
        of the candidates, too, all that is in two homes is left out and the rest ranked again.
        """
        every_home = frozenset(part.position for part in self._parts)
        legs = self._gathered(self._behind)
        candidates = self._merged(legs)
        rows = self._ordered(candidates, legs)
        if rows is None:
            legs = self._gathered(every_home)
            candidates = self._merged(legs)
            rows = self._ordered(candidates, legs) or []
        # Of all candidates, so that it is one ranking however many hits are wanted.
        if self._first_home.duplicates(candidates.nos):
            candidates = self._merged(legs, self._first_home.duplicates(legs.nos))
            rows = self._ordered(candidates, legs) or []
        return self._with_fit(rows, candidates, has_vector=legs.vector is not None)

    def _ordered(
        self, candidates: Candidates | WordCandidates, legs: _GatheredLegs
    ) -> list[ScoredChunk] | None:
        ordering = Ordering(self._parts[0].legs.settings, self._pager.depth, self._reranking)
        return ordering.order(
            candidates,
            legs.vector,
            self._boosted,
            self._admission,
            self._called,
            self._parts[0].query.text,
        )

    def _gathered(self, filtered: frozenset[int]) -> _GatheredLegs:
        """What each home finds, the hits of the homes in `filtered` checked one by one."""
        query = self._parts[0].query
        lexical = self._lexical_hits(filtered) if query.request.mode != "dense" else None
        vector = self._query_vector()
        dense = None if vector is None else self._dense_hits(vector, filtered)
        return _GatheredLegs(lexical=lexical, dense=dense, vector=vector)

    def _merged(
        self, legs: _GatheredLegs, without: frozenset[int] = frozenset()
    ) -> Candidates | WordCandidates:
        """The best of all homes in each leg, as many as a leg of one home brings."""
        query = self._parts[0].query
        lexical = dense = vectors = None
        if legs.lexical is not None:
            rows = [(score, no) for score, no in legs.lexical if no not in without]
            lexical = rank_rows(rows, self._candidates)
        if legs.dense is not None:
            best = sorted((-score, no) for score, no in legs.dense if no not in without)
            del best[self._candidates :]
            dense = IndexHits(nos=[no for _, no in best], scores=[-score for score, _ in best])
        ceiling = 0.0
        if dense is not None:
            vectors = _FederatedVectors(self._parts)
            if lexical is not None and lexical.nos:
                index = self._parts[0].legs.backends.lexical()
                ceiling = index.ceiling(query.text, query.audiences, self._others(0))
        reading = self._parts[0].legs.reading(query)
        return merge_legs(lexical, dense, vectors, legs.vector, ceiling, reading)

    def _lexical_hits(self, filtered: frozenset[int]) -> list[tuple[float, int]]:
        rows: list[tuple[float, int]] = []
        for part in self._parts:
            home_filter = HomeFilter(self._admission, part)
            hits = part.legs.lexical_hits(
                part.query,
                home_filter if part.position in filtered else None,
                self._others(part.position),
            )
            rows += zip(hits.scores, map(part.global_no, hits.nos), strict=True)
        return rows

    def _dense_hits(
        self, vector: "NDArray[np.float32]", filtered: frozenset[int]
    ) -> list[tuple[float, int]]:
        rows: list[tuple[float, int]] = []
        for part in self._parts:
            if part.query.dense is None:
                continue
            home_filter = HomeFilter(self._admission, part)
            hits = part.legs.dense_hits(
                part.query,
                part.query.dense.index,
                vector,
                home_filter if part.position in filtered else None,
                home_filter,
            )
            rows += zip(hits.scores, map(part.global_no, hits.nos), strict=True)
        return rows

    def _query_vector(self) -> "NDArray[np.float32] | None":
        """The query's vector; None where one of the homes cannot embed it."""
        vectors = [part.legs.query_vector(part.query) for part in self._parts]
        return None if any(vector is None for vector in vectors) else vectors[0]

    def _others(self, position: int) -> "list[TermFrequencies]":
        """The term frequencies of the homes but for one."""
        return [
            frequencies
            for home, home_frequencies in enumerate(self._frequencies)
            if home != position
            for frequencies in home_frequencies
        ]

    def _with_fit(
        self,
        ranked: list[ScoredChunk],
        candidates: Candidates | WordCandidates,
        *,
        has_vector: bool,
    ) -> "_RankedPage":
        """The hits of the page with their fit and their score."""
        legs, query = self._parts[0].legs, self._parts[0].query
        rarity: Mapping[str, float] = {}
        if query.request.mode != "dense" and ranked:
            index = legs.backends.lexical()
            rarity = index.rarity(query.text, query.audiences, BACKGROUND_CHUNKS, self._others(0))
        fingerprint = query.dense.embedder.fingerprint if query.dense and has_vector else None
        rule = fit_rule(fingerprint, legs.settings.fusion)
        context = fit_context(query.text, candidates, rarity, rule.background_cosine)
        rows, page = self._pager.page(apply_fit(ranked, context, rule))
        return _RankedPage(rows=rows, page=page, weights=context.weights)
