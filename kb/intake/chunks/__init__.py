"""How are chunks stored? With ids, numbers, mentions and log entries.

For callers that have the chunks of a doc, from the chunker or from an archive. It does not cut
texts and makes no vectors.
"""

from kb.intake.chunks.cut import (
    ChunkedDoc,
    PrecomputedChunks,
    build_chunks,
    has_current_title,
    text_hash,
)
from kb.intake.chunks.write import (
    expect_writes,
    is_usable,
    put_vectors,
    set_ledger,
    write_chunks,
)

__all__ = [
    "ChunkedDoc",
    "PrecomputedChunks",
    "build_chunks",
    "expect_writes",
    "has_current_title",
    "is_usable",
    "put_vectors",
    "set_ledger",
    "text_hash",
    "write_chunks",
]
