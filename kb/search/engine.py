"""The search pipeline: gather candidates, filter, fuse, boost, diversify, and build the hits."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from kb.errors import EmbedError, ModelMissing
from kb.model.config import SearchSettings
from kb.model.doc import Doc, Scope
from kb.model.ids import Lsid
from kb.model.search import Hit, SearchRequest, SearchResult
from kb.search.backends import SearchBackends
from kb.search.candidates import (
    CandidateFilter,
    Candidates,
    LearnCalls,
    OtherSourcesFilter,
    WordCandidates,
    gather,
    merge_legs,
)
from kb.search.entities import align
from kb.search.fit import (
    BACKGROUND_CHUNKS,
    FitContext,
    FitRule,
    apply_cosine,
    apply_fit,
    fit_context,
    fit_rule,
)
from kb.search.hits import ScoredChunk, build_hits
from kb.search.legs import HomeLegs, PreparedQuery, as_meant, clean_query
from kb.search.operators import Needles
from kb.search.order import Ordering
from kb.search.paging import ResultPage, pager_of
from kb.search.pending import expect_pending, pending_warnings, what_next
from kb.search.resolve import resolve_id
from kb.store import chunks
from kb.store.content.files import ContentStore
from kb.store.store import Store

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from kb.intake.embed.protocol import Embedder, FloatVector
    from kb.search.index.dense import DenseIndex


_NOT_CHUNKED: Final = "the doc has no passages yet, so nothing can be compared with it"
_OTHER_MODEL: Final = "what is here was embedded by another model, so it cannot be compared"


class SimilaritySeed(Struct, frozen=True, kw_only=True):
    """The doc or chunk that `like` compares with; valid in any home with the same model."""

    ident: str
    place: Lsid
    """The number of its source, whose chunks are never hits."""
    fingerprint: str = ""
    """The fingerprint of the model that made the vector."""
    vector: "FloatVector | None" = None
    """(dim,) float32 of length 1; None without one, and then the warnings say why."""
    warnings: tuple[str, ...]


class EmbeddedQuery(Struct, frozen=True, kw_only=True):
    """A query's vector, and the model that made it."""

    embedder: "Embedder"
    vector: "FloatVector"
    """(dim,) float32 of length 1."""


