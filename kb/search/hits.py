"""Builds the hits of a result: their text, position and freshness."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from kb.errors import StoreDamaged
from kb.model.code import is_code
from kb.model.doc import Doc
from kb.model.ids import ChunkId
from kb.model.search import Hit, Legs, SearchRequest
from kb.model.text import Chunk
from kb.search.candidates import LearnCalls
from kb.search.freshness import expect_freshness, freshness_of
from kb.search.locators import locator_of
from kb.search.snippets import snippet_of
from kb.store import chunks
from kb.store.content.files import ContentStore
from kb.store.kv import ReadTxn

if TYPE_CHECKING:
    from kb.search.budget import ChunkAt, ChunkSpan

FIT_THRESHOLD: Final = 0.5
"""A chunk whose fit is below this is weak; see kb/search/fit.py."""
_MIMES_WITH_LINES = ("text/markdown", "text/plain")


class ScoredChunk(Struct, frozen=True, kw_only=True):
    """A chunk with its doc, its place in the ranking and what both are made of."""

    score: float = 0.0
    """From 0 to 1 and comparable between queries; falls along a ranking. See kb/search/fit.py."""
    rank_score: float
    """What the order follows: fused, boosted, and less for a surplus near-duplicate."""
    chunk: Chunk
    doc: Doc
    lexical_rank: int | None
    dense_rank: int | None
    fused: float
    boost: float
    cosine: float | None = None
    """Its similarity to the query; None without a query vector or a vector of the chunk."""
    rerank: float | None = None
    """The reranker's score, from 0 to 1; None where it was not reranked."""
    fit: float | None = None
    """How well it fits the query, from 0 to 1; None where there is no query."""

    @property
    def preference(self) -> float:
        """What decides between equal scores: the reranker, whose chunks come before others."""
        return -1.0 if self.rerank is None else self.rerank * self.boost

    @property
    def sort_key(self) -> tuple[float, float, str]:
        """What rows are sorted by, best first."""
        return -self.rank_score, -self.preference, self.chunk.chunk_id

    @property
    def is_repeated(self) -> bool:
        """Whether it is of an earlier mail that its mail repeats."""
        return self.doc.mail is not None and self.doc.mail.repeats(self.chunk.start)

    @property
    def chunk_id(self) -> ChunkId:
        """Of the chunk."""
        return self.chunk.chunk_id

    @property
    def date(self) -> str | None:
        """Of the doc, as a hit has it."""
        return self.doc.day

    @property
    def is_weak(self) -> bool:
        """Whether it hardly fits the query, and is merely the nearest chunk there is."""
        return self.fit is not None and self.fit < FIT_THRESHOLD


BuildHit = Callable[[int, ScoredChunk, "ChunkSpan | None"], Hit]
"""Makes a hit of a rank, a chunk, and the span that a budget has grown from the chunk."""


def build_hits(
    txn: ReadTxn,
    content: ContentStore,
    ranked: list[ScoredChunk],
    request: SearchRequest,
    learn: LearnCalls,
    first: int = 0,
    weights: Mapping[str, float] | None = None,
) -> tuple[tuple[Hit, ...], str | None]:
    """The hits in the given order, and a sentence that says what the token budget left out.

    Ranks count from `first` + 1. `weights` are those of the query's terms; without them there are
    no snippets.
    """
    expect_freshness(txn, (row.doc for row in ranked), content)

    def build(rank: int, row: ScoredChunk, span: "ChunkSpan | None") -> Hit:
        return build_hit(txn, content, first + rank, row, request, learn, span, weights)

    def chunk_at(source_no: int, ordinal: int) -> Chunk | None:
        return chunks.at(txn, source_no, ordinal)

    return fill_hits(ranked, request.max_tokens, build, chunk_at)


def fill_hits(
    ranked: list[ScoredChunk], max_tokens: int | None, build: BuildHit, chunk_at: "ChunkAt"
) -> tuple[tuple[Hit, ...], str | None]:
    """As `build_hits`, of any homes; `build` makes one hit, `chunk_at` finds its neighbours."""
    if max_tokens is None:
        return tuple(build(rank, row, None) for rank, row in enumerate(ranked, 1)), None
    # Imported late: most searches on the command line have no budget.
    from kb.search.budget import fill_budget

    filled = fill_budget(
        [row.chunk for row in ranked],
        max_tokens,
        chunk_at,
    )
    spans = sorted(filled.spans, key=lambda span: span.best)
    filled_hits = tuple(build(rank, ranked[span.best], span) for rank, span in enumerate(spans, 1))
    if not filled.left_out:
        return filled_hits, None
    return (
        filled_hits,
        f"{filled.left_out} of {len(ranked)} hits left out: over {max_tokens} tokens",
    )


