"""Check chunks, the rows that lead to them, and their vectors."""

from typing import Final

from msgspec import Struct

from kb.errors import StoreDamaged
from kb.intake.chunks import text_hash
from kb.model.doc import Doc
from kb.model.text import Chunk
from kb.store import chunks
from kb.store.codec import from_u64, u64, unseal
from kb.store.jobs import queue
from kb.store.keys import entity_prefix, text_key, vector_key
from kb.store.kv import ReadTxn
from kb.store.records import CHUNK_IDS, CHUNKS, ENTITIES, SOURCE_CHUNKS, VERSIONS
from kb.upkeep.check.collector import FindingCollector
from kb.upkeep.check.docs import check_derived_rows
from kb.upkeep.check.lookup import awaits_chunking, find, find_chunk, find_newest_doc, has_job
from kb.upkeep.check.repairs import DropRecord, QueueEmbedding, Rechunk, RewriteChunkLinks

_VECTORS_PER_BLOCK: Final = 4_096
_NORM_TOLERANCE: Final = 1e-3


class _SourceState(Struct, frozen=True):
    """What the checks of a source's chunks need to know, looked up once for each source."""

    source_no: int
    doc: Doc | None
    is_chunked: bool
    """The chunks are those of `doc`; no chunk job is pending."""
    lacks_job: bool
    """No pending job will make a missing vector."""


def check_chunks(txn: ReadTxn, collector: FindingCollector, fingerprint: str) -> None:
    """Check chunks, the rows that lead to them, and that one model's vectors exist."""
    count = edges = 0
    state: _SourceState | None = None
    for key, _ in txn.scan("chunks"):
        chunk = find_chunk(txn, from_u64(key))
        if chunk is None:
            continue
        count += 1
        if state is None or state.source_no != chunk.source_no:
            state = _source_state(txn, chunk.source_no, fingerprint)
        edges += _check_links(txn, collector, chunk)
        _check_content(txn, collector, chunk, state, fingerprint)
    if txn.count("chunk_ids") != count:
        check_derived_rows(txn, collector, "chunk_ids", "the id of a passage that does not exist")
    if txn.count("entity_chunks") != edges:
        check_derived_rows(
            txn, collector, "entity_chunks", "an entity of a passage that does not exist"
        )
    check_derived_rows(txn, collector, "entities", "an entity that no passage mentions")
    _check_order(txn, collector)


def _source_state(txn: ReadTxn, source_no: int, fingerprint: str) -> _SourceState:
    doc = find_newest_doc(txn, source_no)
    if doc is None:
        return _SourceState(source_no, None, is_chunked=False, lacks_job=False)
    waiting = awaits_chunking(txn, doc)
    is_queued = has_job(txn, queue.dedupe_key("embed", doc.doc_id, fingerprint))
    active = doc.status == "active" and not doc.by_name
    return _SourceState(
        source_no, doc, is_chunked=not waiting, lacks_job=active and not waiting and not is_queued
    )


def _check_links(txn: ReadTxn, collector: FindingCollector, chunk: Chunk) -> int:
    """Check the rows that lead to a chunk; returns how many of its entity edges exist."""
    by_id = find(CHUNK_IDS, txn, chunk.chunk_id.encode())
    in_order = find(SOURCE_CHUNKS, txn, u64(chunk.source_no) + u64(chunk.ordinal))
    keys = set(chunk.entities)
    present = [key for key in keys if _has_edge(txn, key, chunk.no)]
    if in_order is not None and in_order.no != chunk.no and find_chunk(txn, in_order.no):
        repair = Rechunk(chunk.source_no, chunk.no)
        collector.add(chunk.chunk_id, "another passage has its place", repair)
    elif by_id is None or by_id.no != chunk.no or in_order is None or in_order.no != chunk.no:
        collector.add(
            chunk.chunk_id, "its id or its place does not lead to it", RewriteChunkLinks(chunk.no)
        )
    if len(present) < len(keys) or any(find(ENTITIES, txn, text_key(key)) is None for key in keys):
        collector.add(chunk.chunk_id, "an entity does not lead to it", RewriteChunkLinks(chunk.no))
    return len(present)


