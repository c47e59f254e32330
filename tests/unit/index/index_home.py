"""A store with passages in it, made without the ingest pipeline."""

import hashlib
from pathlib import Path

import numpy as np

from kb.model import ids
from kb.model.clock import SystemClock
from kb.model.doc import Audience, Doc, Visibility
from kb.model.ids import ChunkNo, Lsid
from kb.model.text import Chunk, indexed_text
from kb.search.index.dense import DenseIndex
from kb.search.index.scan import masked_cosines
from kb.store import chunks, docs, log
from kb.store.memory import MemoryEnvironment
from kb.store.meta import next_number
from kb.store.records import CHUNKS
from kb.store.store import Store

DIM = 16
FINGERPRINT = "test-model"
LOCAL = Audience("private:local")


def memory_store() -> Store:
    return Store(MemoryEnvironment(), SystemClock())


def disk_store(home: Path) -> Store:
    return Store.open(home / "store")


def vector_of(text: str, dim: int = DIM) -> np.ndarray:
    """A vector that only the text decides."""
    seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big")
    drawn = np.random.default_rng(seed).standard_normal(dim)
    return (drawn / np.linalg.norm(drawn)).astype(np.float32)


def text_hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _doc(
    lsid: Lsid,
    source_no: int,
    version: int,
    title: str,
    visibility: Visibility = "private",
    owner: str = "local",
) -> Doc:
    return Doc(
        doc_id=ids.doc_id(lsid, version),
        lsid=lsid,
        source_no=source_no,
        version=version,
        title=title,
        source=lsid,
        kind="file",
        mime="text/markdown",
        tags=(),
        date=None,
        visibility=visibility,
        owner=owner,
        status="active",
        raw_sha256="0" * 64,
        raw_path="raw/x",
        md_path="md/x",
        md_sha256="0" * 64,
        raw_bytes=1,
        md_chars=1,
        coverage=None,
        canonicalizer="test",
        added_ms=0,
        updated_ms=0,
    )


def put(
    store: Store,
    name: str,
    texts: list[str],
    *,
    title: str = "",
    heading: tuple[str, ...] = (),
    embed: bool = True,
    dim: int = DIM,
    visibility: Visibility = "private",
    owner: str = "local",
) -> list[int]:
    """Make `texts` the passages of the source `name`; returns their numbers."""
    lsid = Lsid(f"file:///{name}")
    with store.write() as txn:
        source_no = docs.ensure_source_no(txn, lsid)
        before = docs.latest(txn, source_no)
        version = before.version + 1 if before else 1
        docs.put_new_version(txn, _doc(lsid, source_no, version, title, visibility, owner))
        doc = docs.latest(txn, source_no)
        new = []
        for ordinal, text in enumerate(texts):
            chunk_id = ids.chunk_id(lsid, text, texts[:ordinal].count(text))
            known = chunks.by_id(txn, chunk_id)
            said = indexed_text(title, heading, text)
            new.append(
                Chunk(
                    chunk_id=chunk_id,
                    no=known.no if known else ChunkNo(next_number(txn, "chunk")),
                    doc_id=doc.doc_id,
                    lsid=lsid,
                    ordinal=ordinal,
                    text=text,
                    start=0,
                    end=len(text),
                    heading=heading,
                    page=None,
                    line=1,
                    text_hash=text_hash(said),
                    tokens=1,
                    source_no=source_no,
                )
            )
            if embed:
                chunks.put_vector(txn, FINGERPRINT, text_hash(said), vector_of(said, dim))
        gone = chunks.replace_all(txn, source_no, new, {})
        touched = [c.no for c in new] + [c.no for c in gone]
        log.append(txn, touched, words=True, vectors=True)
    return [chunk.no for chunk in new]


def put_many(store: Store, count: int, text: str = "passage {} of many") -> None:
    """`count` sources of one passage each, in one transaction."""
    with store.write() as txn:
        nos = []
        for i in range(count):
            lsid = Lsid(f"file:///many/{i}")
            source_no = docs.ensure_source_no(txn, lsid)
            docs.put_new_version(txn, _doc(lsid, source_no, 1, ""))
            said = text.format(i)
            no = ChunkNo(next_number(txn, "chunk"))
            chunk = Chunk(
                chunk_id=ids.chunk_id(lsid, said, 0),
                no=no,
                doc_id=ids.doc_id(lsid, 1),
                lsid=lsid,
                ordinal=0,
                text=said,
                start=0,
                end=len(said),
                heading=(),
                page=None,
                line=1,
                text_hash=text_hash(said),
                tokens=1,
                source_no=source_no,
            )
            chunks.replace_all(txn, source_no, [chunk], {})
            chunks.put_vector(txn, FINGERPRINT, text_hash(said), vector_of(said))
            nos.append(no)
        log.append(txn, nos, words=True, vectors=True)


def remove(store: Store, name: str) -> None:
    """Take all passages of a source away."""
    with store.write() as txn:
        source_no = docs.source_no_of(txn, Lsid(f"file:///{name}"))
        gone = chunks.delete_all(txn, source_no)
        log.append(txn, [chunk.no for chunk in gone], words=True, vectors=True)


def source_no(store: Store, name: str) -> int:
    with store.read() as txn:
        return docs.source_no_of(txn, Lsid(f"file:///{name}"))


def truncate_log(store: Store) -> None:
    with store.write() as txn:
        log.truncate(txn, log.last_seq(txn), 1_000_000)


def flip_record(store: Store, no: int) -> None:
    """Damage one passage's record."""
    key = no.to_bytes(8, "big")
    with store.write() as txn:
        stored = bytearray(txn.get(CHUNKS.name, key))
        stored[-1] ^= 1
        txn.put(CHUNKS.name, key, bytes(stored))


def similar(index: DenseIndex, query: np.ndarray, nos: list[int]) -> np.ndarray:
    """Cosines of passages with a query; NaN where one has no vector."""
    vectors, present = index.vectors(nos)
    return masked_cosines(vectors, present, query)
