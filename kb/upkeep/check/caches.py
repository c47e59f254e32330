"""Compare the lexical and dense caches with the store."""

from typing import Final

from msgspec import Struct

from kb.errors import StoreBusy, StoreDamaged
from kb.search.index.dense import DenseIndex
from kb.search.index.lexical import LexicalIndex
from kb.search.index.lexical_indexes import LexicalIndexes
from kb.store import chunks, docs, log
from kb.store.codec import from_u64
from kb.store.content.lock import file_lock
from kb.store.kv import ReadTxn
from kb.store.store import Store
from kb.upkeep.check.collector import FindingCollector
from kb.upkeep.check.lookup import has_any_job
from kb.upkeep.check.repairs import ManualRepair, RebuildCache

WAIT_S: Final = 30.0
_TRIES: Final = 3
_MANIFEST: Final = "manifest.json"


def _check_files(
    store: Store, collector: FindingCollector, cache: LexicalIndex | DenseIndex
) -> bool:
    """Whether a cache's files are intact. A cache that does not exist yet is built."""
    if (cache.folder / _MANIFEST).exists():
        try:
            # A writer that catches up replaces files: without the lock that looks like damage.
            with file_lock(cache.lock_path, WAIT_S):
                problems = cache.verify()
        except StoreBusy as busy:
            collector.add(cache.name, str(busy), ManualRepair("run `kb check` again"))
            return False
        except OSError:
            # In a home that cannot be written no lock is needed: it has no writer.
            problems = cache.verify()
    else:
        problem = cache.catch_up(store, wait_s=WAIT_S).problem
        problems = [problem] if problem else []
    for problem in problems:
        collector.add(
            cache.name, problem, RebuildCache("lexical" if cache.name == "lexical" else "dense")
        )
    return not problems


class _Expected(Struct, frozen=True, kw_only=True):
    """How many rows the caches should hold, as of log entry `seq`."""

    seq: int
    chunks: int
    vectors: int
    vectors_pending: int
    """Of `vectors`, those in docs with an unfinished job, which adds them to the dense cache."""


def check_caches(
    store: Store, collector: FindingCollector, lexical: LexicalIndexes, dense: DenseIndex
) -> None:
    """Verify each cache's files, let it catch up, and compare its row count with the store's."""
    caches: list[LexicalIndex | DenseIndex] = [*lexical.in_use(store), dense]
    are_sound = [_check_files(store, collector, cache) for cache in caches]
    if not all(are_sound):
        # Catching up would rebuild a damaged cache, which only a repair may do.
        return
    for _ in range(_TRIES):
        states = [cache.catch_up(store, wait_s=WAIT_S) for cache in (lexical, dense)]
        with store.read() as txn:
            expected = _expected(txn, dense.fingerprint)
        # If others committed meanwhile, the counts cannot be compared: try again.
        if all(state.watermark == expected.seq for state in states):
            _compare(collector, expected, lexical, dense)
            return


def _expected(txn: ReadTxn, fingerprint: str) -> _Expected:
    chunk_count = vectors = vectors_pending = 0
    source_no, doc, has_work = 0, None, False
    for key, _ in txn.scan("chunks"):
        try:
            chunk = chunks.get(txn, from_u64(key))
            if chunk is not None and chunk.source_no != source_no:
                source_no, doc = chunk.source_no, docs.latest(txn, chunk.source_no)
                has_work = doc is not None and has_any_job(txn, doc.doc_id, fingerprint)
        except StoreDamaged:
            continue
        if chunk is not None and doc is not None and doc.status == "active":
            chunk_count += 1
            has_vector = chunks.has_vector(txn, fingerprint, chunk.text_hash)
            vectors += has_vector
            vectors_pending += has_vector and has_work
    return _Expected(
        seq=log.last_seq(txn), chunks=chunk_count, vectors=vectors, vectors_pending=vectors_pending
    )


def _compare(
    collector: FindingCollector, expected: _Expected, lexical: LexicalIndexes, dense: DenseIndex
) -> None:
    words, vectors = lexical.stats().rows, dense.stats().rows
    collector.count("lexical_rows", words)
    collector.count("dense_rows", vectors)
    if words != expected.chunks:
        problem = f"lexical: {words} passages, but {expected.chunks} are live"
        collector.add("lexical", problem, RebuildCache("lexical"))
    if not expected.vectors - expected.vectors_pending <= vectors <= expected.vectors:
        problem = f"dense: {vectors} vectors, but {expected.vectors} are live"
        collector.add("dense", problem, RebuildCache("dense"))
