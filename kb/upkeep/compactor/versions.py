"""Removes doc versions that a newer, indexed version replaced, and old tombstoned sources."""

from collections.abc import Iterator
from itertools import islice
from typing import Final

import msgspec
from msgspec import Struct

from kb.intake.ingest.changes import release_purged_place
from kb.model.doc import Doc, LedgerState
from kb.model.ids import DocId, SourceNo
from kb.store import chunks, docs, generations, log
from kb.store.codec import u64
from kb.store.jobs import queue
from kb.store.kv import ReadTxn, WriteTxn
from kb.store.records import DOCS, LEDGER, SOURCE_DOCS, VERSIONS
from kb.store.store import Store
from kb.upkeep.compactor.grace import CompactionTime

RECORDS_PER_TXN: Final = 1_000
_DAY_MS: Final = 86_400_000


class SettleReport(Struct, frozen=True, kw_only=True):
    """How many docs became `done`, and the older versions removed for them."""

    done: int
    removed: list[DocId]
    """Ids of the removed versions."""


def settle(store: Store, *, dry_run: bool) -> SettleReport:
    """Move indexed docs on to `done`, and remove the versions that they replaced.

    An older version is removed only when the newest is indexed: until then searches find the older
    version's chunks. Its jobs are cancelled.
    """
    done = 0
    removed: list[DocId] = []
    start = b""
    while True:
        with store.read() as txn:
            page = list(islice(_indexed(txn, start), RECORDS_PER_TXN))
            if dry_run:
                done += len(page)
                removed += [old for doc in page for _, old in _older(txn, doc)]
        if not page:
            return SettleReport(done=done, removed=removed)
        start = page[-1].doc_id.encode() + b"\0"
        if dry_run:
            continue
        _move_all(store, page, "indexing_complete", "cleanup_pending")
        removed += _remove_older(store, page)
        done += _move_all(store, page, "cleanup_pending", "done")


def _indexed(txn: ReadTxn, start: bytes) -> Iterator[Doc]:
    """The newest docs that are indexed but not done, by ascending id."""
    for _, entry in LEDGER.scan(txn, start=start):
        if entry.state in ("indexing_complete", "cleanup_pending"):
            doc = _newest(txn, entry.doc_id)
            if doc is not None:
                yield doc


def _newest(txn: ReadTxn, doc_id: DocId) -> Doc | None:
    """The doc if it is the newest version of its source, else None."""
    doc = docs.get(txn, doc_id)
    newest = docs.latest(txn, doc.source_no) if doc else None
    return newest if newest is not None and newest.doc_id == doc_id else None


def _move_all(store: Store, page: list[Doc], before: LedgerState, after: LedgerState) -> int:
    with store.write() as txn:
        return sum(_move(txn, store, doc, before, after) for doc in page)


def _move(txn: WriteTxn, store: Store, doc: Doc, before: LedgerState, after: LedgerState) -> bool:
    entry = LEDGER.get(txn, doc.doc_id.encode())
    if entry is None or entry.state != before:
        return False
    now_ms = store.clock.now_ms()
    LEDGER.put(
        txn,
        doc.doc_id.encode(),
        msgspec.structs.replace(entry, state=after, updated_ms=now_ms),
    )
    return True


def _remove_older(store: Store, page: list[Doc]) -> list[DocId]:
    """Remove the versions before those of `page`, a bounded number to a transaction."""
    removed: list[DocId] = []
    with store.read() as txn:
        # Most docs have a single version and need no write transaction.
        waiting = [doc for doc in page if any(True for _ in _older(txn, doc))]
    while waiting:
        with store.write() as txn:
            removed += _remove_some(txn, waiting)
    return removed


def _remove_some(txn: WriteTxn, waiting: list[Doc]) -> list[DocId]:
    removed: list[DocId] = []
    while waiting and len(removed) < RECORDS_PER_TXN:
        entry = LEDGER.get(txn, waiting[-1].doc_id.encode())
        old = list(islice(_older(txn, waiting[-1]), RECORDS_PER_TXN))
        # The source was renamed meanwhile: its next indexing sets `cleanup_pending` again.
        if not old or entry is None or entry.state != "cleanup_pending":
            waiting.pop()
            continue
        for key, doc_id in old:
            _remove_version(txn, key, doc_id)
            removed.append(doc_id)
    return removed


def _older(txn: ReadTxn, doc: Doc) -> Iterator[tuple[bytes, DocId]]:
    """Keys and ids of the versions before this one, oldest first."""
    for key, ref in SOURCE_DOCS.scan(txn, u64(doc.source_no)):
        if key < u64(doc.source_no) + u64(doc.version):
            yield key, ref.doc_id


def _remove_version(txn: WriteTxn, key: bytes, doc_id: DocId) -> None:
    SOURCE_DOCS.delete(txn, key)
    DOCS.delete(txn, doc_id.encode())
    LEDGER.delete(txn, doc_id.encode())
    queue.cancel(txn, doc_id)


def purge(
    store: Store, now: CompactionTime, tombstone_days: int, *, dry_run: bool
) -> list[SourceNo]:
    """Remove every source that was tombstoned `tombstone_days` ago; returns their numbers.

    Each source is removed in a single transaction. Source numbers are not reused: a source that
    comes back is a new one.
    """
    wait_ms = tombstone_days * _DAY_MS
    purged: list[SourceNo] = []
    with store.read() as txn:
        old = [doc.source_no for doc in docs.all_latest(txn) if _is_old(doc, now, wait_ms)]
    if dry_run:
        return old
    while old:
        with store.write() as txn:
            generations.start_counting(txn)
            purged += _purge_some(txn, store, old, now, wait_ms)
    return purged


def _is_old(doc: Doc | None, now: CompactionTime, wait_ms: int) -> bool:
    if doc is None or doc.status != "tombstoned":
        return False
    return now.is_past(doc.updated_ms, doc.hidden_run, wait_ms)


def _purge_some(
    txn: WriteTxn, store: Store, waiting: list[SourceNo], now: CompactionTime, wait_ms: int
) -> list[SourceNo]:
    """Purge sources from the end of `waiting` until RECORDS_PER_TXN records are removed."""
    purged: list[SourceNo] = []
    records = 0
    while waiting and records < RECORDS_PER_TXN:
        source_no = waiting.pop()
        doc = docs.latest(txn, source_no)
        # Restored, or purged by another run, since it was listed.
        if doc is None or not _is_old(doc, now, wait_ms):
            continue
        records += _purge_one(txn, store, doc)
        purged.append(source_no)
    return purged


def _purge_one(txn: WriteTxn, store: Store, doc: Doc) -> int:
    """Remove a source; returns about how many records that removed."""
    release_purged_place(txn, store, doc)
    removed = chunks.delete_all(txn, doc.source_no)
    log.append(txn, [chunk.no for chunk in removed], words=True, vectors=True)
    versions = list(SOURCE_DOCS.scan(txn, u64(doc.source_no)))
    for key, ref in versions:
        _remove_version(txn, key, ref.doc_id)
    VERSIONS.delete(txn, u64(doc.source_no))
    return 3 * len(removed) + 3 * len(versions) + 3
