"""Does everything that leads to a passage lead there, and has each its vector?"""

from typing import Final

from msgspec import Struct

from kb.errors import StoreDamaged
from kb.intake.passages import text_hash
from kb.model.doc import Doc
from kb.model.text import Chunk
from kb.store import chunks
from kb.store.codec import from_u64, u64, unseal
from kb.store.jobs import queue
from kb.store.keys import entity_prefix, text_key, vector_key
from kb.store.kv import ReadTxn
from kb.store.records import CHUNK_IDS, CHUNKS, ENTITIES, SOURCE_CHUNKS, VERSIONS
from kb.upkeep.check.docs import check_rows
from kb.upkeep.check.lookup import find, has_job, is_waiting, newest, passage
from kb.upkeep.check.mends import DropRecord, Embed, Recut, Relink
from kb.upkeep.check.notes import Notes

_VECTORS_PER_BLOCK: Final = 4_096
_NORM_TOLERANCE: Final = 1e-3


class _Of(Struct, frozen=True):
    """What is asked of each passage of one source, looked up once."""

    source_no: int
    doc: Doc | None
    settled: bool
    """The passages are those of `doc`, not still to be cut."""
    lacks_job: bool
    """A vector that is missing is asked for by nobody."""


def check_passages(txn: ReadTxn, notes: Notes, fingerprint: str) -> None:
    """Passages, what leads to them, and their vectors under one model."""
    found = edges = 0
    of: _Of | None = None
    for key, _ in txn.scan("chunks"):
        chunk = passage(txn, from_u64(key))
        if chunk is None:
            continue
        found += 1
        if of is None or of.source_no != chunk.source_no:
            of = _of(txn, chunk.source_no, fingerprint)
        edges += _check_links(txn, notes, chunk)
        _check_content(txn, notes, chunk, of, fingerprint)
    if txn.count("chunk_ids") != found:
        check_rows(txn, notes, "chunk_ids", "an id of a passage that is not there")
    if txn.count("entity_chunks") != edges:
        check_rows(txn, notes, "entity_chunks", "an entity of a passage that is not there")
    check_rows(txn, notes, "entities", "an entity that no passage mentions")
    _check_order(txn, notes)


def _of(txn: ReadTxn, source_no: int, fingerprint: str) -> _Of:
    doc = newest(txn, source_no)
    if doc is None:
        return _Of(source_no, None, settled=False, lacks_job=False)
    waiting = is_waiting(txn, doc)
    asked = has_job(txn, queue.dedupe_key("embed", doc.doc_id, fingerprint))
    active = doc.status == "active"
    return _Of(source_no, doc, settled=not waiting, lacks_job=active and not waiting and not asked)


def _check_links(txn: ReadTxn, notes: Notes, chunk: Chunk) -> int:
    """Returns how many of its edges are there."""
    by_id = find(CHUNK_IDS, txn, chunk.chunk_id.encode())
    in_order = find(SOURCE_CHUNKS, txn, u64(chunk.source_no) + u64(chunk.ordinal))
    keys = set(chunk.entities)
    present = [key for key in keys if _has_edge(txn, key, chunk.no)]
    if in_order is not None and in_order.no != chunk.no and passage(txn, in_order.no):
        mend = Recut(chunk.source_no, chunk.no)
        notes.add(chunk.chunk_id, "another passage has its place", mend)
    elif by_id is None or by_id.no != chunk.no or in_order is None or in_order.no != chunk.no:
        notes.add(chunk.chunk_id, "its id or its place does not lead to it", Relink(chunk.no))
    if len(present) < len(keys) or any(find(ENTITIES, txn, text_key(key)) is None for key in keys):
        notes.add(chunk.chunk_id, "an entity does not lead to it", Relink(chunk.no))
    return len(present)


def _has_edge(txn: ReadTxn, entity_key: str, no: int) -> bool:
    return txn.get("entity_chunks", entity_prefix(entity_key) + u64(no)) is not None


