"""Writes the chunks of a doc: rows, mentions, log entries, and jobs for missing vectors."""

from collections.abc import Sequence

import msgspec

from kb.intake.chunks.cut import ChunkedDoc, PrecomputedChunks
from kb.model.doc import LedgerState
from kb.model.ids import ChunkNo, DocId
from kb.model.text import Chunk
from kb.store import chunks, embedders, log
from kb.store.jobs import queue
from kb.store.kv import ReadTxn, WriteTxn
from kb.store.meta import CHUNKER, expect_number, get_word, last_number, next_number
from kb.store.records import CHUNK_IDS, LEDGER
from kb.store.store import Store


def is_usable(txn: ReadTxn, ready: PrecomputedChunks, markdown: str) -> bool:
    """Whether the home would cut this text into the same chunks."""
    return ready.markdown == markdown and ready.chunker == get_word(txn, CHUNKER)


def put_vectors(txn: WriteTxn, ready: PrecomputedChunks, cut: ChunkedDoc) -> None:
    """Store the vectors that came with the chunks, if the home uses their model."""
    embedder_set = embedders.in_use(txn)
    dims = {spec.fingerprint: spec.dim for spec in embedder_set.retained} if embedder_set else {}
    if dims.get(ready.model) != ready.vectors.shape[1]:
        return
    for digest, vector in zip(cut.text_hashes, ready.vectors, strict=True):
        # A vector that the home made itself stays.
        if not chunks.has_vector(txn, ready.model, digest):
            chunks.put_vector(txn, ready.model, digest, vector)


def expect_writes(txn: WriteTxn, cuts: Sequence[ChunkedDoc], model: str) -> None:
    """Say that these docs are written by `write_chunks` next, with vectors of this model."""
    embedders.expect(txn)
    expect_number(txn, "chunk")
    expect_number(txn, "log")
    txn.expect("chunk_ids", (ident.encode() for cut in cuts for ident in cut.ids))
    for cut in cuts:
        chunks.expect_of_source(txn, cut.doc.source_no)
    txn.expect("ledger", (cut.doc.doc_id.encode() for cut in cuts))
    mentions = (mention for cut in cuts for rows in cut.mentions for mention in rows)
    chunks.expect_entities(txn, (mention.key for mention in mentions))
    chunks.expect_vectors(txn, model, (digest for cut in cuts for digest in cut.text_hashes))
    queue.expect_keys(txn, (queue.dedupe_key("embed", cut.doc.doc_id, model) for cut in cuts))


def write_chunks(txn: WriteTxn, store: Store, cut: ChunkedDoc, model: str = "") -> None:
    """Store the chunks of a doc in place of its old ones; add jobs for missing vectors.

    `model` is the fingerprint of the embedder to use if the home has none yet.
    """
    txn.expect("chunk_ids", (ident.encode() for ident in cut.ids))
    # A greater number names no chunk yet.
    last_no = last_number(txn, "chunk")
    rows = [_row(txn, cut, ordinal) for ordinal in range(len(cut.chunks))]
    chunks.expect(txn, (row.no for row in rows if row.no <= last_no))
    touched = [
        row.no
        for row in rows
        if row.no > last_no or _stored_text_hash(txn, row.no) != row.text_hash
    ]
    mentions = dict(zip((row.no for row in rows), cut.mentions, strict=True))
    gone = chunks.replace_all(txn, cut.doc.source_no, rows, mentions, last_no=last_no)
    log.append(txn, [*touched, *(chunk.no for chunk in gone)], words=True, vectors=True)
    # Of what is known by its name no vector is made.
    doc_id, hashes = cut.doc.doc_id, [row.text_hash for row in rows if not cut.doc.by_name]
    embedder_set = embedders.in_use(txn)
    active = embedder_set.active.fingerprint if embedder_set else model
    if _lacks_vectors(txn, active, hashes):
        key = queue.dedupe_key("embed", doc_id, active)
        queue.enqueue(txn, store.clock, "embed", doc_id, key=key)
    else:
        set_ledger(txn, store, doc_id, "indexing_complete")
    if (
        embedder_set
        and embedder_set.next
        and _lacks_vectors(txn, embedder_set.next.fingerprint, hashes)
    ):
        key = queue.dedupe_key("reembed", doc_id)
        queue.enqueue(txn, store.clock, "reembed", doc_id, key=key)


def _row(txn: WriteTxn, cut: ChunkedDoc, ordinal: int) -> Chunk:
    draft, ident = cut.chunks[ordinal], cut.ids[ordinal]
    chunk_row = CHUNK_IDS.get(txn, ident.encode())
    return Chunk(
        chunk_id=ident,
        no=chunk_row.no if chunk_row else ChunkNo(next_number(txn, "chunk")),
        doc_id=cut.doc.doc_id,
        lsid=cut.doc.lsid,
        source_no=cut.doc.source_no,
        ordinal=ordinal,
        text=draft.text,
        start=draft.start,
        end=draft.end,
        heading=draft.heading,
        page=draft.page,
        line=cut.lines[ordinal],
        text_hash=cut.text_hashes[ordinal],
        tokens=draft.tokens,
        entities=tuple(mention.key for mention in cut.mentions[ordinal]),
    )


def _lacks_vectors(txn: WriteTxn, model: str, hashes: list[str]) -> bool:
    chunks.expect_vectors(txn, model, hashes)
    return not all(chunks.has_vector(txn, model, digest) for digest in hashes)


def _stored_text_hash(txn: WriteTxn, no: ChunkNo) -> str | None:
    old = chunks.get(txn, no)
    return old.text_hash if old else None


def set_ledger(txn: WriteTxn, store: Store, doc_id: DocId, state: LedgerState) -> None:
    """Set the state of a doc's ledger entry, if it has one."""
    entry = LEDGER.get(txn, doc_id.encode())
    if entry is not None and entry.state != state:
        moved = msgspec.structs.replace(entry, state=state, updated_ms=store.clock.now_ms())
        LEDGER.put(txn, doc_id.encode(), moved)
