"""What a cache answers."""

from msgspec import Struct


class Hits(Struct, frozen=True, kw_only=True):
    """Passages by number, best first: score descending, then number ascending."""

    nos: list[int]
    scores: list[float]
    """As long as `nos`. Comparable within one answer of one cache, and not to be given out."""


class CacheStats(Struct, frozen=True, kw_only=True):
    """How large a cache is, and how worn."""

    watermark: int
    """-1 where there is no cache."""
    rows: int
    """Live passages."""
    dead_rows: int
    segments: int
    size_bytes: int
    mode: str
    """How it is searched: bm25, exact or hnsw."""
    in_memory: bool


NO_HITS = Hits(nos=[], scores=[])
