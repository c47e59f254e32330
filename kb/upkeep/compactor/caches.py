"""How far back must the log reach? To the cache that has read the least of it."""

from typing import Final

from kb.model.failpoints import failpoint
from kb.search.index import DenseIndex, LexicalIndexes
from kb.search.index.log_follower import CatchUpReport
from kb.store import log
from kb.store.kv import ReadTxn
from kb.store.store import Store

ENTRIES_PER_TXN: Final = 1_000


def level(
    store: Store, lexical: LexicalIndexes, dense: DenseIndex, wait_s: float
) -> tuple[int, list[str]]:
    """Bring the caches level and write anew what is worn: of words, whatever lost a passage.

    Returns the last log entry that all hold on disk, 0 where one holds none; and what went wrong.
    """
    words = lexical.catch_up(store, wait_s=wait_s)
    unwritten = [] if words.problem else lexical.compact(store, wait_s=wait_s, dead_share_max=0.0)
    lexical.remove_unused(store)
    vectors = dense.catch_up(store, wait_s=wait_s)
    unmerged = None if vectors.problem else dense.merge(wait_s=wait_s)
    held = min(_held(words, in_memory=lexical.in_memory), _held(vectors, in_memory=dense.in_memory))
    problems = (words.problem, *unwritten, vectors.problem, unmerged)
    return held, [said for said in problems if said]


def _held(state: CatchUpReport, *, in_memory: bool) -> int:
    # A cache that could not be written has read the log for this process alone.
    return 0 if state.problem or in_memory else max(state.watermark, 0)


def truncate_log(store: Store, held: int) -> int:
    """Drop log entries that every cache holds; returns how many.

    The entry at `held` stays: by it a cache tells its own log from that of a restored store.
    """
    removed = 0
    while True:
        with store.read() as txn:
            if not _droppable(txn, held):
                return removed
        with store.write() as txn:
            removed += log.truncate(txn, held - 1, ENTRIES_PER_TXN)
        failpoint("compact.after_truncate")


def _droppable(txn: ReadTxn, held: int) -> int:
    first = log.first_seq(txn)
    return max(0, held - first)


def droppable_when_level(store: Store) -> int:
    """How many log entries could be dropped if every cache were level."""
    with store.read() as txn:
        return _droppable(txn, log.last_seq(txn))