class Searcher:
    """Searches one home. Thread-safe."""

    def __init__(
        self,
        store: Store,
        content: ContentStore,
        backends: SearchBackends,
        settings: SearchSettings,
        lock_wait_s: float,
        learn: LearnCalls = lambda _: None,
    ) -> None:
        self._store = store
        self._content = content
        self._backends = backends
        self._settings = settings
        self._learn = learn
        self.legs = HomeLegs(store, content, backends, settings, lock_wait_s, learn)

    def search(self, request: SearchRequest, scope: Scope) -> SearchResult:
        """The hits of a request, for a scope.

        Equal request, store and scope give equal bytes. Nothing that the scope may not see affects
        hits or warnings. No query is an error: one without letters or digits has no hits, and a
        warning says so.
        """
        return self._searched(request, scope)[0]

    def docs(self, request: SearchRequest, scope: Scope) -> tuple[list[Doc], tuple[str, ...]]:
        """The docs of the hits of `search`, each once, and what is to be said of the query.

        For measuring: what hits show takes most of the time of a request for hundreds.
        """
        query, is_behind = self._prepared(request, scope)
        with self._store.read() as txn:
            candidate_filter = CandidateFilter(txn, request, scope, self._learn)
            ranked, _, _ = self._ordered(query, candidate_filter, is_behind=is_behind)
            docs = {row.doc.doc_id: row.doc for row in ranked}
        return list(docs.values()), tuple(query.warnings)

    def _prepared(self, request: SearchRequest, scope: Scope) -> tuple[PreparedQuery, bool]:
        """The query as it is meant, and whether an index is behind the store."""
        query = self.legs.prepare(request, scope)
        is_behind = self.legs.follow_lexical(query)
        query = self.legs.narrowed(query)
        if not is_behind:
            query = as_meant(query, self.legs.respelled(query))
        return query, is_behind

    def _searched(self, request: SearchRequest, scope: Scope) -> tuple[SearchResult, int | None]:
        """The hits, and the commit whose docs they are; None if one came in between."""
        query, is_behind = self._prepared(request, scope)
        with self._store.read() as txn:
            expect_pending(txn)
            candidate_filter = CandidateFilter(txn, request, scope, self._learn)
            ranked, page, weights = self._ranked(query, candidate_filter, is_behind=is_behind)
            hits, truncated = build_hits(
                txn, self._content, ranked, request, self._learn, page.first, weights
            )
            nos = [row.chunk.no for row in ranked]
            alignment, entity_warnings = align(txn, query.text, nos, scope)
            query.warnings.extend(pending_warnings(txn, self._store.clock, request.mode, scope))
            commit = query.commit if txn.last_txn() == query.commit else None
        result = SearchResult(
            query=request.query,
            mode=request.mode,
            hits=hits,
            entity_alignment=alignment,
            warnings=tuple(dict.fromkeys((*query.warnings, *entity_warnings, *page.warnings))),
            next_cursor=page.next_cursor,
            truncated=truncated,
        )
        return result, commit

    def similar(self, ident: str, k: int, scope: Scope) -> SearchResult:
        """The chunks of other docs that are most similar to a doc or a chunk.

        There are none before the doc is chunked. Raises NotFound where the scope sees no such id,
        and AmbiguousId.
        """
        return self.like(self.seed(ident, scope), k, scope)

    def seed(self, ident: str, scope: Scope) -> SimilaritySeed:
        """The mean vector of what an id names. Raises as `similar`."""
        import numpy as np

        with self._store.read() as txn:
            resolved = resolve_id(txn, ident, scope)
            source_no = resolved.doc.source_no
            rows = [resolved.chunk] if resolved.chunk else chunks.of_source(txn, source_no)
        if not rows:
            return SimilaritySeed(ident=ident, place=resolved.doc.place, warnings=(_NOT_CHUNKED,))
        query = self._similarity_query(ident, 0, scope)
        index = self._backends.dense(None).index
        self.legs.follow_dense(index, query)
        vectors, _ = index.vectors([chunk.no for chunk in rows])
        mean = vectors.sum(axis=0)
        length = float(np.linalg.norm(mean))
        if not length:
            with self._store.read() as txn:
                advice = what_next(txn, self._store.clock, scope)
            query.warnings.append(f"it has no vectors yet; {advice}")
        return SimilaritySeed(
            ident=ident,
            place=resolved.doc.place,
            fingerprint=index.fingerprint,
            vector=(mean / length).astype(np.float32) if length else None,
            warnings=tuple(query.warnings),
        )

    def like(self, seed: SimilaritySeed, k: int, scope: Scope) -> SearchResult:
        """The chunks most similar to a seed of any home, without those of its own source."""
        query = self._similarity_query(seed.ident, k, scope)
        query.warnings.extend(seed.warnings)
        hits: tuple[Hit, ...] = ()
        if seed.vector is not None:
            index = self._backends.dense(None).index
            if index.fingerprint == seed.fingerprint:
                hits = self._nearest(seed, seed.vector, index, query)
            else:
                query.warnings.append(_OTHER_MODEL)
        return SearchResult(
            query=seed.ident,
            mode="dense",
            hits=hits,
            entity_alignment=(),
            warnings=tuple(dict.fromkeys(query.warnings)),
        )

    def embed_query(self, query: str) -> EmbeddedQuery | None:
        """The query's vector; None where there is no model, or none that can read the query."""
        text = clean_query(query, self._settings.query_chars_max, [])
        backend = self.legs.dense_backend(SearchRequest(query=query), text, [])
        if backend is None:
            return None
        try:
            vector = self._backends.embed_query(backend.embedder, text)
        except (ModelMissing, EmbedError):
            return None
        return EmbeddedQuery(embedder=backend.embedder, vector=vector)

    def _similarity_query(self, ident: str, k: int, scope: Scope) -> PreparedQuery:
        return PreparedQuery(
            request=SearchRequest(query=ident, k=k, mode="dense"),
            scope=scope,
            text="",
            needles=Needles(text=""),
            candidates_wanted=self._settings.candidates,
            warnings=[],
        )

    def _nearest(
        self,
        seed: SimilaritySeed,
        vector: "NDArray[np.float32]",
        index: "DenseIndex",
        query: PreparedQuery,
    ) -> tuple[Hit, ...]:
        self.legs.follow_dense(index, query)
        request = query.request
        with self._store.read() as txn:
            other_sources = OtherSourcesFilter(txn, request, query.scope, self._learn, seed.place)
            allowed = self.legs.allowed_sources(txn, request, query.scope)
            nearest = gather(
                lambda limit: index.search(vector, limit, allowed=allowed),
                other_sources,
                query.candidates_wanted,
            )
            candidates = merge_legs(None, nearest, index, vector)
            ordering = Ordering(self._settings, request.k)
            ranked = ordering.order(candidates, None, [], other_sources) or []
            rows = apply_cosine(ranked)
            return build_hits(txn, self._content, rows, request, self._learn)[0]

    def _ranked(
        self,
        query: PreparedQuery,
        candidate_filter: CandidateFilter,
        *,
        is_behind: bool,
    ) -> tuple[list[ScoredChunk], ResultPage, Mapping[str, float]]:
        """The hits of the page in order, where it is, and the weights of the query's terms."""
        pager = pager_of(query.request, query.candidates_wanted)
        ranked, candidates, rule = self._ordered(query, candidate_filter, is_behind=is_behind)
        if candidates is None:
            return *pager.page([]), {}
        context = self._fit_context(query, candidates, rule, has_hits=bool(ranked))
        fitting = apply_fit(ranked[: pager.scored], context, rule)
        return *pager.page([*fitting, *ranked[pager.scored :]]), context.weights

    def _ordered(
        self,
        query: PreparedQuery,
        candidate_filter: CandidateFilter,
        *,
        is_behind: bool,
    ) -> "tuple[list[ScoredChunk], Candidates | WordCandidates | None, FitRule]":
        """The hits up to the end of the page, of which candidates, and how their fit is measured.

        The indexes filter by the facets. Only where an index is behind the store does every
        candidate pass through the candidate filter, which reads the store.
        """
        depth = pager_of(query.request, query.candidates_wanted).depth
        reranking = self.legs.reranking(query.request, query.text)
        ordering = Ordering(self._settings, depth, reranking)
        called = self.legs.called(query)
        for post_filter in (candidate_filter,) if is_behind else (None, candidate_filter):
            candidates, vector = self._candidates(query, post_filter, candidate_filter)
            if post_filter is None and candidate_filter.rejects_any(candidates.nos):
                continue
            ranked = ordering.order(
                candidates, vector, query.boosted, candidate_filter, called, query.text
            )
            if ranked is not None:
                query.warnings.extend(reranking.warnings if reranking else ())
                dense = query.dense if vector is not None else None
                rule = fit_rule(
                    dense.embedder.fingerprint if dense else None, self._settings.fusion
                )
                return ranked, candidates, rule
        return [], None, fit_rule(None, self._settings.fusion)

    def _fit_context(
        self,
        query: PreparedQuery,
        candidates: Candidates | WordCandidates,
        rule: FitRule,
        *,
        has_hits: bool,
    ) -> FitContext:
        rarity: Mapping[str, float] = {}
        if query.request.mode != "dense" and has_hits:
            rarity = self._backends.lexical().rarity(query.text, query.audiences, BACKGROUND_CHUNKS)
        return fit_context(query.text, candidates, rarity, rule.background_cosine)

    def _candidates(
        self,
        query: PreparedQuery,
        post_filter: CandidateFilter | None,
        candidate_filter: CandidateFilter,
    ) -> "tuple[Candidates | WordCandidates, NDArray[np.float32] | None]":
        """The candidates of both legs, and the query's vector where the dense leg was used."""
        legs = self.legs
        lexical = legs.lexical_hits(query, post_filter) if query.request.mode != "dense" else None
        vector = legs.query_vector(query)
        if vector is None or query.dense is None:
            return merge_legs(lexical, None, None, None), None
        dense = legs.dense_hits(query, query.dense.index, vector, post_filter, candidate_filter)
        ceiling = 0.0
        if lexical is not None and lexical.nos:
            ceiling = self._backends.lexical().ceiling(query.text, query.audiences)
        reading = legs.reading(query)
        return merge_legs(lexical, dense, query.dense.index, vector, ceiling, reading), vector
