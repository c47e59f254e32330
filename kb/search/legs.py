"""The legs of one home's search: its lexical hits and its dense hits for one query."""

import re
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct

from kb.errors import EmbedError, ModelMissing, StoreBehind
from kb.intake.embed.protocol import ANY_SCRIPT
from kb.intake.embed.scripts import can_read, familiarity
from kb.model.config import SearchSettings
from kb.model.doc import Audience, Scope
from kb.model.search import SearchRequest
from kb.search.backends import DenseBackend, SearchBackends
from kb.search.candidates import ChunkFilter, LearnCalls, Reading, gather
from kb.search.entities import EntityMatches, match_entities, mentioning_all
from kb.search.filters import AllowedSources, has_filters, readable_audiences
from kb.search.index.analysis import HAN_BREAK
from kb.search.index.hits import IndexHits
from kb.search.index.lexical_query import HAN, Holding
from kb.search.index.log_follower import CatchUpReport
from kb.search.narrow import narrowed
from kb.search.operators import Needles, needles
from kb.search.pending import LegName, index_lag
from kb.search.wording import Respelled, respelled
from kb.store import chunks, docs, embedders, log
from kb.store.content.files import ContentStore
from kb.store.store import Store

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from kb.search.index.dense import DenseIndex
    from kb.search.index.idf import TermFrequencies
    from kb.search.rerank import Reranking


_FAMILIAR_CHARS: Final = 512
_TEXTS_MAX: Final = 64
"""So many chunks are read for a word that is near another one."""
_HAN_MIN: Final = 200
"""From so many chunks on their characters are most of those that words begin with."""
_NO_WORD: Final = "qj"
_NO_RERANKER: Final = (
    "no reranker is set up; set rerank.kind to onnx or sentence-transformers, and rerank.model to"
    " a folder or name of a cross-encoder"
)


class PreparedQuery(Struct, frozen=True, kw_only=True):
    """A request with all that the steps of the pipeline need."""

    request: SearchRequest
    scope: Scope
    text: str
    needles: Needles
    boosted: tuple[EntityMatches, ...] = ()
    candidates_wanted: int
    """Of each leg."""
    audiences: tuple[Audience, ...] = ()
    allowed_sources: frozenset[int] | None = None
    required_chunks: frozenset[int] | None = None
    dense: DenseBackend | None = None
    """None to search by words alone."""
    commit: int | None = None
    """The newest commit when it was prepared: the indexes follow the store at least so far."""
    warnings: list[str]


