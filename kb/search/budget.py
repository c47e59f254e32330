"""Fills a token budget: with the best chunks first, then with their neighbours, joined. Pure."""

from collections.abc import Callable

from msgspec import Struct

from kb.model.text import Chunk

ChunkAt = Callable[[int, int], Chunk | None]
"""The chunk of a source at an ordinal; None where there is none."""


class ChunkSpan(Struct, kw_only=True):
    """Consecutive chunks of one source, which become the text of one hit."""

    best: int
    """Position of its best chunk in the list of hits."""
    source_no: int
    first: Chunk
    last: Chunk
    tokens: int


class FilledBudget(Struct, frozen=True, kw_only=True):
    """The spans that fit, by the position of their best chunk, and how many hits did not fit."""

    spans: list[ChunkSpan]
    left_out: int
    joined: int
    """Hits that became part of another hit's span."""


def fill_budget(hits: list[Chunk], tokens_max: int, chunk_at: ChunkAt) -> FilledBudget:
    """Fill the budget: hits in order while they fit, then the chunks after and before them.

    The first hit is always kept. Token counts are those of the chunks, overlaps counted twice, so
    the text never exceeds the budget unless the first hit alone does.
    """
    spans: list[ChunkSpan] = []
    used = joined = left_out = 0
    for position, chunk in enumerate(hits):
        if _covering(spans, chunk) is not None:
            joined += 1
            continue
        if spans and used + chunk.tokens > tokens_max:
            left_out += 1
            continue
        used += chunk.tokens
        spans.append(
            ChunkSpan(
                best=position,
                source_no=chunk.source_no,
                first=chunk,
                last=chunk,
                tokens=chunk.tokens,
            )
        )
        joined += _join_touching(spans)
    while added := _extend_spans(spans, tokens_max - used, chunk_at):
        used += added
        joined += _join_touching(spans)
    return FilledBudget(spans=spans, left_out=left_out, joined=joined)


def _covering(spans: list[ChunkSpan], chunk: Chunk) -> ChunkSpan | None:
    for span in spans:
        if (
            span.source_no == chunk.source_no
            and span.first.ordinal <= chunk.ordinal <= span.last.ordinal
        ):
            return span
    return None


def _extend_spans(spans: list[ChunkSpan], tokens_left: int, chunk_at: ChunkAt) -> int:
    """Add one neighbouring chunk to each span where it fits; returns the tokens added."""
    added = 0
    for span in spans:
        for ordinal, after in ((span.last.ordinal + 1, True), (span.first.ordinal - 1, False)):
            chunk = chunk_at(span.source_no, ordinal)
            if chunk is None or chunk.tokens > tokens_left - added:
                continue
            if _covering(spans, chunk) is not None:
                continue
            if after:
                span.last = chunk
            else:
                span.first = chunk
            span.tokens += chunk.tokens
            added += chunk.tokens
            break
    return added


def _join_touching(spans: list[ChunkSpan]) -> int:
    joined = 0
    for better in spans[:]:
        for other in spans[:]:
            if other is better or other.source_no != better.source_no or other.best < better.best:
                continue
            if better.last.ordinal + 1 == other.first.ordinal:
                better.last = other.last
            elif other.last.ordinal + 1 == better.first.ordinal:
                better.first = other.first
            else:
                continue
            better.tokens += other.tokens
            spans.remove(other)
            joined += 1
    return joined
