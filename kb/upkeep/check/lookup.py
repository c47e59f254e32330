"""Look up records that may be damaged; a damaged record counts as absent."""

from typing import Final, TypeVar

from kb.errors import StoreDamaged
from kb.model.doc import Doc
from kb.model.ids import DocId
from kb.model.text import Chunk
from kb.store import docs
from kb.store.codec import RecordTable, from_u64, u64
from kb.store.jobs.queue import by_key, dedupe_key
from kb.store.keys import entity_prefix
from kb.store.kv import ReadTxn, prefix_stop
from kb.store.records import (
    CHUNK_IDS,
    CHUNKS,
    DOCS,
    ENTITIES,
    JOBS_DEDUPE,
    LEDGER,
    SOURCE_CHUNKS,
    VERSIONS,
)

T = TypeVar("T")


def find(records: RecordTable[T], txn: ReadTxn, key: bytes) -> T | None:
    """The record; None if it is absent or damaged."""
    try:
        return records.get(txn, key)
    except StoreDamaged:
        return None


def find_newest_doc(txn: ReadTxn, source_no: int) -> Doc | None:
    """The newest doc of a source; None if it is absent or damaged."""
    pointer = find(VERSIONS, txn, u64(source_no))
    return find(DOCS, txn, pointer.doc_id.encode()) if pointer else None


def find_chunk(txn: ReadTxn, no: int) -> Chunk | None:
    """The chunk with this number; None if it is absent or damaged."""
    return find(CHUNKS, txn, u64(no))


def has_job(txn: ReadTxn, key: str) -> bool:
    """Whether a job with this dedupe key is ready, running or failed."""
    try:
        return by_key(txn, key) is not None
    except StoreDamaged:
        return False


def has_any_job(txn: ReadTxn, doc_id: DocId, fingerprint: str) -> bool:
    """Whether any job of a doc is ready, running or failed, for this model or another."""
    keys = [dedupe_key("chunk", doc_id), dedupe_key("embed", doc_id, fingerprint)]
    prefix = f"embed:{doc_id}:".encode()
    others = txn.scan("jobs_dedupe", prefix, prefix_stop(prefix))
    return any(has_job(txn, key) for key in keys) or any(
        find(JOBS_DEDUPE, txn, key) is not None for key, _ in others
    )


def awaits_chunking(txn: ReadTxn, doc: Doc) -> bool:
    """Whether the doc is still to be chunked; until then its source may have older chunks."""
    entry = find(LEDGER, txn, doc.doc_id.encode())
    pending = entry is not None and entry.state == "pending"
    return pending or has_job(txn, dedupe_key("chunk", doc.doc_id))


# Tables whose rows only point at other records: only the target tells if a row belongs there.
DERIVED_TABLES: Final = frozenset(
    ("facets", "entity_chunks", "chunk_ids", "source_chunks", "entities")
)


def has_target(txn: ReadTxn, table: str, key: bytes) -> bool:
    """Whether a row of a derived table is readable and its target has that row."""
    match table:
        case "facets":
            doc = find_newest_doc(txn, from_u64(key[-8:]))
            return doc is not None and key in docs.facet_keys(doc)
        case "entity_chunks":
            chunk = find_chunk(txn, from_u64(key[-8:]))
            return chunk is not None and key[:-8] in map(entity_prefix, chunk.entities)
        case "chunk_ids":
            ref = find(CHUNK_IDS, txn, key)
            chunk = find_chunk(txn, ref.no) if ref else None
            return chunk is not None and chunk.chunk_id.encode() == key
        case "source_chunks":
            ref = find(SOURCE_CHUNKS, txn, key)
            chunk = find_chunk(txn, ref.no) if ref else None
            return chunk is not None and u64(chunk.source_no) + u64(chunk.ordinal) == key
        case "entities":
            entity = find(ENTITIES, txn, key)
            prefix = entity_prefix(entity.key) if entity else b""
            edges = txn.scan("entity_chunks", prefix, prefix_stop(prefix))
            return entity is not None and any(True for _ in edges)
        case _:
            raise AssertionError(f"rows of {table} are records of their own")
