"""A budget of tokens, filled with passages: best first, then their neighbours, joined. Pure."""

from collections.abc import Callable

from msgspec import Struct

from kb.model.text import Chunk

Neighbour = Callable[[int, int], Chunk | None]


class Span(Struct, kw_only=True):
    """Passages of one source, first to last by ordinal, that will be shown as one text."""

    place: int
    """Place of its best hit in the list of hits."""
    source_no: int
    first: Chunk
    last: Chunk
    tokens: int


class Filled(Struct, frozen=True, kw_only=True):
    """The spans that fit, in order of their best hit, and how many hits did not."""

    spans: list[Span]
    left_out: int
    joined: int
    """Hits that went into another hit's span."""


def fill(hits: list[Chunk], tokens_max: int, neighbour: Neighbour) -> Filled:
    """Fill the budget: hits in order while they fit, then neighbours after and before them.

    The first hit is always kept. Token counts are the passages' own, overlaps counted twice, so
    the text never exceeds the budget unless the first hit alone does.
    """
    spans: list[Span] = []
    used = joined = left_out = 0
    for place, chunk in enumerate(hits):
        home = _covering(spans, chunk)
        if home is not None:
            joined += 1
            continue
        if spans and used + chunk.tokens > tokens_max:
            left_out += 1
            continue
        used += chunk.tokens
        spans.append(
            Span(
                place=place, source_no=chunk.source_no, first=chunk, last=chunk, tokens=chunk.tokens
            )
        )
        joined += _join_touching(spans)
    while grown := _grow(spans, tokens_max - used, neighbour):
        used += grown
        joined += _join_touching(spans)
    return Filled(spans=spans, left_out=left_out, joined=joined)


def _covering(spans: list[Span], chunk: Chunk) -> Span | None:
    for span in spans:
        if (
            span.source_no == chunk.source_no
            and span.first.ordinal <= chunk.ordinal <= span.last.ordinal
        ):
            return span
    return None


def _grow(spans: list[Span], room: int, neighbour: Neighbour) -> int:
    """Give each span one more passage where it fits; returns the tokens taken, 0 at the end."""
    taken = 0
    for span in spans:
        for ordinal, after in ((span.last.ordinal + 1, True), (span.first.ordinal - 1, False)):
            chunk = neighbour(span.source_no, ordinal)
            if chunk is None or chunk.tokens > room - taken or _covering(spans, chunk) is not None:
                continue
            if after:
                span.last = chunk
            else:
                span.first = chunk
            span.tokens += chunk.tokens
            taken += chunk.tokens
            break
    return taken


def _join_touching(spans: list[Span]) -> int:
    joined = 0
    for better in spans[:]:
        for other in spans[:]:
            if other is better or other.source_no != better.source_no or other.place < better.place:
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
