"""The search pipeline: gather candidates, filter, fuse, boost, diversify, and build the hits."""

import logging
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from kb.errors import EmbedError, ModelMissing
from kb.intake.embed.protocol import Embedder
from kb.intake.embed.scripts import can_read
from kb.model.config import SearchSettings
from kb.model.doc import Audience, Scope
from kb.model.ids import Lsid
from kb.model.search import Hit, SearchRequest, SearchResult
from kb.search.backends import DenseBackend, SearchBackends
from kb.search.candidates import (
    CandidateFilter,
    Candidates,
    LearnCalls,
    OtherSourcesFilter,
    gather,
    merge_legs,
)
from kb.search.entities import EntityMatches, align, match_entities, mentioning_all
from kb.search.filters import AudienceCache, allowed_sources, has_filters, readable_audiences
from kb.search.fit import BACKGROUND_CHUNKS, apply_fit, fit_context, fit_rule
from kb.search.hits import ScoredChunk, build_hits
from kb.search.index import DenseIndex
from kb.search.index.hits import IndexHits
from kb.search.index.log_follower import CatchUpReport
from kb.search.order import Ordering
from kb.search.pending import LegName, index_lag, pending_warnings
from kb.search.resolve import resolve_id
from kb.store import chunks
from kb.store.content.files import ContentStore
from kb.store.store import Store

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from kb.intake.embed.protocol import FloatVector

logger = logging.getLogger(__name__)

_NOT_CHUNKED: Final = "the doc has no passages yet, so nothing can be compared with it"
_OTHER_MODEL: Final = "what is here was embedded by another model, so it cannot be compared"


class SimilaritySeed(Struct, frozen=True, kw_only=True):
    """The doc or chunk that `like` compares with; valid in any home with the same model."""

    ident: str
    place: Lsid
    """Of its source, whose chunks are never hits."""
    fingerprint: str = ""
    """Of the model that made the vector."""
    vector: "FloatVector | None" = None
    """(dim,) float32 of length 1; None without one, and then the warnings say why."""
    warnings: tuple[str, ...]


class EmbeddedQuery(Struct, frozen=True, kw_only=True):
    """A query's vector, and the model that made it."""

    embedder: Embedder
    vector: "FloatVector"
    """(dim,) float32 of length 1."""


