"""How are chunks stored? With ids, numbers, mentions and log entries.

Useful for whoever has a doc's passages, from a chunker or from an archive. Not for finding where to
cut, and not for making vectors.
"""

from kb.intake.passages.cut import (
    ChunkedDoc,
    PrecomputedChunks,
    build_chunks,
    has_current_title,
    text_hash,
)
from kb.intake.passages.write import is_usable, put_vectors, set_ledger, write_chunks

__all__ = [
    "ChunkedDoc",
    "PrecomputedChunks",
    "build_chunks",
    "has_current_title",
    "is_usable",
    "put_vectors",
    "set_ledger",
    "text_hash",
    "write_chunks",
]
