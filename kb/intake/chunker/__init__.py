"""Where is a text cut? Pure: markdown becomes chunks with exact offsets and heading path."""

from kb.intake.chunker.blocks import parse_blocks
from kb.intake.chunker.chunking import (
    FINGERPRINT,
    OVERLAP_TOKENS,
    TOKENS_MAX,
    BlocksOf,
    SpansOf,
    chunk,
    chunk_many,
    fingerprint,
)
from kb.intake.chunker.definitions import code_blocks

__all__ = [
    "FINGERPRINT",
    "OVERLAP_TOKENS",
    "TOKENS_MAX",
    "BlocksOf",
    "SpansOf",
    "chunk",
    "chunk_many",
    "code_blocks",
    "fingerprint",
    "parse_blocks",
]
