"""Vectors of another model for all chunks, made to compare it; no index follows them."""

from itertools import islice
from typing import Final

from kb.intake.chunks import has_current_title
from kb.intake.embed.protocol import Embedder, checked
from kb.model.text import indexed_text
from kb.store import chunks, docs
from kb.store.codec import u64
from kb.store.records import CHUNKS
from kb.store.store import Store

_CHUNKS_A_LOOK: Final = 4_096
_TEXTS_A_COMMIT: Final = 64


def embed_all(store: Store, embedder: Embedder) -> None:
    """Embed every chunk that has no vector of this model.

    What is made is kept: a second call, and a change to this model, begin where it ended.
    Compaction removes it unless the model is in use by then. Raises EmbedError.
    """
    after = 0
    while True:
        after, texts = _lacking(store, embedder.fingerprint, after)
        longest_first = sorted(texts, key=lambda digest: -len(texts[digest]))
        for first in range(0, len(texts), _TEXTS_A_COMMIT):
            some = longest_first[first : first + _TEXTS_A_COMMIT]
            rows = embedder.embed_documents([texts[digest] for digest in some])
            vectors = checked(rows, len(some), embedder.dim)
            with store.write() as txn:
                for digest, vector in zip(some, vectors, strict=True):
                    chunks.put_vector(txn, embedder.fingerprint, digest, vector)
        if not after:
            return


def _lacking(store: Store, fingerprint: str, after: int) -> tuple[int, dict[str, str]]:
    """Texts without a vector, by hash, of the next chunks; and the last of these, 0 at the end."""
    texts: dict[str, str] = {}
    with store.read() as txn:
        rows = [chunk for _, chunk in islice(CHUNKS.scan(txn, start=u64(after)), _CHUNKS_A_LOOK)]
        chunks.expect_vectors(txn, fingerprint, (chunk.text_hash for chunk in rows))
        for chunk in rows:
            if chunks.has_vector(txn, fingerprint, chunk.text_hash):
                continue
            doc = docs.latest(txn, chunk.source_no)
            if doc is not None and has_current_title(doc, chunk):
                texts[chunk.text_hash] = indexed_text(doc.label, chunk.heading, chunk.text)
    return (rows[-1].no + 1 if len(rows) == _CHUNKS_A_LOOK else 0), texts
