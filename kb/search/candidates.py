"""Candidates: the hits of each leg (lexical, dense), filtered before they are ranked."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final, Protocol

from msgspec import Struct

from kb.model.code import is_code
from kb.model.doc import Doc, Scope
from kb.model.entry import GUIDE
from kb.model.ids import Lsid
from kb.model.search import LearnCall, SearchRequest
from kb.model.text import Chunk
from kb.search.filters import has_filters, may_appear
from kb.search.index.hits import IndexHits
from kb.store import chunks, docs
from kb.store.kv import ReadTxn

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_WIDEN_FACTOR: Final = 4
# Subjects may be disabled, and entries may be guidance.
_CAN_HIDE: Final = ("topic", "entry")

FetchHits = Callable[[int], IndexHits]
"""The best hits of a leg; takes their number."""
LearnCalls = Callable[[Doc], LearnCall | None]
"""The call that loads the topic's subject that a doc is; None where the subject is disabled."""


class ChunkFilter(Protocol):
    """Says which chunks may appear."""

    def expect(self, nos: Sequence[int]) -> None:
        """Say which chunks are asked for next."""

    def admit(self, no: int) -> tuple[Chunk, Doc] | None:
        """The chunk and its source's newest doc, or None where it may not appear."""


class RankedChunks(ChunkFilter, Protocol):
    """Knows what is to be ranked, too."""

    def is_bare_title(self, chunk: Chunk, doc: Doc) -> bool:
        """Whether an admitted chunk has headings alone, of a source that says more elsewhere."""


class ChunkVectors(Protocol):
    """Knows the vectors of chunks, as a DenseIndex does."""

    def vectors(self, nos: list[int]) -> "tuple[NDArray[np.float32], NDArray[np.bool_]]":
        """Vectors of length 1, shape (len(nos), dim), zero where missing; and which are there."""


class CandidateFilter:
    """Admits the chunks whose doc may appear.

    It reads the store, because an index may be behind.
    """

    def __init__(
        self, txn: ReadTxn, request: SearchRequest, scope: Scope, learn: LearnCalls
    ) -> None:
        self._txn = txn
        self._learn = learn
        self._request = request
        self._scope = scope
        self._docs: dict[int, Doc | None] = {}
        self._admitted: dict[int, tuple[Chunk, Doc] | None] = {}

    def expect(self, nos: Sequence[int]) -> None:
        """Say which chunks are asked for next."""
        chunks.expect_with_docs(self._txn, nos)

    def admit(self, no: int) -> tuple[Chunk, Doc] | None:
        """The chunk and its source's newest doc, or None where it may not appear."""
        if no not in self._admitted:
            chunk = chunks.get(self._txn, no)
            doc = self._doc(chunk) if chunk is not None else None
            self._admitted[no] = (chunk, doc) if chunk is not None and doc is not None else None
        return self._admitted[no]

    def is_bare_title(self, chunk: Chunk, doc: Doc) -> bool:
        """Whether an admitted chunk has headings alone, of a source that says more elsewhere."""
        return _has_only_headings(chunk, doc) and not all(
            _has_only_headings(other, doc) for other in chunks.of_source(self._txn, chunk.source_no)
        )

    def rejects_any(self, nos: Sequence[int]) -> bool:
        """Whether one of these may not appear, in a home where no index can tell of all.

        So it makes no difference to a ranking how many of its hits are wanted.
        """
        for kind in _CAN_HIDE:
            docs.expect_facet(self._txn, "kind", kind)
        can_hide = any(
            next(docs.with_facet(self._txn, "kind", kind), None) is not None for kind in _CAN_HIDE
        )
        if not can_hide:
            return False
        self.expect(nos)
        return any(self.admit(no) is None for no in nos)

    def _doc(self, chunk: Chunk) -> Doc | None:
        source_no = chunk.source_no
        if source_no not in self._docs:
            doc = docs.get(self._txn, chunk.doc_id)
            # An active doc is its source's newest, and most chunks belong to the newest.
            if doc is None or doc.status != "active":
                doc = docs.latest(self._txn, source_no)
            keep = doc is not None and may_appear(doc, self._request, self._scope)
            self._docs[source_no] = doc if keep and not self._is_hidden(doc) else None
        return self._docs[source_no]

    def _is_hidden(self, doc: Doc | None) -> bool:
        if doc is None:
            return False
        if doc.kind == "topic":
            # The subject or its topic was disabled after the ingest.
            return self._learn(doc) is None
        # Guidance is for `kb guide`; a search shows it only if its filters name it.
        is_guide = doc.entry is not None and doc.entry.entry_type == GUIDE
        return is_guide and not has_filters(self._request)


def _has_only_headings(chunk: Chunk, doc: Doc) -> bool:
    # A heading is short, and a # is a comment in code.
    if chunk.text[:1] != "#" or is_code(doc.mime):
        return False
    return all(line[:1] in ("#", "") for line in chunk.text.splitlines())


