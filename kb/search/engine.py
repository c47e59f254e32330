"""The pipeline: candidates, filter, fusion, boost, spread, text."""

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from kb.config import SearchSettings
from kb.content.files import ContentStore
from kb.embed.protocol import Embedder
from kb.embed.scripts import can_read
from kb.errors import EmbedError, ModelMissing, NotFound
from kb.index import DenseIndex, LexicalIndex
from kb.index.follow import CatchUp
from kb.index.result import Hits
from kb.jobs import queue
from kb.model.doc import Doc, Scope
from kb.model.ids import ChunkNo
from kb.model.search import Hit, SearchRequest, SearchResult
from kb.model.text import Chunk
from kb.search.answer import Scored, hits_of
from kb.search.candidates import Candidates, Gate, gather, unite
from kb.search.diversity import spread
from kb.search.filters import allowed_sources
from kb.search.fuse import Leg, fuse
from kb.search.mentions import Asked, align, look_up, required
from kb.store import chunks, docs
from kb.store.kv import ReadTxn
from kb.store.store import Store

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

logger = logging.getLogger(__name__)

# How many of the best are weighed against each other for likeness, per hit wanted.
_SPREAD_FACTOR: Final = 3
_PENDING_COUNTED_MAX: Final = 10_000


class Sources(Struct, frozen=True, kw_only=True):
    """Where the searcher gets what is costly; each is opened when first needed."""

    lexical: Callable[[], LexicalIndex]
    dense: Callable[[], DenseIndex]
    embedder: Callable[[], Embedder]


class _Question(Struct, frozen=True, kw_only=True):
    """A request made ready: what every step needs to know."""

    request: SearchRequest
    scope: Scope
    text: str
    wanted: int
    allowed: frozenset[int] | None
    restrict: frozenset[int] | None
    warnings: list[str]


