"""Chunks, their vectors and the entities they mention."""

import heapq
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from kb.errors import StoreDamaged
from kb.model.doc import Doc
from kb.model.ids import ChunkNo
from kb.model.text import Chunk, Mention
from kb.store import docs
from kb.store.codec import from_u64, seal, u64, unseal
from kb.store.keys import entity_prefix, text_key, vector_key
from kb.store.kv import ReadTxn, WriteTxn, prefix_stop
from kb.store.records import CHUNK_IDS, CHUNKS, ENTITIES, SOURCE_CHUNKS, ChunkRef, Entity

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


def get(txn: ReadTxn, no: int) -> Chunk | None:
    """The chunk with this number, or None."""
    return CHUNKS.get(txn, u64(no))


def expect(txn: ReadTxn, nos: Iterable[int]) -> None:
    """Say that these chunks are read next."""
    txn.expect("chunks", (u64(no) for no in nos))


def expect_active(txn: ReadTxn, nos: Iterable[int]) -> None:
    """Say that `get_active` is asked for these chunks next."""
    docs.expect_latest(txn, (chunk.source_no for chunk in _sound(txn, nos)))


def expect_with_docs(txn: ReadTxn, nos: Iterable[int]) -> None:
    """Say that these chunks are read next, and the docs that they were cut from."""
    docs.expect(txn, (chunk.doc_id for chunk in _sound(txn, nos)))


def _sound(txn: ReadTxn, nos: Iterable[int]) -> Iterator[Chunk]:
    """The chunks that can be read, all of them in one round trip."""
    keys = [u64(no) for no in nos]
    txn.expect("chunks", keys)
    yield from filter(None, (CHUNKS.peek(txn, key) for key in keys))


def expect_vectors(txn: ReadTxn, fingerprint: str, text_hashes: Iterable[str]) -> None:
    """Say that the vectors of these texts are read next."""
    txn.expect("vectors", (vector_key(fingerprint, text_hash) for text_hash in text_hashes))


def expect_by_id(txn: ReadTxn, chunk_ids: Iterable[str]) -> None:
    """Say that `by_id` is asked for these chunks next."""
    expect(txn, _numbers_by_id(txn, chunk_ids))


def _numbers_by_id(txn: ReadTxn, chunk_ids: Iterable[str]) -> Iterator[int]:
    keys = [chunk_id.encode() for chunk_id in chunk_ids]
    txn.expect("chunk_ids", keys)
    yield from (ref.no for ref in filter(None, (CHUNK_IDS.peek(txn, key) for key in keys)))


def by_id(txn: ReadTxn, chunk_id: str) -> Chunk | None:
    """The chunk with this id, or None."""
    ref = CHUNK_IDS.get(txn, chunk_id.encode())
    return get(txn, ref.no) if ref else None


def get_active(txn: ReadTxn, no: int) -> tuple[Chunk, Doc] | None:
    """The chunk and the newest doc of its source; None unless that doc is active."""
    chunk = get(txn, no)
    if chunk is None:
        return None
    doc = docs.latest(txn, chunk.source_no)
    return (chunk, doc) if doc is not None and doc.status == "active" else None


def of_source(txn: ReadTxn, source_no: int) -> list[Chunk]:
    """The chunks of a source in reading order."""
    numbers = numbers_of(txn, source_no)
    expect(txn, numbers)
    chunks = (get(txn, no) for no in numbers)
    return [chunk for chunk in chunks if chunk is not None]


def expect_of_source(txn: ReadTxn, source_no: int) -> None:
    """Say that the numbers of a source's chunks are read next."""
    SOURCE_CHUNKS.expect_scan(txn, u64(source_no))


def expect_of_sources(txn: ReadTxn, source_nos: Iterable[int]) -> None:
    """Say that `of_source` is asked for these sources next."""
    expect(txn, _numbers(txn, source_nos))


def _numbers(txn: ReadTxn, source_nos: Iterable[int]) -> Iterator[int]:
    numbers = list(source_nos)
    for source_no in numbers:
        expect_of_source(txn, source_no)
    for source_no in numbers:
        yield from (ref.no for ref in SOURCE_CHUNKS.scan_sound(txn, u64(source_no)))


def expect_entities(txn: ReadTxn, keys: Iterable[str]) -> None:
    """Say that these entities are read next."""
    txn.expect("entities", (text_key(key) for key in keys))


def numbers_of(txn: ReadTxn, source_no: int) -> list[ChunkNo]:
    """The numbers of a source's chunks in reading order."""
    return [ref.no for _, ref in SOURCE_CHUNKS.scan(txn, u64(source_no))]


def count_of_source(txn: ReadTxn, source_no: int) -> int:
    """How many chunks a source has."""
    prefix = u64(source_no)
    return sum(1 for _ in txn.scan("source_chunks", prefix, prefix_stop(prefix)))


def at(txn: ReadTxn, source_no: int, ordinal: int) -> Chunk | None:
    """The chunk of a source at this position, from 0; None if there is none."""
    if ordinal < 0:
        return None
    ref = SOURCE_CHUNKS.get(txn, u64(source_no) + u64(ordinal))
    return get(txn, ref.no) if ref else None


def all_numbers(txn: ReadTxn) -> Iterator[ChunkNo]:
    """The number of every chunk, ascending."""
    for key, _ in txn.scan("chunks"):
        yield ChunkNo(from_u64(key))