def _has_edge(txn: ReadTxn, entity_key: str, no: int) -> bool:
    return txn.get("entity_chunks", entity_prefix(entity_key) + u64(no)) is not None


def _check_content(
    txn: ReadTxn, collector: FindingCollector, chunk: Chunk, state: _SourceState, fingerprint: str
) -> None:
    if state.doc is None:
        # If the source is known, its doc is damaged, which is another check's finding.
        if find(VERSIONS, txn, u64(chunk.source_no)) is None:
            repair = Rechunk(chunk.source_no, chunk.no)
            collector.add(chunk.chunk_id, "a passage of a source that does not exist", repair)
        return
    if not state.is_chunked:
        return
    if chunk.doc_id != state.doc.doc_id:
        problem = "a passage of a version that was replaced"
        collector.add(chunk.chunk_id, problem, Rechunk(chunk.source_no))
    elif text_hash(state.doc.label, chunk.heading, chunk.text) != chunk.text_hash:
        collector.add(chunk.chunk_id, "its text is not what was hashed", Rechunk(chunk.source_no))
    elif state.lacks_job and not chunks.has_vector(txn, fingerprint, chunk.text_hash):
        problem = "a passage without a vector, and no job to make it"
        collector.add(state.doc.doc_id, problem, QueueEmbedding(state.doc.doc_id))


def _check_order(txn: ReadTxn, collector: FindingCollector) -> None:
    """Check that each source's chunks are numbered from 0 without a gap, and all exist."""
    source_no, expected = 0, 0
    for key, stored in txn.scan("source_chunks"):
        owner_no, ordinal = from_u64(key[:8]), from_u64(key[8:])
        if owner_no != source_no:
            source_no, expected = owner_no, 0
        ref = find(SOURCE_CHUNKS, txn, key)
        if ref and find(CHUNKS, txn, u64(ref.no)) is None:
            repairs = (Rechunk(owner_no), DropRecord("source_chunks", key, stored))
            collector.add(f"source {owner_no}", f"passage {ordinal} is missing", *repairs)
        elif ordinal != expected and not _awaits_chunking(txn, owner_no):
            collector.add(f"source {owner_no}", f"passage {expected} is missing", Rechunk(owner_no))
        expected = ordinal + 1


def _awaits_chunking(txn: ReadTxn, source_no: int) -> bool:
    doc = find_newest_doc(txn, source_no)
    return doc is None or awaits_chunking(txn, doc)


def check_vectors(txn: ReadTxn, collector: FindingCollector, fingerprint: str, dim: int) -> None:
    """Check that every vector is readable; those of the model in use have length 1 and `dim`."""
    model = vector_key(fingerprint, "")
    block: list[tuple[bytes, bytes, bytes]] = []
    for key, stored in txn.scan("vectors"):
        collector.count("vectors")
        try:
            body = unseal("vectors", key, stored)
        except StoreDamaged as error:
            _add_vector(collector, key, stored, str(error.fields["detail"]))
            continue
        if key.startswith(model) and len(body) != dim * 4:
            _add_vector(collector, key, stored, f"{len(body)} bytes, not {dim * 4}")
        elif key.startswith(model):
            block.append((key, stored, body))
        if len(block) >= _VECTORS_PER_BLOCK:
            _check_block(collector, block, dim)
            block = []
    _check_block(collector, block, dim)


def _check_block(
    collector: FindingCollector, block: list[tuple[bytes, bytes, bytes]], dim: int
) -> None:
    import numpy as np

    if not block:
        return
    matrix = np.frombuffer(b"".join(body for _, _, body in block), dtype="<f4").reshape(-1, dim)
    with np.errstate(all="ignore"):
        deviation = np.abs(np.sqrt(np.einsum("ij,ij->i", matrix, matrix)) - 1)
    # Negated, so that NaN fails, too.
    for row in np.flatnonzero(~(deviation <= _NORM_TOLERANCE)):
        key, stored, _ = block[int(row)]
        _add_vector(collector, key, stored, "not a vector of length 1")


def _add_vector(collector: FindingCollector, key: bytes, stored: bytes, problem: str) -> None:
    collector.add(f"vectors/{key.hex()}", problem, DropRecord("vectors", key, stored))