class Searcher:
    """Answers questions from one home; any number of threads may ask."""

    def __init__(
        self,
        store: Store,
        content: ContentStore,
        sources: Sources,
        settings: SearchSettings,
        lock_wait_s: float,
    ) -> None:
        self._store = store
        self._content = content
        self._sources = sources
        self._settings = settings
        self._lock_wait_s = lock_wait_s

    def search(self, request: SearchRequest, scope: Scope) -> SearchResult:
        """Answer a question for a scope.

        Equal request, store and scope give equal bytes. Nothing the scope may not see has any
        part in hits or warnings. No query is an error: one without words or letters finds nothing
        and the warnings say so.
        """
        warnings: list[str] = []
        text = _readable(request.query, self._settings.query_chars_max, warnings)
        with self._store.read() as txn:
            asked = look_up(txn, request.require_entities, scope)
            boosted = look_up(txn, request.boost_entities, scope)
            warnings += [
                f"no passage mentions {one.argument}" for one in (*asked, *boosted) if not one.nos
            ]
            allowed = allowed_sources(txn, request, scope)
        question = _Question(
            request=request,
            scope=scope,
            text=text,
            wanted=max(self._settings.candidates, request.k * _SPREAD_FACTOR),
            allowed=allowed,
            restrict=required(asked),
            warnings=warnings,
        )
        self._follow(question)
        with self._store.read() as txn:
            gate = Gate(txn, request, scope)
            candidates = self._candidates(question, gate)
            order = self._ordered(question, candidates, boosted, gate)
            hits, truncated = hits_of(txn, self._content, order, request)
            alignment, more = align(txn, text, [one.chunk.no for one in order], scope)
            self._warn_of_pending(txn, question)
        return SearchResult(
            query=request.query,
            mode=request.mode,
            hits=hits,
            entity_alignment=alignment,
            warnings=tuple(dict.fromkeys((*warnings, *more))),
            truncated=truncated,
        )

    def similar(self, ident: str, k: int, scope: Scope) -> SearchResult:
        """Passages of other docs that are most like a doc or a passage.

        Raises NotFound where there is no such id for this scope.
        """
        import numpy as np

        with self._store.read() as txn:
            seeds = self._seeds(txn, ident, scope)
            source_no = seeds[0].source_no
        request = SearchRequest(query=ident, k=k, mode="dense")
        question = _Question(
            request=request,
            scope=scope,
            text="",
            wanted=self._settings.candidates,
            allowed=None,
            restrict=None,
            warnings=[],
        )
        self._follow(question)
        dense = self._sources.dense()
        rows, _ = dense.vectors([chunk.no for chunk in seeds])
        mean = rows.sum(axis=0)
        length = float(np.linalg.norm(mean))
        if length == 0.0:
            question.warnings.append("it has no vectors yet; run `kb worker --drain`")
        with self._store.read() as txn:
            gate = _Elsewhere(txn, request, scope, source_no)
            found = None
            if length:
                query = (mean / length).astype(np.float32)
                allowed = self._visible(txn, request, scope)
                found = gather(
                    lambda limit: dense.search(query, limit, allowed=allowed), gate, question.wanted
                )
            united = unite(None, found, None)
            if found is not None:
                ranked = dict(zip(found.nos, found.scores, strict=True))
                united.dense[:] = [ranked[no] for no in united.nos]
            order = self._ordered(question, united, [], gate)
            hits, _ = hits_of(txn, self._content, order, request)
        return SearchResult(
            query=ident,
            mode="dense",
            hits=hits,
            entity_alignment=(),
            warnings=tuple(question.warnings),
        )

    def _visible(self, txn: ReadTxn, request: SearchRequest, scope: Scope) -> frozenset[int] | None:
        return allowed_sources(txn, request, scope)

    def _seeds(self, txn: ReadTxn, ident: str, scope: Scope) -> list[Chunk]:
        full = docs.resolve(txn, ident)
        chunk = chunks.by_id(txn, full)
        doc = docs.latest(txn, chunk.source_no) if chunk else docs.get(txn, full)
        if doc is None or doc.status == "tombstoned" or not doc.visible_to(scope):
            raise NotFound(id=ident)
        seeds = [chunk] if chunk else chunks.of_source(txn, doc.source_no)
        if not seeds:
            raise NotFound(id=ident)
        return seeds

    def _follow(self, question: _Question) -> None:
        if question.request.mode != "dense":
            self._catch_up(self._sources.lexical(), question)

    def _catch_up(self, cache: "LexicalIndex | DenseIndex", question: _Question) -> None:
        state: CatchUp = cache.catch_up(self._store, wait_s=self._lock_wait_s)
        if state.behind:
            detail = f" ({state.problem})" if state.problem else ""
            question.warnings.append(f"the index is {state.behind} change(s) behind{detail}")
        elif state.problem:
            question.warnings.append(state.problem)

    def _candidates(self, question: _Question, gate: Gate) -> Candidates:
        lexical = self._lexical(question, gate) if question.request.mode != "dense" else None
        vector = self._query_vector(question) if question.request.mode != "lexical" else None
        if vector is None:
            return unite(lexical, None, None)
        dense = self._sources.dense()
        self._catch_up(dense, question)
        found = gather(
            lambda limit: dense.search(
                vector, limit, allowed=question.allowed, restrict_nos=question.restrict
            ),
            gate,
            question.wanted,
        )
        return unite(lexical, found, lambda nos: dense.similarities(vector, nos))

    def _lexical(self, question: _Question, gate: Gate) -> Hits:
        index = self._sources.lexical()
        return gather(
            lambda limit: index.search(
                question.text, limit, allowed=question.allowed, restrict_nos=question.restrict
            ),
            gate,
            question.wanted,
        )

    def _query_vector(self, question: _Question) -> "NDArray[np.float32] | None":
        """The query's vector; None, with a warning, where the dense leg cannot read it."""
        if not any(letter.isalnum() for letter in question.text):
            return None
        try:
            embedder = self._sources.embedder()
            if question.request.mode == "hybrid" and not can_read(embedder.scripts, question.text):
                question.warnings.append(
                    "searched by words alone: the embedding model does not read this script"
                )
                return None
            return embedder.embed_query(question.text)
        except (ModelMissing, EmbedError) as error:
            if question.request.mode == "dense":
                raise
            question.warnings.append(f"searched by words alone: {error}")
            return None

    def _ordered(
        self, question: _Question, found: Candidates, boosted: list[Asked], gate: Gate
    ) -> list[Scored]:
        """The hits, best first: fused, boosted, spread; equal scores by passage id."""
        if not found.nos:
            return []
        scores = fuse(
            self._legs(found), k=self._settings.rrf_k, spaced=self._settings.fusion == "spaced"
        )
        wanted = question.request.k
        rows: list[Scored] = []
        for place, no in enumerate(found.nos):
            seen = gate.look(no)
            if seen is not None:
                boost = self._boost(ChunkNo(no), boosted)
                rows.append(_scored(found, place, float(scores[place]), boost, seen))
        rows.sort(key=lambda row: (-row.score, row.chunk.chunk_id))
        pool = rows[: wanted * _SPREAD_FACTOR]
        chosen = [pool[place] for place in self._spread(pool, wanted)]
        chosen.sort(key=lambda row: (-row.score, row.chunk.chunk_id))
        return chosen

    def _legs(self, found: Candidates) -> list[Leg]:
        import numpy as np

        weight = self._settings.lexical_weight
        legs: list[Leg] = []
        if not np.isnan(found.lexical).all():
            legs.append(Leg(scores=found.lexical, weight=weight, floor=0.0))
        if not np.isnan(found.dense).all():
            legs.append(Leg(scores=found.dense, weight=1.0 - weight))
        return legs or [Leg(scores=found.lexical, weight=1.0)]

    def _boost(self, no: ChunkNo, boosted: list[Asked]) -> float:
        boost = 1.0
        for one in boosted:
            if no in one.nos:
                boost *= self._settings.entity_boost
        return boost

    def _spread(self, pool: list[Scored], wanted: int) -> list[int]:
        import numpy as np

        vectors = np.zeros((len(pool), 1), dtype=np.float32)
        if any(row.has_vector for row in pool):
            vectors, _ = self._sources.dense().vectors([row.chunk.no for row in pool])
        return spread(
            [row.score for row in pool],
            vectors,
            [row.chunk.text for row in pool],
            wanted,
            self._settings.mmr_similarity,
        )

    def _warn_of_pending(self, txn: ReadTxn, question: _Question) -> None:
        uncut = queue.pending_of_kind(txn, "chunk", _PENDING_COUNTED_MAX)
        if uncut:
            question.warnings.append(
                f"{uncut} doc(s) are not searchable yet; run `kb worker --drain`"
            )
        if question.request.mode == "lexical":
            return
        waiting = queue.pending_of_kind(txn, "embed", _PENDING_COUNTED_MAX)
        if waiting:
            question.warnings.append(
                f"{waiting} doc(s) have no vectors yet and are found by words alone; "
                "run `kb worker --drain`"
            )


