"""The answer: hits with their text, place and freshness."""

from typing import TYPE_CHECKING, Final

from msgspec import Struct

from kb.errors import StoreDamaged
from kb.model.doc import Doc
from kb.model.search import Hit, Legs, SearchRequest
from kb.model.text import Chunk
from kb.search.candidates import LearnCalls
from kb.search.freshness import freshness_of
from kb.store import chunks
from kb.store.content.files import ContentStore
from kb.store.kv import ReadTxn

if TYPE_CHECKING:
    from kb.search.budget import Span

FITS: Final = 0.5
"""The fit at the floor: a passage below it is weak."""
_LINED = ("text/markdown", "text/plain")


class Scored(Struct, frozen=True, kw_only=True):
    """A passage with its score and how it came by it."""

    score: float
    chunk: Chunk
    doc: Doc
    lexical_rank: int | None
    dense_rank: int | None
    fused: float
    boost: float
    near: float | None = None
    """Its similarity to the question; None where no model says."""
    fit: float | None = None
    """How it fits the question; see kb/search/fit.py. None where there is no question."""

    @property
    def is_weak(self) -> bool:
        """Whether it is merely the nearest there is."""
        return self.fit is not None and self.fit < FITS


def hits_of(
    txn: ReadTxn,
    content: ContentStore,
    order: list[Scored],
    request: SearchRequest,
    learn: LearnCalls,
) -> tuple[tuple[Hit, ...], str | None]:
    """The hits in order, and in words what a token budget cut."""
    if request.max_tokens is None:
        each = (_hit(txn, rank, row, request, learn) for rank, row in enumerate(order, 1))
        return tuple(each), None
    # Most searches of a person have no budget.
    from kb.search.budget import fill

    filled = fill(
        [row.chunk for row in order],
        request.max_tokens,
        lambda source_no, ordinal: chunks.at(txn, source_no, ordinal),
    )
    spans = sorted(filled.spans, key=lambda span: span.place)
    hits = tuple(
        _hit(txn, rank, order[span.place], request, learn, span, content)
        for rank, span in enumerate(spans, 1)
    )
    if not filled.left_out:
        return hits, None
    return (
        hits,
        f"{filled.left_out} of {len(order)} hits left out: over {request.max_tokens} tokens",
    )


def _hit(
    txn: ReadTxn,
    rank: int,
    row: Scored,
    request: SearchRequest,
    learn: LearnCalls,
    span: "Span | None" = None,
    content: ContentStore | None = None,
) -> Hit:
    chunk, doc = row.chunk, row.doc
    first, last = (span.first, span.last) if span else (chunk, chunk)
    text, start, end = chunk.text, chunk.start, chunk.end
    if first.no != last.no and content is not None:
        start, end = first.start, last.end
        text = _joined(txn, content, doc, first, last)
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
        line=first.line + doc.front_lines if doc.mime in _LINED else None,
        freshness=freshness_of(txn, doc),
        legs=Legs(lexical=row.lexical_rank, dense=row.dense_rank),
        learn=learn(doc) if doc.kind == "topic" else None,
        zettel_id=doc.entry.zettel_id if doc.entry else None,
        pack=doc.pack,
        weak=row.is_weak,
        explain=_explained(row) if request.explain else None,
    )


def _joined(txn: ReadTxn, content: ContentStore, doc: Doc, first: Chunk, last: Chunk) -> str:
    """The markdown from one passage to another; from the passages where the file is not whole."""
    if first.doc_id == doc.doc_id:
        try:
            markdown = content.read(doc.md_path, doc.md_sha256).decode()
            return markdown[first.start : last.end]
        except StoreDamaged:
            pass
    rows = [chunks.at(txn, first.source_no, n) for n in range(first.ordinal, last.ordinal + 1)]
    return "\n\n".join(row.text for row in rows if row is not None)


def _explained(row: Scored) -> dict[str, float | str]:
    fit: dict[str, float | str] = {} if row.fit is None else {"fit": row.fit}
    return {
        **fit,
        "fused": round(row.fused, 6),
        "boost": row.boost,
        "lexical_rank": row.lexical_rank or "not brought",
        "dense_rank": row.dense_rank or "not brought",
    }