def build_hit(
    txn: ReadTxn,
    content: ContentStore,
    rank: int,
    row: ScoredChunk,
    request: SearchRequest,
    learn: LearnCalls,
    span: "ChunkSpan | None",
    weights: Mapping[str, float] | None = None,
) -> Hit:
    """The hit of a chunk, or of the span that a budget has grown from it."""
    chunk, doc = row.chunk, row.doc
    first, last = (span.first, span.last) if span else (chunk, chunk)
    text, start, end = chunk.text, chunk.start, chunk.end
    if first.no != last.no:
        start, end = first.start, last.end
        text = _span_text(txn, content, doc, first, last)
    return Hit(
        rank=rank,
        score=row.score,
        chunk_id=chunk.chunk_id,
        doc_id=doc.doc_id,
        title=doc.title,
        source=doc.source,
        kind=doc.kind,
        tags=doc.tags,
        heading=chunk.heading,
        text=text,
        start=start,
        end=end,
        page=first.page,
        line=source_line(doc, first),
        locator=locator_of(doc, first, text),
        freshness=freshness_of(txn, doc, content),
        legs=Legs(lexical=row.lexical_rank, dense=row.dense_rank),
        learn=learn(doc) if doc.kind == "topic" else None,
        zettel_id=doc.entry.zettel_id if doc.entry else None,
        date=doc.day,
        pack=doc.pack,
        weak=row.is_weak,
        mail=doc.mail.shortened() if doc.mail else None,
        ocr=_is_recognised(doc, first.page, text),
        site_version=_site_version(doc.source),
        explain=_explanation(row) if request.explain else None,
        snippet=None if weights is None else snippet_of(text, weights, is_code=is_code(doc.mime)),
    )


def _site_version(source: str) -> str | None:
    if not source.startswith(("http", "git+")):
        return None
    # Imported late: most docs are files.
    from kb.model.site_version import site_version

    return site_version(source)


def source_line(doc: Doc, chunk: Chunk) -> int | None:
    """The 1-based line in its source at which a chunk starts; None where that has no lines."""
    has_lines = doc.mime in _MIMES_WITH_LINES or is_code(doc.mime)
    return chunk.line + doc.front_lines if has_lines else None


def _span_text(txn: ReadTxn, content: ContentStore, doc: Doc, first: Chunk, last: Chunk) -> str:
    """The markdown from one chunk to another; the chunks' texts joined if the file is damaged."""
    if first.doc_id == doc.doc_id:
        try:
            markdown = content.read(doc.md_path, doc.md_sha256).decode()
            return markdown[first.start : last.end]
        except StoreDamaged:
            pass
    rows = [chunks.at(txn, first.source_no, n) for n in range(first.ordinal, last.ordinal + 1)]
    return "\n\n".join(row.text for row in rows if row is not None)


def _is_recognised(doc: Doc, page: int | None, text: str) -> bool:
    """Whether a text that begins on a page has a part that was recognised in a picture."""
    if doc.coverage is None or not doc.coverage.ocr_pages:
        return False
    if page is None:
        # A picture is one page, and has no marks of pages.
        return True
    pages = range(page, page + text.count("\f") + 1)
    return any(number in pages for number in doc.coverage.ocr_pages)


def _explanation(row: ScoredChunk) -> dict[str, float | str]:
    fit: dict[str, float | str] = {} if row.fit is None else {"fit": row.fit}
    rerank: dict[str, float | str] = {} if row.rerank is None else {"rerank": row.rerank}
    return {
        **fit,
        **rerank,
        "rank_score": row.rank_score,
        "fused": round(row.fused, 6),
        "boost": row.boost,
        "lexical_rank": row.lexical_rank or "not brought",
        "dense_rank": row.dense_rank or "not brought",
    }
