"""Compare the lexical and dense caches with the store."""

import os
from array import array
from collections.abc import Iterable
from typing import Final, Literal

from msgspec import Struct

from kb.errors import StoreBusy, StoreDamaged
from kb.model.doc import Audience
from kb.model.node import CacheContents, NodeCaches
from kb.search.index.cache_contents import (
    dense_contents,
    digest_of,
    lexical_contents,
    with_problem,
)
from kb.search.index.dense import DenseIndex
from kb.search.index.lexical import LexicalIndex
from kb.search.index.lexical_indexes import LexicalIndexes
from kb.store import chunks, docs, log
from kb.store.codec import from_u64
from kb.store.content.lock import file_lock
from kb.store.kv import ReadTxn
from kb.store.nodes import caches_of_nodes, tell_contents
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


class _Rows:
    """Chunks that a cache should hold, with their sources."""

    def __init__(self) -> None:
        self.nos = array("Q")
        self.sources = array("Q")

    def add(self, no: int, source_no: int) -> None:
        self.nos.append(no)
        self.sources.append(source_no)

    def __len__(self) -> int:
        return len(self.nos)


class _Expected(Struct, frozen=True, kw_only=True):
    """Which rows the caches should hold, as of log entry `seq`."""

    seq: int
    words: dict[Audience, _Rows]
    vectors: _Rows
    vectors_pending: int
    """Of `vectors`, those in docs with an unfinished job, which adds them to the dense cache."""


def check_caches(
    store: Store, collector: FindingCollector, lexical: LexicalIndexes, dense: DenseIndex
) -> None:
    """Verify each cache's files, let it catch up, and compare what it holds with the store.

    On a home that machines share, say what these hold, and compare it with what others have said.
    """
    caches: list[LexicalIndex | DenseIndex] = [*lexical.in_use(store), dense]
    are_sound = [_check_files(store, collector, cache) for cache in caches]
    # Catching up would rebuild a damaged cache, which only a repair may do.
    if all(are_sound):
        for _ in range(_TRIES):
            states = [cache.catch_up(store, wait_s=WAIT_S) for cache in (lexical, dense)]
            with store.read() as txn:
                expected = _expected(txn, dense)
            held = [(part, lexical_contents(store, part)) for part in lexical.in_use(store)]
            vectors = dense_contents(dense)
            # If others committed meanwhile, nothing can be compared: try again.
            reached = [state.watermark for state in states]
            reached += [contents.log_seq for _, contents in held]
            if all(seq == expected.seq for seq in (*reached, vectors.log_seq)):
                _compare(store, collector, expected, held, (dense, vectors))
                break
        else:
            # Whatever keeps a cache behind also keeps it from being compared.
            names: tuple[Literal["lexical", "dense"], ...] = ("lexical", "dense")
            for name, state in zip(names, states, strict=True):
                if state.problem:
                    collector.add(name, state.problem, RebuildCache(name))
    if store.node:
        with store.read() as txn:
            add_nodes(collector, caches_of_nodes(txn, store.clock.now_ms()), store.node)


def _expected(txn: ReadTxn, dense: DenseIndex) -> _Expected:
    fingerprint = dense.fingerprint
    words: dict[Audience, _Rows] = {}
    vectors, vectors_pending = _Rows(), 0
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
            words.setdefault(doc.audience, _Rows()).add(chunk.no, source_no)
            if chunks.has_vector(txn, fingerprint, chunk.text_hash):
                vectors.add(chunk.no, source_no)
                vectors_pending += has_work
    return _Expected(
        seq=log.last_seq(txn), words=words, vectors=vectors, vectors_pending=vectors_pending
    )


def _compare(
    store: Store,
    collector: FindingCollector,
    expected: _Expected,
    held: list[tuple[LexicalIndex, CacheContents]],
    dense: tuple[DenseIndex, CacheContents],
) -> None:
    """Report what the caches hold and should not, or lack, and tell other nodes of it."""
    live = sum(map(len, expected.words.values()))
    words = sum(contents.rows for _, contents in held)
    collector.count("lexical_rows", words)
    if words != live:
        problem = f"lexical: {words} passages, but {live} are live"
        collector.add("lexical", problem, RebuildCache("lexical"))
    for part, contents in held:
        rows = expected.words.get(part.audience, _Rows())
        problem = ""
        if contents.digest != digest_of(rows.nos, rows.sources):
            problem = f"lexical: the passages of {part.folder.name} docs are not those of the store"
            if words == live:
                collector.add("lexical", problem, RebuildCache("lexical"))
        tell_contents(store, os.fspath(part.folder), with_problem(contents, problem))
    index, contents = dense
    collector.count("dense_rows", contents.rows)
    problem = _problem_of_vectors(expected, contents)
    if problem:
        collector.add("dense", problem, RebuildCache("dense"))
    # While vectors are still to be taken up, equal caches need not hold the same.
    if problem or not expected.vectors_pending:
        tell_contents(store, os.fspath(index.folder), with_problem(contents, problem))


def _problem_of_vectors(expected: _Expected, contents: CacheContents) -> str:
    vectors = len(expected.vectors)
    if not vectors - expected.vectors_pending <= contents.rows <= vectors:
        return f"dense: {contents.rows} vectors, but {vectors} are live"
    digest = digest_of(expected.vectors.nos, expected.vectors.sources)
    if not expected.vectors_pending and contents.digest != digest:
        return "dense: the vectors are not those of the passages in the store"
    return ""


def add_nodes(collector: FindingCollector, nodes: Iterable[NodeCaches], own: str) -> None:
    """Report the other nodes whose caches are not as they should be."""
    for node in nodes:
        for problem in node.problems if node.node != own else ():
            advice = f"run `kb check --repair` on {node.node}"
            collector.add(f"caches of {node.node}", problem, ManualRepair(advice))
