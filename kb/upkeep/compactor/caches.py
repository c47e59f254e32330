"""Bring the caches up to date, and drop the log entries that all of them have on disk."""

from pathlib import Path
from typing import Final

from kb.model.failpoints import failpoint
from kb.search.index.dense import DenseIndex
from kb.search.index.lexical_indexes import LexicalIndexes
from kb.search.index.log_follower import CatchUpReport
from kb.store import log
from kb.store.kv import ReadTxn
from kb.store.nodes import live_followers
from kb.store.store import Store

ENTRIES_PER_TXN: Final = 1_000


def sync_caches(
    store: Store, lexical: LexicalIndexes, dense: DenseIndex, wait_s: float
) -> tuple[int, list[str]]:
    """Let the caches catch up, and rewrite lexical parts that lost a chunk and dense segments.

    Returns the newest log entry that all caches have on disk, 0 if one has none, and the problems.
    """
    words = lexical.catch_up(store, wait_s=wait_s)
    renew_problems = (
        [] if words.problem else lexical.compact(store, wait_s=wait_s, dead_share_max=0.0)
    )
    lexical.remove_unused(store)
    vectors = dense.catch_up(store, wait_s=wait_s)
    merge_problem = None if vectors.problem else dense.merge(wait_s=wait_s)
    persisted = min(
        _persisted(words, in_memory=lexical.in_memory),
        _persisted(vectors, in_memory=dense.in_memory),
    )
    problems = (words.problem, *renew_problems, vectors.problem, merge_problem)
    return persisted, [problem for problem in problems if problem]


def _persisted(state: CatchUpReport, *, in_memory: bool) -> int:
    # A cache that could not be written has caught up in this process's memory only.
    return 0 if state.problem or in_memory else max(state.watermark, 0)


def truncate_log(store: Store, persisted: int, own: Path) -> int:
    """Drop the log entries before `persisted` that no cache of another node lacks.

    Returns how many. The entry at `persisted` stays: by it a cache notices that the store was
    replaced by another. The caches of this node lie in `own`; they are as far as `persisted`.
    """
    if store.node:
        with store.read() as txn:
            others = [
                follower.log_seq
                for follower in live_followers(txn, store.clock.now_ms())
                if follower.node != store.node or not Path(follower.cache).is_relative_to(own)
            ]
        persisted = min(persisted, *others) if others else persisted
    removed = 0
    while True:
        with store.read() as txn:
            if not _droppable(txn, persisted):
                return removed
        with store.write() as txn:
            removed += log.truncate(txn, persisted - 1, ENTRIES_PER_TXN)
        failpoint("compact.after_truncate")


def _droppable(txn: ReadTxn, persisted: int) -> int:
    first = log.first_seq(txn)
    return max(0, persisted - first)


def droppable_entries(store: Store) -> int:
    """How many log entries could be dropped if every cache were up to date."""
    with store.read() as txn:
        return _droppable(txn, log.last_seq(txn))
