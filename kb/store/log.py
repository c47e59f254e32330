"""The change log, which the caches follow; written in the transaction of the change."""

import itertools
import os
from collections.abc import Callable, Iterable, Iterator
from typing import Final

from kb.model.job import LogEntry
from kb.store.codec import from_u64, u64
from kb.store.kv import ReadTxn, WriteTxn
from kb.store.meta import expect_number, last_number, next_number
from kb.store.records import LOG

_NONCE_BYTES: Final = 4


def append(
    txn: WriteTxn,
    nos: Iterable[int],
    *,
    words: bool = False,
    vectors: bool = False,
    draw: Callable[[int], bytes] = os.urandom,
) -> None:
    """Log that these chunks changed; an empty `nos` writes nothing.

    What `draw` gives tells the entry from another one of its number, in a copy of the store.
    """
    nonce = int.from_bytes(draw(_NONCE_BYTES), "big")
    entry = LogEntry(nos=tuple(nos), words=words, vectors=vectors, nonce=nonce)
    if entry.nos:
        LOG.put(txn, u64(next_number(txn, "log")), entry)


def last_seq(txn: ReadTxn) -> int:
    """Sequence number of the newest entry; 0 before the first."""
    return last_number(txn, "log")


def expect_end(txn: ReadTxn, watermark: int) -> None:
    """Say that the end of the log is read next, and the entry at `watermark`."""
    expect_number(txn, "log")
    txn.expect("log", (u64(seq) for seq in (watermark,) if seq > 0))


def expect_since(txn: ReadTxn, watermark: int) -> None:
    """Say that the beginning of the log is read next, and what comes after `watermark`."""
    txn.expect_scan("log")
    txn.expect_scan("log", u64(watermark + 1))


def first_seq(txn: ReadTxn) -> int:
    """Sequence number of the oldest entry; one past the last if the log is empty."""
    for key, _ in txn.scan("log"):
        return from_u64(key)
    return last_seq(txn) + 1


def since(txn: ReadTxn, watermark: int) -> Iterator[tuple[int, LogEntry]]:
    """Entries after `watermark`, oldest first."""
    for key, entry in LOG.scan(txn, start=u64(watermark + 1)):
        yield from_u64(key), entry


def truncate(txn: WriteTxn, through: int, limit: int) -> int:
    """Drop at most `limit` entries up to and including `through`; returns how many."""
    old = txn.scan("log", stop=u64(through + 1))
    keys = [key for key, _ in itertools.islice(old, limit)]
    for key in keys:
        txn.delete("log", key)
    return len(keys)
