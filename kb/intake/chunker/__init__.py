"""Where is a text cut? Pure: markdown becomes chunks with exact offsets and heading path."""

from kb.intake.chunker.chunking import (
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
