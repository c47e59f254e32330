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
from kb.model.search import SearchRequest, SearchResult
from kb.model.text import Chunk
from kb.search.answer import Scored, hits_of
from kb.search.candidates import Candidates, Gate, gather, unite
from kb.search.filters import allowed_sources
from kb.search.mentions import Asked, align, look_up, required
from kb.search.order import Ordering
from kb.store import chunks, docs
from kb.store.kv import ReadTxn
from kb.store.meta import MODEL, get_word
from kb.store.store import Store

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

logger = logging.getLogger(__name__)

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
            wanted=max(self._settings.candidates, request.k),
            allowed=allowed,
            restrict=required(asked),
            warnings=warnings,
        )
        self._follow(question)
        with self._store.read() as txn:
            gate = Gate(txn, request, scope)
            order = self._ordered(question, boosted, gate)
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
                allowed = allowed_sources(txn, request, scope)
                found = gather(
                    lambda limit: dense.search(query, limit, allowed=allowed), gate, question.wanted
                )
            united = unite(None, found, None)
            if found is not None:
                ranked = dict(zip(found.nos, found.scores, strict=True))
                united.dense[:] = [ranked[no] for no in united.nos]
            order = self._order(k).order(united, None, [], gate) or []
            hits, _ = hits_of(txn, self._content, order, request)
        return SearchResult(
            query=ident,
            mode="dense",
            hits=hits,
            entity_alignment=(),
            warnings=tuple(question.warnings),
        )

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

    def _order(self, k: int) -> Ordering:
        return Ordering(self._settings, self._sources.dense, k)

    def _ordered(self, question: _Question, boosted: list[Asked], gate: Gate) -> list[Scored]:
        """The hits. The caches filter by what the store said; where one was late, all are asked."""
        ordering = self._order(question.request.k)
        for through in (None, gate):
            candidates, vector = self._candidates(question, through)
            order = ordering.order(candidates, vector, boosted, gate)
            if order is not None:
                return order
        return []

    def _candidates(
        self, question: _Question, gate: Gate | None
    ) -> "tuple[Candidates, NDArray[np.float32] | None]":
        lexical = self._lexical(question, gate) if question.request.mode != "dense" else None
        vector = self._query_vector(question) if question.request.mode != "lexical" else None
        if vector is None:
            return unite(lexical, None, None), None
        dense = self._sources.dense()
        self._catch_up(dense, question)
        found = gather(
            lambda limit: dense.search(
                vector, limit, allowed=question.allowed, restrict_nos=question.restrict
            ),
            gate,
            question.wanted,
        )
        return unite(lexical, found, lambda nos: dense.similarities(vector, nos)), vector

    def _lexical(self, question: _Question, gate: Gate | None) -> Hits:
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
            self._warn_of_model(embedder.fingerprint, question)
            return embedder.embed_query(question.text)
        except (ModelMissing, EmbedError) as error:
            if question.request.mode == "dense":
                raise
            question.warnings.append(f"searched by words alone: {error}")
            return None

    def _warn_of_model(self, fingerprint: str, question: _Question) -> None:
        with self._store.read() as txn:
            known = get_word(txn, MODEL)
        if known and known != fingerprint:
            question.warnings.append(
                f"the passages were embedded by {known}, the settings ask for {fingerprint}; "
                "`kb worker --drain` embeds them anew"
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