class _Elsewhere(Gate):
    """A gate that also keeps back the source itself."""

    def __init__(self, txn: ReadTxn, request: SearchRequest, scope: Scope, source_no: int) -> None:
        super().__init__(txn, request, scope)
        self._source_no = source_no

    def look(self, no: int) -> tuple[Chunk, Doc] | None:
        """As the gate does, but never a passage of the source itself."""
        seen = super().look(no)
        return seen if seen is not None and seen[0].source_no != self._source_no else None


def _readable(query: str, chars_max: int, warnings: list[str]) -> str:
    text = query.replace("\0", " ").encode("utf-8", "replace").decode().strip()
    if len(text) > chars_max:
        warnings.append(f"the query was cut to its first {chars_max:,} characters")
        text = text[:chars_max]
    if not any(letter.isalnum() for letter in text):
        warnings.append("the query has no words to search for")
    return text


def _scored(
    found: Candidates, place: int, fused: float, boost: float, seen: tuple[Chunk, Doc]
) -> Scored:
    no = ChunkNo(found.nos[place])
    return Scored(
        score=round(fused * boost, 6),
        chunk=seen[0],
        doc=seen[1],
        lexical_rank=found.lexical_rank.get(no),
        dense_rank=found.dense_rank.get(no),
        fused=fused,
        boost=boost,
        has_vector=found.dense[place] == found.dense[place],
    )


__all__ = ["Hit", "Searcher", "Sources"]