class OtherSourcesFilter(CandidateFilter):
    """A candidate filter that also rejects the chunks of one source."""

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

    def admit(self, no: int) -> tuple[Chunk, Doc] | None:
        """As `CandidateFilter.admit`, but None for a chunk of the source."""
        admitted = super().admit(no)
        if admitted is None or admitted[1].place == self._place:
            return None
        return admitted


def gather(fetch: FetchHits, post_filter: ChunkFilter | None, count: int) -> IndexHits:
    """Fetch more hits of a leg until `count` are admitted or it has no more; keeps their order.

    Without a filter the first `count` hits are taken as they are: the leg has filtered them.
    """
    if post_filter is None:
        return fetch(count)
    limit = count
    while True:
        hits = fetch(limit)
        post_filter.expect(hits.nos)
        admitted = [
            (no, score)
            for no, score in zip(hits.nos, hits.scores, strict=True)
            if post_filter.admit(no) is not None
        ]
        if len(admitted) >= count or len(hits.nos) < limit:
            first = admitted[:count]
            return IndexHits(nos=[no for no, _ in first], scores=[score for _, score in first])
        limit *= _WIDEN_FACTOR


class Reading(Struct, frozen=True, kw_only=True):
    """How the model of the dense leg reads the query."""

    familiarity: float = 1.0
    """How well it knows the query's language, from 0 to 1."""
    query: str = ""
    """The query's text, if the model reads many languages; empty for a model that does not."""


class Candidates(Struct, frozen=True, kw_only=True):
    """The union of the legs' hits. Arrays have shape (n,), in ascending chunk number."""

    nos: list[int]
    lexical: "NDArray[np.float64]"
    """Lexical scores; NaN where the lexical leg did not return the chunk."""
    dense: "NDArray[np.float64]"
    """Cosines; NaN where the dense leg was not used or the chunk has no vector."""
    vectors: "NDArray[np.float32]"
    """Vectors of length 1, shape (n, dim); a zero row where there is none."""
    lexical_rank: dict[int, int]
    dense_rank: dict[int, int]
    lexical_ceiling: float = 0.0
    """The lexical score of an imagined chunk with all of the query's words; 0 where unknown."""
    reading: Reading = Reading()

    def cosine(self, position: int) -> float | None:
        """That of the candidate at a position; None where it has none."""
        value = float(self.dense[position])
        return None if value != value else value

    def cosines(self) -> tuple[float, int]:
        """The sum and the number of all cosines."""
        import numpy as np

        present = self.dense[~np.isnan(self.dense)]
        return float(present.sum()), len(present)


class WordCandidates(Struct, frozen=True, kw_only=True):
    """The hits of the lexical leg alone, in ascending chunk number.

    What becomes of them is computed without numpy, whose import is the largest part of a cold
    search by words.
    """

    nos: list[int]
    lexical: list[float]
    """Their scores."""
    lexical_rank: dict[int, int]
    dense_rank: dict[int, int] = {}

    def cosine(self, position: int) -> float | None:
        """None."""
        del position
        return None

    def cosines(self) -> tuple[float, int]:
        """There are none."""
        return 0.0, 0


def merge_legs(
    lexical: IndexHits | None,
    dense: IndexHits | None,
    index: ChunkVectors | None,
    query: "NDArray[np.float32] | None",
    lexical_ceiling: float = 0.0,
    reading: Reading | None = None,
) -> Candidates | WordCandidates:
    """Merge the hits of the legs; each gets its cosine, whichever leg returned it.

    `query` is the query's vector by the model of `index`; without it there are no cosines.
    """
    if query is None and dense is None and lexical is not None:
        rows = sorted(zip(lexical.nos, lexical.scores, strict=True))
        return WordCandidates(
            nos=[no for no, _ in rows],
            lexical=[score for _, score in rows],
            lexical_rank=_ranks(lexical),
        )
    import numpy as np

    legs = [leg for leg in (lexical, dense) if leg is not None]
    nos = sorted({no for leg in legs for no in leg.nos})
    lexical_scores = np.full(len(nos), np.nan)
    if lexical is not None and lexical.nos:
        lexical_scores[np.searchsorted(np.array(nos), lexical.nos)] = lexical.scores
    cosines = np.full(len(nos), np.nan)
    vectors = np.zeros((len(nos), 1), dtype=np.float32)
    if index is not None and query is not None and nos:
        from kb.search.index.scan import masked_cosines

        vectors, present = index.vectors(nos)
        cosines = masked_cosines(vectors, present, query)
    return Candidates(
        nos=nos,
        lexical=lexical_scores,
        dense=cosines,
        vectors=vectors,
        lexical_rank=_ranks(lexical),
        dense_rank=_ranks(dense),
        lexical_ceiling=lexical_ceiling,
        reading=reading or Reading(),
    )


def _ranks(leg: IndexHits | None) -> dict[int, int]:
    return {} if leg is None else dict(zip(leg.nos, range(1, len(leg.nos) + 1), strict=True))
