"""Where do we cut? Pure: markdown becomes passages with exact offsets and their heading path."""

from kb.intake.chunker.passages import (
    FINGERPRINT,
    OVERLAP_TOKENS,
    TOKENS_MAX,
    SpansOf,
    chunk,
    chunk_many,
    fingerprint,
)

__all__ = [
    "FINGERPRINT",
    "OVERLAP_TOKENS",
    "TOKENS_MAX",
    "SpansOf",
    "chunk",
    "chunk_many",
    "fingerprint",
]