class HomeLegs:
    """Searches the indexes of one home, leg by leg. Thread-safe."""

    def __init__(
        self,
        store: Store,
        content: ContentStore,
        backends: SearchBackends,
        settings: SearchSettings,
        lock_wait_s: float,
        learn: LearnCalls,
    ) -> None:
        self.store = store
        self.content = content
        self.backends = backends
        self.settings = settings
        self.learn = learn
        self.allowed_sources = AllowedSources()
        self._lock_wait_s = lock_wait_s

    def reach(self, at_least: int, wait_s: float, *, with_vectors: bool) -> None:
        """Wait until the store and its indexes have come to a transaction. Raises StoreBehind."""
        self.store.reach(at_least, wait_s)
        with self.store.read() as txn:
            end, commit = log.last_seq(txn), txn.last_txn()
        lexical = self.backends.lexical()
        reports = [lexical.catch_up(self.store, wait_s=wait_s)]
        if with_vectors:
            # Without a model nothing is found by vectors.
            with suppress(ModelMissing, EmbedError):
                reports.append(
                    self.backends.dense(commit).index.catch_up(self.store, wait_s=wait_s)
                )
        if any(report.watermark < end for report in reports):
            raise StoreBehind(place="an index")

    def prepare(self, request: SearchRequest, scope: Scope) -> PreparedQuery:
        """The query with its filters resolved and its backends opened; nothing is searched yet.

        Raises ModelMissing or EmbedError where a dense search has no model.
        """
        warnings: list[str] = []
        text = clean_query(request.query, self.settings.query_chars_max, warnings)
        asked = Needles(text=text) if request.verbatim else needles(text)
        text = asked.text
        with self.store.read() as txn:
            docs.expect_audiences(txn)
            embedders.expect(txn)
            log.expect_end(txn, 0)
            required = match_entities(txn, request.require_entities, scope)
            boosted = match_entities(txn, request.boost_entities, scope)
            warnings += [
                f"no passage mentions {entity.argument}"
                for entity in (*required, *boosted)
                if not entity.chunk_nos
            ]
            allowed = self.allowed_sources(txn, request, scope)
            audiences = readable_audiences(txn, scope)
            commit = txn.last_txn()
        return PreparedQuery(
            request=request,
            scope=scope,
            text=text,
            needles=asked,
            boosted=tuple(boosted),
            candidates_wanted=max(self.settings.candidates, request.k),
            audiences=audiences,
            allowed_sources=allowed,
            required_chunks=mentioning_all(required),
            dense=self.dense_backend(request, text, warnings, commit),
            commit=commit,
            warnings=warnings,
        )

    def narrowed(self, query: PreparedQuery) -> PreparedQuery:
        """The query limited to the chunks and sources that hold what it asks for.

        The lexical indexes are asked, which must be up to date.
        """
        if not query.needles.are_there:
            return query
        limits = narrowed(self.backends.lexical(), self.store, query.needles, query.audiences)
        query.warnings.extend(limits.warnings)
        allowed, required = query.allowed_sources, query.required_chunks
        if limits.sources is not None:
            allowed = limits.sources if allowed is None else allowed & limits.sources
        if limits.nos is not None:
            required = limits.nos if required is None else required & limits.nos
        return msgspec.structs.replace(query, allowed_sources=allowed, required_chunks=required)

    def respelled(
        self, query: PreparedQuery, others: "Sequence[TermFrequencies]" = ()
    ) -> tuple[Respelled, ...]:
        """The query's words that no chunk has, here or in `others`, with those that are near."""
        if query.request.mode == "dense":
            return ()
        index = self.backends.lexical()
        every = [*index.frequencies(query.audiences), *others]

        def has_word(field: str, word: str) -> bool:
            return any(part.has_term(field, word) for part in every)

        def texts_with(holding: Holding) -> list[str]:
            nos = index.first_holders(holding, query.audiences, _TEXTS_MAX)
            if not nos:
                return []
            with self.store.read() as txn:
                chunks.expect(txn, nos)
                found = [chunks.get(txn, no) for no in nos]
                return [chunk.text for chunk in found if chunk is not None]

        def knows(word: str) -> bool:
            if query.dense is None:
                return False
            # A tokenizer has the words that its model learned, and others in pieces. One that
            # has whatever stands together as one token knows none.
            noise = (_NO_WORD * len(word))[: len(word)]
            # One by one: for several texts the whole tokenizer would be built.
            whole, other = (query.dense.embedder.count_tokens([text])[0] for text in (word, noise))
            return whole == 1 < other

        def has_han() -> bool:
            return any(part.doc_freq(HAN, HAN_BREAK) >= _HAN_MIN for part in every)

        return respelled(query.text, has_word, texts_with, knows, has_han)

    def follow_lexical(self, query: PreparedQuery) -> bool:
        """Bring the lexical indexes up to date; returns as `_is_behind`."""
        if query.request.mode == "dense" and not query.needles.are_there:
            return False
        state = self.backends.lexical().catch_up(
            self.store,
            wait_s=self._lock_wait_s,
            audiences=query.audiences,
            commit=query.commit,
        )
        return self._is_behind(state, "lexical", query)

    def follow_dense(self, index: "DenseIndex", query: PreparedQuery) -> bool:
        """Bring the dense index up to date; returns as `_is_behind`."""
        state = index.catch_up(self.store, wait_s=self._lock_wait_s, commit=query.commit)
        return self._is_behind(state, "dense", query)

    def _is_behind(self, state: CatchUpReport, leg: LegName, query: PreparedQuery) -> bool:
        """Whether an index may still hold what the scope may not see; warns where it is behind."""
        if state.behind or state.problem:
            with self.store.read() as txn:
                warning = index_lag(txn, state, leg, query.scope)
            if warning:
                query.warnings.append(warning)
        return bool(state.behind) and not query.scope.operator

    def frequencies(self, query: PreparedQuery) -> "list[TermFrequencies]":
        """The term frequencies of what the query's scope may read, one for each audience."""
        if query.request.mode == "dense":
            return []
        return self.backends.lexical().frequencies(query.audiences)

    def called(self, query: PreparedQuery) -> frozenset[int]:
        """The first chunks of the docs that go by the query as their name."""
        if query.request.mode == "dense":
            return frozenset()
        return self.backends.lexical().called(query.text, query.audiences)

    def reranking(self, request: SearchRequest, text: str) -> "Reranking | None":
        """What orders the best chunks for a query text anew; None where nothing is to.

        Raises ModelMissing where the request wants it and the settings name no reranker.
        """
        settings = self.backends.rerank
        if not (settings.kind if request.rerank is None else request.rerank):
            return None
        if not settings.kind:
            raise ModelMissing(_NO_RERANKER)
        from kb.search.rerank import Reranking

        return Reranking(settings, self.backends.reranker, text, self.store.clock)

    def lexical_hits(
        self,
        query: PreparedQuery,
        post_filter: ChunkFilter | None,
        others: "Sequence[TermFrequencies]" = (),
    ) -> IndexHits:
        """The hits of the lexical leg; terms are weighted as if `others` were in this home, too."""
        index = self.backends.lexical()
        # The indexes are split by audience, so that without filters the scope needs no other limit.
        request = query.request
        is_narrow = has_filters(request) or request.without or query.needles.are_there
        is_filtered = query.scope.operator or is_narrow
        allowed = query.allowed_sources if is_filtered else None
        return gather(
            lambda limit: index.search(
                query.text,
                limit,
                query.audiences,
                allowed=allowed,
                restrict_nos=query.required_chunks,
                others=others,
            ),
            post_filter,
            query.candidates_wanted,
        )

    def dense_hits(
        self,
        query: PreparedQuery,
        index: "DenseIndex",
        vector: "NDArray[np.float32]",
        post_filter: ChunkFilter | None,
        candidate_filter: ChunkFilter,
    ) -> IndexHits:
        """The hits of the dense leg, through `candidate_filter` where the index is behind."""
        is_behind = self.follow_dense(index, query)
        return gather(
            lambda limit: index.search(
                vector, limit, allowed=query.allowed_sources, restrict_nos=query.required_chunks
            ),
            candidate_filter if is_behind else post_filter,
            query.candidates_wanted,
        )

    def dense_backend(
        self, request: SearchRequest, text: str, warnings: list[str], commit: int | None = None
    ) -> DenseBackend | None:
        """The dense leg; None where it is not wanted, or, with a warning, cannot read the query."""
        if request.mode == "lexical" or not any(letter.isalnum() for letter in text):
            return None
        try:
            backend = self.backends.dense(commit)
        except (ModelMissing, EmbedError) as error:
            if request.mode == "dense":
                raise
            warnings.append(f"searched by words alone: {error}")
            return None
        if request.mode == "hybrid" and not can_read(backend.embedder.scripts, text):
            from kb.intake.embed.multilingual import offer

            warnings.append(
                "searched by words alone: the embedding model does not read this script;"
                f" to have it read: {offer()}"
            )
            return None
        if backend.warning:
            warnings.append(backend.warning)
        return backend

    def query_vector(self, query: PreparedQuery) -> "NDArray[np.float32] | None":
        """The query's vector; None without a dense leg, or, with a warning, if the model fails."""
        if query.dense is None:
            return None
        try:
            return self.backends.embed_query(query.dense.embedder, query.text)
        except (ModelMissing, EmbedError) as error:
            if query.request.mode == "dense":
                raise
            query.warnings.append(f"searched by words alone: {error}")
            return None

    def reading(self, query: PreparedQuery) -> Reading:
        """How the model of the dense leg reads the query."""
        if query.dense is None or query.request.mode != "hybrid":
            return Reading()
        embedder = query.dense.embedder
        if embedder.scripts >= ANY_SCRIPT:
            return Reading(query=query.text)
        text = query.text[:_FAMILIAR_CHARS]
        return Reading(familiarity=familiarity(text, embedder.count_tokens([text])[0]))


def as_meant(query: PreparedQuery, words: Sequence[Respelled]) -> PreparedQuery:
    """The query with these words as they were meant; a warning for each that is searched for."""
    text = query.text
    can_find_nothing = frozenset() in (query.required_chunks, query.allowed_sources)
    for word in words:
        meant = f"{word.typed} {word.meant}" if word.is_word else word.meant
        text = re.sub(rf"(?<!\w){re.escape(word.typed)}(?!\w)", meant, text)
        if can_find_nothing:
            continue
        too = " too" if word.is_word else ""
        query.warnings.append(
            f"no passage has the word {word.typed}; searched for {word.meant}{too}"
        )
    return msgspec.structs.replace(query, text=text)


def clean_query(query: str, chars_max: int, warnings: list[str]) -> str:
    """The query as valid text of bounded length, with a warning for what is missing or cut."""
    text = query.replace("\0", " ").encode("utf-8", "replace").decode().strip()
    if len(text) > chars_max:
        warnings.append(f"the query was cut to its first {chars_max:,} characters")
        text = text[:chars_max]
    if not any(letter.isalnum() for letter in text):
        warnings.append("the query has no words to search for")
    return text
