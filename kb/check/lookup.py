"""Looking a record up where it may be damaged: then it is as good as absent."""

from typing import Final, TypeVar

from kb.errors import StoreDamaged
from kb.jobs import queue
from kb.model.doc import Doc
from kb.model.ids import DocId
from kb.model.job import Job
from kb.model.text import Chunk
from kb.store import docs
from kb.store.codec import Records, from_u64, u64
from kb.store.keys import entity_prefix
from kb.store.kv import ReadTxn, prefix_stop
from kb.store.records import (
    CHUNK_IDS,
    CHUNKS,
    DOCS,
    ENTITIES,
    JOBS,
    JOBS_DEDUPE,
    LEDGER,
    SOURCE_CHUNKS,
    VERSIONS,
)

T = TypeVar("T")


def find(records: Records[T], txn: ReadTxn, key: bytes) -> T | None:
    """The record; None where it is absent or cannot be read."""
    try:
        return records.get(txn, key)
    except StoreDamaged:
        return None


def newest(txn: ReadTxn, source_no: int) -> Doc | None:
    """The newest doc of a source."""
    pointer = find(VERSIONS, txn, u64(source_no))
    return find(DOCS, txn, pointer.doc_id.encode()) if pointer else None


def passage(txn: ReadTxn, no: int) -> Chunk | None:
    """The passage with this number."""
    return find(CHUNKS, txn, u64(no))


def has_job(txn: ReadTxn, key: str) -> bool:
    """Whether this work is ready, running or failed."""
    try:
        return queue.by_key(txn, key) is not None
    except StoreDamaged:
        return False


def jobs_of(txn: ReadTxn, doc_id: DocId) -> list[Job]:
    """The jobs of a doc, in any state."""
    refs = [
        find(JOBS_DEDUPE, txn, key)
        for prefix in (f"chunk:{doc_id}", f"embed:{doc_id}:")
        for key, _ in txn.scan("jobs_dedupe", prefix.encode(), prefix.encode() + b"\xff")
    ]
    found = (find(JOBS, txn, ref.job_id.encode()) for ref in refs if ref)
    return [job for job in found if job]


def is_waiting(txn: ReadTxn, doc: Doc) -> bool:
    """Whether the doc's passages are still to be cut: they may then be those of before."""
    entry = find(LEDGER, txn, doc.doc_id.encode())
    pending = entry is not None and entry.state == "pending"
    return pending or has_job(txn, queue.dedupe_key("chunk", doc.doc_id))


# Tables of which nothing but what they lead to says whether a row belongs there.
LEADING: Final = frozenset(("facets", "entity_chunks", "chunk_ids", "source_chunks", "entities"))


def is_named(txn: ReadTxn, table: str, key: bytes) -> bool:
    """Whether a row that only leads somewhere can be read and leads to what has it."""
    match table:
        case "facets":
            doc = newest(txn, from_u64(key[-8:]))
            return doc is not None and key in docs.facet_keys(doc)
        case "entity_chunks":
            chunk = passage(txn, from_u64(key[-8:]))
            return chunk is not None and key[:-8] in map(entity_prefix, chunk.entities)
        case "chunk_ids":
            ref = find(CHUNK_IDS, txn, key)
            chunk = passage(txn, ref.no) if ref else None
            return chunk is not None and chunk.chunk_id.encode() == key
        case "source_chunks":
            ref = find(SOURCE_CHUNKS, txn, key)
            chunk = passage(txn, ref.no) if ref else None
            return chunk is not None and u64(chunk.source_no) + u64(chunk.ordinal) == key
        case "entities":
            entity = find(ENTITIES, txn, key)
            prefix = entity_prefix(entity.key) if entity else b""
            edges = txn.scan("entity_chunks", prefix, prefix_stop(prefix))
            return entity is not None and any(True for _ in edges)
        case _:
            raise AssertionError(f"rows of {table} are records of their own")