def _check_content(txn: ReadTxn, notes: Notes, chunk: Chunk, of: _Of, fingerprint: str) -> None:
    if of.doc is None:
        # Where the source is known, its doc cannot be read, which is a finding of its own.
        if find(VERSIONS, txn, u64(chunk.source_no)) is None:
            mend = Recut(chunk.source_no, chunk.no)
            notes.add(chunk.chunk_id, "a passage of a source that is not there", mend)
        return
    if not of.settled:
        return
    if chunk.doc_id != of.doc.doc_id:
        problem = "a passage of a version that was replaced"
        notes.add(chunk.chunk_id, problem, Recut(chunk.source_no))
    elif text_hash(of.doc.label, chunk.heading, chunk.text) != chunk.text_hash:
        notes.add(chunk.chunk_id, "its text is not what was hashed", Recut(chunk.source_no))
    elif of.lacks_job and not chunks.has_vector(txn, fingerprint, chunk.text_hash):
        problem = "a passage without a vector, and no job to make it"
        notes.add(of.doc.doc_id, problem, Embed(of.doc.doc_id))


def _check_order(txn: ReadTxn, notes: Notes) -> None:
    """Each source's passages are numbered from 0 without a gap, and all are there."""
    source_no, expected = 0, 0
    for key, stored in txn.scan("source_chunks"):
        at, ordinal = from_u64(key[:8]), from_u64(key[8:])
        if at != source_no:
            source_no, expected = at, 0
        ref = find(SOURCE_CHUNKS, txn, key)
        if ref and find(CHUNKS, txn, u64(ref.no)) is None:
            mends = (Recut(at), DropRecord("source_chunks", key, stored))
            notes.add(f"source {at}", f"passage {ordinal} is not there", *mends)
        elif ordinal != expected and not _is_to_be_cut(txn, at):
            notes.add(f"source {at}", f"passage {expected} is not there", Recut(at))
        expected = ordinal + 1


def _is_to_be_cut(txn: ReadTxn, source_no: int) -> bool:
    doc = newest(txn, source_no)
    return doc is None or is_waiting(txn, doc)


def check_vectors(txn: ReadTxn, notes: Notes, fingerprint: str, dim: int) -> None:
    """Every vector can be read; those of the model in use are unit vectors of its size."""
    model = vector_key(fingerprint, "")
    block: list[tuple[bytes, bytes, bytes]] = []
    for key, stored in txn.scan("vectors"):
        notes.count("vectors")
        try:
            body = unseal("vectors", key, stored)
        except StoreDamaged as error:
            _note_vector(notes, key, stored, str(error.fields["detail"]))
            continue
        if key.startswith(model) and len(body) != dim * 4:
            _note_vector(notes, key, stored, f"{len(body)} bytes, not {dim * 4}")
        elif key.startswith(model):
            block.append((key, stored, body))
        if len(block) >= _VECTORS_PER_BLOCK:
            _check_block(notes, block, dim)
            block = []
    _check_block(notes, block, dim)


def _check_block(notes: Notes, block: list[tuple[bytes, bytes, bytes]], dim: int) -> None:
    import numpy as np

    if not block:
        return
    matrix = np.frombuffer(b"".join(body for _, _, body in block), dtype="<f4").reshape(-1, dim)
    with np.errstate(all="ignore"):
        off = np.abs(np.sqrt(np.einsum("ij,ij->i", matrix, matrix)) - 1)
    # Written so that a NaN is off, too.
    for row in np.flatnonzero(~(off <= _NORM_TOLERANCE)):
        key, stored, _ = block[int(row)]
        _note_vector(notes, key, stored, "not a vector of length 1")


def _note_vector(notes: Notes, key: bytes, stored: bytes, problem: str) -> None:
    notes.add(f"vectors/{key.hex()}", problem, DropRecord("vectors", key, stored))
