"""The rows that nodes keep of themselves in a home that machines share."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Final

from kb.errors import KbError
from kb.model.ids import sha256_hex
from kb.model.node import FOLLOWER_TTL_MS, WORKER_TTL_MS, Follower, WorkerRow
from kb.store.jobs.holder import holder_name
from kb.store.kv import ReadTxn, WriteTxn
from kb.store.records import FOLLOWERS, WORKERS
from kb.store.store import Store

WORKER_EVERY_MS: Final = 5_000
"""A worker writes its row with a commit, but not more often than this."""
_KEY_HEX: Final = 32


def follow(store: Store, cache: str, log_seq: int) -> bool:
    """Say how far a cache of this node has come, and forget caches that nobody uses any more.

    False where the store cannot be written: the log is cut without regard to such a node.
    """
    if not store.node:
        return False
    now_ms = store.clock.now_ms()
    row = Follower(node=store.node, cache=cache, log_seq=log_seq, seen_ms=now_ms)
    with suppress(KbError), store.write() as txn:
        for key in [key for key, other in FOLLOWERS.scan(txn) if not _is_live(other, now_ms)]:
            FOLLOWERS.delete(txn, key)
        FOLLOWERS.put(txn, _key(f"{store.node}\n{cache}"), row)
        return True
    return False


def live_followers(txn: ReadTxn, now_ms: int) -> Iterator[Follower]:
    """The caches that the log is kept for."""
    return (row for _, row in FOLLOWERS.scan(txn) if _is_live(row, now_ms))


def _is_live(row: Follower, now_ms: int) -> bool:
    # A time in the future, from before a clock was set back, does not keep the log for ever.
    return abs(now_ms - row.seen_ms) <= FOLLOWER_TTL_MS


def live_workers(txn: ReadTxn, now_ms: int) -> list[WorkerRow]:
    """The processes that embedded something lately, by node."""
    rows = (row for _, row in WORKERS.scan(txn) if abs(now_ms - row.seen_ms) <= WORKER_TTL_MS)
    return sorted(rows, key=lambda row: (row.node, row.since_ms, row.holder))


class WorkerReport:
    """What this process's workers have embedded, written with commits that they make anyway.

    Costs a home in a folder nothing: there it writes no row.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._since_ms = self._seen_ms = 0
        self._texts = self._written = 0

    def begin(self) -> None:
        """Count from now on, if these workers had nothing to do for a while."""
        if self._store.node:
            now_ms = self._store.clock.now_ms()
            if now_ms - self._seen_ms > WORKER_TTL_MS:
                self._since_ms = self._seen_ms = now_ms
                self._texts = self._written = 0

    def add(self, txn: WriteTxn, model: str, texts: int) -> None:
        """Count texts; every few seconds write the row in the caller's transaction."""
        if not self._store.node:
            return
        now_ms = self._store.clock.now_ms()
        self._texts += texts
        if self._written and now_ms - self._seen_ms < WORKER_EVERY_MS:
            return
        self._seen_ms, self._written = now_ms, self._texts
        for key, row in list(WORKERS.scan(txn)):
            if abs(now_ms - row.seen_ms) > WORKER_TTL_MS:
                WORKERS.delete(txn, key)
        row = WorkerRow(
            node=self._store.node,
            holder=holder_name(),
            model=model,
            since_ms=self._since_ms,
            seen_ms=now_ms,
            texts=self._texts,
        )
        WORKERS.put(txn, _key(row.holder), row)


def _key(name: str) -> bytes:
    return sha256_hex(name)[:_KEY_HEX].encode()
