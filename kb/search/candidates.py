"""The candidates: what each leg brings, filtered before any rank is taken."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from kb.model.doc import Doc, Scope
from kb.model.entry import GUIDE
from kb.model.ids import ChunkNo, Lsid
from kb.model.search import LearnCall, SearchRequest
from kb.model.text import Chunk
from kb.search.filters import has_filters, keep_doc
from kb.search.index.result import Hits
from kb.search.index.scan import similarities
from kb.store import chunks, docs
from kb.store.kv import ReadTxn

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from kb.search.index.dense import DenseIndex

_WIDEN: Final = 4

Fetch = Callable[[int], Hits]


LearnCalls = Callable[[Doc], LearnCall | None]
"""What loads the subject that a doc is; None where nothing does."""


class Gate:
    """Lets through the passages whose doc may appear, by the store and not by a cache."""

    def __init__(
        self, txn: ReadTxn, request: SearchRequest, scope: Scope, learn: LearnCalls
    ) -> None:
        self._txn = txn
        self._learn = learn
        self._request = request
        self._scope = scope
        self._docs: dict[int, Doc | None] = {}
        self._passed: dict[int, tuple[Chunk, Doc] | None] = {}

    def look(self, no: int) -> tuple[Chunk, Doc] | None:
        """The passage and its source's newest doc, or None where it may not appear."""
        if no not in self._passed:
            chunk = chunks.get(self._txn, no)
            doc = self._doc(chunk) if chunk is not None else None
            self._passed[no] = (chunk, doc) if chunk is not None and doc is not None else None
        return self._passed[no]

    def _doc(self, chunk: Chunk) -> Doc | None:
        source_no = chunk.source_no
        if source_no not in self._docs:
            doc = docs.get(self._txn, chunk.doc_id)
            # One that is active is its source's newest; most passages are of the newest.
            if doc is None or doc.status != "active":
                doc = docs.latest(self._txn, source_no)
            keep = doc is not None and keep_doc(doc, self._request, self._scope)
            self._docs[source_no] = doc if keep and not self._is_off(doc) else None
        return self._docs[source_no]

    def _is_off(self, doc: Doc | None) -> bool:
        if doc is None:
            return False
        if doc.kind == "topic":
            # Disabled since it was taken in, or its topic is: not for anyone, now.
            return self._learn(doc) is None
        # How things are done is for `kb guide`: who looks for a note is not asking for it.
        is_guide = doc.entry is not None and doc.entry.entry_type == GUIDE
        return is_guide and not has_filters(self._request)


class ElsewhereGate(Gate):
    """A gate that also keeps back the source itself."""

    def __init__(
        self,
        txn: ReadTxn,
        request: SearchRequest,
        scope: Scope,
        learn: LearnCalls,
        place: Lsid,
    ) -> None:
        super().__init__(txn, request, scope, learn)
        self._place = place

    def look(self, no: int) -> tuple[Chunk, Doc] | None:
        """As the gate does, but never a passage of the source itself."""
        seen = super().look(no)
        return seen if seen is not None and seen[1].place != self._place else None


def gather(fetch: Fetch, gate: Gate | None, wanted: int) -> Hits:
    """Ask a leg for more until `wanted` survive the gate or it has no more; keeps its order.

    Without a gate the leg is taken at its word: its own filter has let these through.
    """
    if gate is None:
        return fetch(wanted)
    limit = wanted
    while True:
        hits = fetch(limit)
        passed = [
            (no, score)
            for no, score in zip(hits.nos, hits.scores, strict=True)
            if gate.look(no) is not None
        ]
        if len(passed) >= wanted or len(hits.nos) < limit:
            kept = passed[:wanted]
            return Hits(nos=[no for no, _ in kept], scores=[score for _, score in kept])
        limit *= _WIDEN


class Candidates(Struct, frozen=True, kw_only=True):
    """The union of the legs. Arrays have shape (n,), in ascending passage number."""

    nos: list[int]
    lexical: "NDArray[np.float64]"
    """Word scores; NaN where the lexical leg did not bring the passage."""
    dense: "NDArray[np.float64]"
    """Similarities; NaN where the dense leg was not asked or the passage has no vector."""
    vectors: "NDArray[np.float32]"
    """Vectors of length 1, shape (n, dim); zero rows where there is none."""
    lexical_rank: dict[ChunkNo, int]
    dense_rank: dict[ChunkNo, int]
    lexical_ceiling: float = 0.0
    """What a passage with all of the query's words could score; 0 where it is not known."""


def unite(
    lexical: Hits | None,
    dense: Hits | None,
    index: "DenseIndex | None",
    query: "NDArray[np.float32] | None",
    lexical_ceiling: float = 0.0,
) -> Candidates:
    """Put the legs' candidates together; each gets its similarity, whichever leg brought it.

    `query` is a vector of the model that `index` is of; without it nothing is alike.
    """
    import numpy as np

    legs = [leg for leg in (lexical, dense) if leg is not None]
    nos = sorted({no for leg in legs for no in leg.nos})
    words = np.full(len(nos), np.nan)
    if lexical is not None and lexical.nos:
        words[np.searchsorted(np.array(nos), lexical.nos)] = lexical.scores
    meaning = np.full(len(nos), np.nan)
    vectors = np.zeros((len(nos), 1), dtype=np.float32)
    if index is not None and query is not None and nos:
        vectors, present = index.vectors(nos)
        meaning = similarities(vectors, present, query)
    return Candidates(
        nos=nos,
        lexical=words,
        dense=meaning,
        vectors=vectors,
        lexical_rank=_ranks(lexical),
        dense_rank=_ranks(dense),
        lexical_ceiling=lexical_ceiling,
    )


def _ranks(leg: Hits | None) -> dict[ChunkNo, int]:
    if leg is None:
        return {}
    return {ChunkNo(no): rank for rank, no in enumerate(leg.nos, 1)}