class _PreparedQuery(Struct, frozen=True, kw_only=True):
    """A request with all that the steps of the pipeline need."""

    request: SearchRequest
    scope: Scope
    text: str
    candidates_wanted: int
    """Of each leg."""
    audiences: tuple[Audience, ...] = ()
    allowed_sources: frozenset[int] | None = None
    required_chunks: frozenset[int] | None = None
    dense: DenseBackend | None = None
    """None to search by words alone."""
    warnings: list[str]


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
        self._lock_wait_s = lock_wait_s
        self._learn = learn
        self._audience_cache = AudienceCache()

    def search(self, request: SearchRequest, scope: Scope) -> SearchResult:
        """The hits of a request, for a scope.

        Equal request, store and scope give equal bytes. Nothing that the scope may not see affects
        hits or warnings. No query is an error: one without letters or digits has no hits, and a
        warning says so.
        """
        warnings: list[str] = []
        text = _clean_query(request.query, self._settings.query_chars_max, warnings)
        with self._store.read() as txn:
            required = match_entities(txn, request.require_entities, scope)
            boosted = match_entities(txn, request.boost_entities, scope)
            warnings += [
                f"no passage mentions {entity.argument}"
                for entity in (*required, *boosted)
                if not entity.chunk_nos
            ]
            allowed = allowed_sources(txn, request, scope, self._audience_cache)
            audiences = readable_audiences(txn, scope)
        query = _PreparedQuery(
            request=request,
            scope=scope,
            text=text,
            candidates_wanted=max(self._settings.candidates, request.k),
            audiences=audiences,
            allowed_sources=allowed,
            required_chunks=mentioning_all(required),
            dense=self._dense_backend(request, text, warnings),
            warnings=warnings,
        )
        is_behind = self._follow_lexical(query)
        with self._store.read() as txn:
            candidate_filter = CandidateFilter(txn, request, scope, self._learn)
            ranked = self._ranked(query, boosted, candidate_filter, is_behind=is_behind)
            hits, truncated = build_hits(txn, self._content, ranked, request, self._learn)
            alignment, entity_warnings = align(txn, text, [row.chunk.no for row in ranked], scope)
            warnings += pending_warnings(txn, request.mode, scope)
        return SearchResult(
            query=request.query,
            mode=request.mode,
            hits=hits,
            entity_alignment=alignment,
            warnings=tuple(dict.fromkeys((*warnings, *entity_warnings))),
            truncated=truncated,
        )

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
        index = self._backends.dense().index
        self._follow_dense(index, query)
        vectors, _ = index.vectors([chunk.no for chunk in rows])
        mean = vectors.sum(axis=0)
        length = float(np.linalg.norm(mean))
        if not length:
            query.warnings.append("it has no vectors yet; run `kb worker --drain`")
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
            index = self._backends.dense().index
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
        text = _clean_query(query, self._settings.query_chars_max, [])
        backend = self._dense_backend(SearchRequest(query=query), text, [])
        if backend is None:
            return None
        try:
            vector = self._backends.embed_query(backend.embedder, text)
        except (ModelMissing, EmbedError):
            return None
        return EmbeddedQuery(embedder=backend.embedder, vector=vector)

    def _similarity_query(self, ident: str, k: int, scope: Scope) -> _PreparedQuery:
        return _PreparedQuery(
            request=SearchRequest(query=ident, k=k, mode="dense"),
            scope=scope,
            text="",
            candidates_wanted=self._settings.candidates,
            warnings=[],
        )

    def _nearest(
        self,
        seed: SimilaritySeed,
        vector: "NDArray[np.float32]",
        index: DenseIndex,
        query: _PreparedQuery,
    ) -> tuple[Hit, ...]:
        self._follow_dense(index, query)
        request = query.request
        with self._store.read() as txn:
            other_sources = OtherSourcesFilter(txn, request, query.scope, self._learn, seed.place)
            allowed = allowed_sources(txn, request, query.scope, self._audience_cache)
            nearest = gather(
                lambda limit: index.search(vector, limit, allowed=allowed),
                other_sources,
                query.candidates_wanted,
            )
            candidates = merge_legs(None, nearest, index, vector)
            ordering = Ordering(self._settings, request.k)
            ranked = ordering.order(candidates, None, [], other_sources) or []
            return build_hits(txn, self._content, ranked, request, self._learn)[0]

    def _follow_lexical(self, query: _PreparedQuery) -> bool:
        """Bring the lexical indexes up to date; returns as `_is_behind`."""
        if query.request.mode == "dense":
            return False
        state = self._backends.lexical().catch_up(
            self._store, wait_s=self._lock_wait_s, audiences=query.audiences
        )
        return self._is_behind(state, "lexical", query)

    def _follow_dense(self, index: DenseIndex, query: _PreparedQuery) -> bool:
        """Bring the dense index up to date; returns as `_is_behind`."""
        state = index.catch_up(self._store, wait_s=self._lock_wait_s)
        return self._is_behind(state, "dense", query)

    def _is_behind(self, state: CatchUpReport, leg: LegName, query: _PreparedQuery) -> bool:
        """Whether an index may still hold what the scope may not see; warns where it is behind."""
        if state.behind or state.problem:
            with self._store.read() as txn:
                warning = index_lag(txn, state, leg, query.scope)
            if warning:
                query.warnings.append(warning)
        return bool(state.behind) and not query.scope.operator

    def _ranked(
        self,
        query: _PreparedQuery,
        boosted: list[EntityMatches],
        candidate_filter: CandidateFilter,
        *,
        is_behind: bool,
    ) -> list[ScoredChunk]:
        """The hits in order.

        The indexes filter by the facets. Only where an index is behind the store does every
        candidate pass through the candidate filter, which reads the store.
        """
        ordering = Ordering(self._settings, query.request.k)
        for post_filter in (candidate_filter,) if is_behind else (None, candidate_filter):
            candidates, vector = self._candidates(query, post_filter, candidate_filter)
            ranked = ordering.order(candidates, vector, boosted, candidate_filter)
            if ranked is not None:
                return self._with_fit(query, ranked, candidates, has_vector=vector is not None)
        return []

    def _with_fit(
        self,
        query: _PreparedQuery,
        ranked: list[ScoredChunk],
        candidates: Candidates,
        *,
        has_vector: bool,
    ) -> list[ScoredChunk]:
        """The hits with their fit, without those that score less than the request's minimum."""
        request, dense = query.request, query.dense
        rarity: Mapping[str, float] = {}
        if request.mode != "dense" and ranked:
            rarity = self._backends.lexical().rarity(query.text, query.audiences, BACKGROUND_CHUNKS)
        fingerprint = dense.embedder.fingerprint if dense and has_vector else None
        rule = fit_rule(fingerprint, self._settings.fusion)
        context = fit_context(query.text, candidates, rarity)
        return apply_fit(ranked, context, rule, request.min_score)

    def _candidates(
        self,
        query: _PreparedQuery,
        post_filter: CandidateFilter | None,
        candidate_filter: CandidateFilter,
    ) -> "tuple[Candidates, NDArray[np.float32] | None]":
        """The candidates of both legs, and the query's vector where the dense leg was used."""
        lexical = self._lexical_hits(query, post_filter) if query.request.mode != "dense" else None
        vector = self._query_vector(query)
        if vector is None or query.dense is None:
            return merge_legs(lexical, None, None, None), None
        index = query.dense.index
        is_behind = self._follow_dense(index, query)
        dense = gather(
            lambda limit: index.search(
                vector, limit, allowed=query.allowed_sources, restrict_nos=query.required_chunks
            ),
            candidate_filter if is_behind else post_filter,
            query.candidates_wanted,
        )
        ceiling = 0.0
        if lexical is not None and lexical.nos:
            ceiling = self._backends.lexical().ceiling(query.text, query.audiences)
        return merge_legs(lexical, dense, index, vector, ceiling), vector

    def _lexical_hits(
        self, query: _PreparedQuery, post_filter: CandidateFilter | None
    ) -> IndexHits:
        index = self._backends.lexical()
        # The indexes are split by audience, so that without filters the scope needs no other limit.
        is_filtered = query.scope.operator or has_filters(query.request)
        allowed = query.allowed_sources if is_filtered else None
        return gather(
            lambda limit: index.search(
                query.text,
                limit,
                query.audiences,
                allowed=allowed,
                restrict_nos=query.required_chunks,
            ),
            post_filter,
            query.candidates_wanted,
        )

    def _dense_backend(
        self, request: SearchRequest, text: str, warnings: list[str]
    ) -> DenseBackend | None:
        """The dense leg; None where it is not wanted, or, with a warning, cannot read the query."""
        if request.mode == "lexical" or not any(letter.isalnum() for letter in text):
            return None
        try:
            backend = self._backends.dense()
        except (ModelMissing, EmbedError) as error:
            if request.mode == "dense":
                raise
            warnings.append(f"searched by words alone: {error}")
            return None
        if request.mode == "hybrid" and not can_read(backend.embedder.scripts, text):
            warnings.append(
                "searched by words alone: the embedding model does not read this script"
            )
            return None
        if backend.warning:
            warnings.append(backend.warning)
        return backend

    def _query_vector(self, query: _PreparedQuery) -> "NDArray[np.float32] | None":
        """The query's vector; None without a dense leg, or, with a warning, if the model fails."""
        if query.dense is None:
            return None
        try:
            return self._backends.embed_query(query.dense.embedder, query.text)
        except (ModelMissing, EmbedError) as error:
            if query.request.mode == "dense":
                raise
            query.warnings.append(f"searched by words alone: {error}")
            return None


def _clean_query(query: str, chars_max: int, warnings: list[str]) -> str:
    """The query as valid text of bounded length, with a warning for what is missing or cut."""
    text = query.replace("\0", " ").encode("utf-8", "replace").decode().strip()
    if len(text) > chars_max:
        warnings.append(f"the query was cut to its first {chars_max:,} characters")
        text = text[:chars_max]
    if not any(letter.isalnum() for letter in text):
        warnings.append("the query has no words to search for")
    return text