def replace_all(
    txn: WriteTxn,
    source_no: int,
    new: list[Chunk],
    mentions: Mapping[ChunkNo, list[Mention]],
    *,
    last_no: int | None = None,
) -> list[Chunk]:
    """Replace the chunks of a source by `new`, with their mentions by chunk number.

    No chunk of a number above `last_no` was ever stored. Returns the chunks that were removed.
    """
    old = of_source(txn, source_no)
    for ordinal in range(len(new), len(old)):
        SOURCE_CHUNKS.delete(txn, u64(source_no) + u64(ordinal))
    kept_numbers = {chunk.no for chunk in new}
    removed = [chunk for chunk in old if chunk.no not in kept_numbers]
    stored = [chunk.no for chunk in new if last_no is None or chunk.no <= last_no]
    expect(txn, stored)
    before = {no: get(txn, no) for no in stored}
    _expect_drops(txn, [*removed, *(chunk for chunk in before.values() if chunk)])
    for chunk in removed:
        _delete(txn, chunk)
    for chunk in new:
        _drop_edges(txn, chunk.no, _entities_of(before.get(chunk.no)) - set(chunk.entities))
        CHUNKS.put(txn, u64(chunk.no), chunk)
        CHUNK_IDS.put(txn, chunk.chunk_id.encode(), ChunkRef(no=chunk.no))
        SOURCE_CHUNKS.put(txn, u64(source_no) + u64(chunk.ordinal), ChunkRef(no=chunk.no))
        _put_mentions(txn, chunk.no, mentions.get(chunk.no, []))
    return removed


def delete_all(txn: WriteTxn, source_no: int) -> list[Chunk]:
    """Remove every chunk of a source; returns them."""
    return replace_all(txn, source_no, [], {})


def _delete(txn: WriteTxn, chunk: Chunk) -> None:
    _drop_edges(txn, chunk.no, _entities_of(chunk))
    CHUNKS.delete(txn, u64(chunk.no))
    CHUNK_IDS.delete(txn, chunk.chunk_id.encode())


def _expect_drops(txn: WriteTxn, gone: list[Chunk]) -> None:
    """Say that these chunks may be removed next, or lose what they mention."""
    expect_entities(txn, (key for chunk in gone for key in chunk.entities))
    txn.expect("chunk_ids", (chunk.chunk_id.encode() for chunk in gone))
    edges = [(entity_prefix(key), chunk.no) for chunk in gone for key in chunk.entities]
    txn.expect("entity_chunks", (prefix + u64(no) for prefix, no in edges))
    for prefix, _ in edges:
        txn.expect_scan("entity_chunks", prefix, prefix_stop(prefix))


def _entities_of(chunk: Chunk | None) -> set[str]:
    return set(chunk.entities) if chunk else set()


def _drop_edges(txn: WriteTxn, no: int, entity_keys: set[str]) -> None:
    for key in entity_keys:
        prefix = entity_prefix(key)
        txn.delete("entity_chunks", prefix + u64(no))
        if next(iter(txn.scan("entity_chunks", prefix, prefix_stop(prefix))), None) is None:
            ENTITIES.delete(txn, text_key(key))


def _put_mentions(txn: WriteTxn, no: int, mentions: Iterable[Mention]) -> None:
    for mention in mentions:
        txn.put("entity_chunks", entity_prefix(mention.key) + u64(no), b"")
        if ENTITIES.get(txn, text_key(mention.key)) is None:
            entity = Entity(kind=mention.kind, surface=mention.surface, key=mention.key)
            ENTITIES.put(txn, text_key(mention.key), entity)


def mentioning(txn: ReadTxn, entity_key: str) -> Iterator[ChunkNo]:
    """Numbers of the chunks that mention an entity, ascending."""
    prefix = entity_prefix(entity_key)
    for key, _ in txn.scan("entity_chunks", prefix, prefix_stop(prefix)):
        yield ChunkNo(from_u64(key[-8:]))


def entity_keys(txn: ReadTxn, start: str) -> Iterator[str]:
    """Keys of the entities that start with `start`, in order; all their chunks may be hidden.

    Entities stored under a hash of their key are all read at every call.
    """
    hashed = text_key("")[:1]
    long = (entity.key for _, entity in ENTITIES.scan(txn, hashed))
    prefix = start.encode("utf-8", "surrogatepass")
    plain = (key for key, _ in txn.scan("entities", prefix, prefix_stop(prefix)))
    short = (key.decode("utf-8", "surrogatepass") for key in plain if not key.startswith(hashed))
    return heapq.merge(short, sorted(key for key in long if key.startswith(start)))


def has_vector(txn: ReadTxn, fingerprint: str, text_hash: str) -> bool:
    """Whether a text has a vector of this model."""
    return txn.get("vectors", vector_key(fingerprint, text_hash)) is not None


def get_vector(
    txn: ReadTxn, fingerprint: str, text_hash: str, dim: int
) -> "NDArray[np.float32] | None":
    """The vector of a text under a model, shape (dim,), or None. Raises StoreDamaged."""
    import numpy as np

    key = vector_key(fingerprint, text_hash)
    stored = txn.get("vectors", key)
    if stored is None:
        return None
    body = unseal("vectors", key, stored)
    if len(body) != dim * 4:
        raise StoreDamaged(f"a vector of {len(body)} bytes, not {dim * 4}", place="vectors")
    return np.frombuffer(body, dtype="<f4")


def put_vector(
    txn: WriteTxn, fingerprint: str, text_hash: str, vector: "NDArray[np.float32]"
) -> None:
    """Store the vector of a text under a model."""
    key = vector_key(fingerprint, text_hash)
    txn.put("vectors", key, seal("vectors", key, vector.astype("<f4").tobytes()))
