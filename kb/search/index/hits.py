"""What an index returns: hits and statistics."""

from msgspec import Struct


class IndexHits(Struct, frozen=True, kw_only=True):
    """Chunks by number, best first: by descending score, then by ascending number."""

    nos: list[int]
    scores: list[float]
    """As long as `nos`. Comparable only within one search of one index; never shown to a caller."""


class IndexStats(Struct, frozen=True, kw_only=True):
    """The size of an index, and how much of it is dead."""

    watermark: int
    """-1 where there is no index."""
    rows: int
    """Live chunks."""
    dead_rows: int
    segments: int
    size_bytes: int
    mode: str
    """How it is searched: bm25, exact or hnsw."""
    in_memory: bool


NO_HITS = IndexHits(nos=[], scores=[])
