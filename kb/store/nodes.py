"""The rows that nodes keep of themselves in a home that machines share."""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import PurePath
from typing import Final

from msgspec import structs

from kb.errors import KbError
from kb.model.ids import sha256_hex
from kb.model.node import (
    FOLLOWER_TTL_MS,
    WORKER_TTL_MS,
    CacheContents,
    Follower,
    NodeCaches,
    WorkerRow,
)
from kb.store import log
from kb.store.jobs.holder import holder_name
from kb.store.kv import ReadTxn, WriteTxn
from kb.store.records import FOLLOWERS, WORKERS
from kb.store.store import Store

WORKER_EVERY_MS: Final = 5_000
"""A worker writes its row with a commit, but not more often than this."""
_KEY_HEX: Final = 32


def follow(store: Store, cache: str, log_seq: int, *, is_new: bool = False) -> bool:
    """Say how far a cache of this node has come, and forget caches that nobody uses any more.

    What it held is kept, unless it `is_new`. False where the store cannot be written: the log is
    cut without regard to such a node.
    """
    return _register(store, cache, log_seq, None, keeps=not is_new)


def tell_contents(store: Store, cache: str, contents: CacheContents) -> bool:
    """Say what a cache of this node holds; False where the store cannot be written.

    What a check found wrong stays until the next check, or until the cache is made anew.
    """
    return _register(store, cache, contents.log_seq, contents, keeps=True)


def _register(
    store: Store, cache: str, log_seq: int, contents: CacheContents | None, *, keeps: bool
) -> bool:
    if not store.node:
        return False
    now_ms = store.clock.now_ms()
    key = _key(f"{store.node}\n{cache}")
    with suppress(KbError), store.write() as txn:
        rows = dict(FOLLOWERS.scan(txn))
        for old in [old for old, other in rows.items() if not _is_live(other, now_ms)]:
            FOLLOWERS.delete(txn, old)
        before = rows.get(key) if keeps else None
        former = before.contents if before else None
        if contents is None:
            contents = former
        elif former and former.problem and not contents.is_checked:
            contents = structs.replace(contents, problem=former.problem)
        row = Follower(
            node=store.node, cache=cache, log_seq=log_seq, seen_ms=now_ms, contents=contents
        )
        FOLLOWERS.put(txn, key, row)
        return True
    return False


def caches_of_nodes(txn: ReadTxn, now_ms: int) -> list[NodeCaches]:
    """How it stands with the caches of each node, by its name.

    Caches of one kind that were looked at where the log had the same end have to hold the same.
    Where they do not, that of a node whose check found it equal to the store is right; if there is
    none, nobody knows which is, and each is named.
    """
    end = log.last_seq(txn)
    rows = sorted(live_followers(txn, now_ms), key=lambda row: (row.node, row.cache))
    problems: dict[str, list[str]] = {row.node: [] for row in rows}
    groups: dict[tuple[str, int], list[Follower]] = {}
    for row in rows:
        if row.contents is not None:
            if row.contents.problem:
                problems[row.node].append(row.contents.problem)
            groups.setdefault((_kind(row), row.contents.log_seq), []).append(row)
    for (kind, _), group in groups.items():
        for node in _differing(group):
            problems[node].append(f"{kind}: it differs from that of other machines")
    return [
        NodeCaches(
            node=node,
            behind=max(0, end - min(row.log_seq for row in rows if row.node == node)),
            seen_ms=max(row.seen_ms for row in rows if row.node == node),
            problems=tuple(dict.fromkeys(found)),
        )
        for node, found in problems.items()
    ]


def _kind(row: Follower) -> str:
    """The part of the path that is the same on each machine: what it is of."""
    return "/".join(PurePath(row.cache).parts[-2:])


def _differing(group: list[Follower]) -> list[str]:
    """The nodes whose caches are not as the others of a group, which all should be equal."""
    held = [(row, row.contents) for row in group if row.contents and not row.contents.problem]
    right = next((contents for _, contents in held if contents.is_checked), None)
    if right is not None:
        return [row.node for row, contents in held if not _is_equal(contents, right)]
    is_one = all(_is_equal(contents, held[0][1]) for _, contents in held)
    return [] if is_one else [row.node for row, _ in held]


def _is_equal(one: CacheContents, other: CacheContents) -> bool:
    has_equal_answers = one.analysis != other.analysis or one.answers == other.answers
    return (one.rows, one.digest) == (other.rows, other.digest) and has_equal_answers


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
