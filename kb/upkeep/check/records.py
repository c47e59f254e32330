"""Check that every record is readable and that counters are above the numbers in use."""

from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

from kb.errors import StoreDamaged
from kb.store import records
from kb.store.codec import RecordTable, from_u64
from kb.store.kv import ReadTxn, WriteTxn
from kb.store.meta import last_number, raise_number
from kb.upkeep.check.collector import FindingCollector
from kb.upkeep.check.repairs import (
    CountGenerations,
    DropRecord,
    ManualRepair,
    RaiseCounter,
    RebuildCache,
    Repair,
    RewriteJobLists,
)

_BACKUP: Final = "restore the home from a backup"
_TABLES: Final[tuple[RecordTable[Any], ...]] = tuple(
    table for table in vars(records).values() if isinstance(table, RecordTable)
)
# The records of these tables cannot be derived from others.
_IRREPLACEABLE: Final = frozenset(("docs", "lsids", "versions", "source_docs"))
_COUNTED: Final = frozenset(("docs", "ledger", "jobs", "chunks", "entities", "log"))
_COUNTER_OF: Final = {"source": "versions", "chunk": "chunks", "log": "log", "job": "jobs"}
# How far to skip ahead of the highest number in use: removed numbers may still be in caches.
_SPARE: Final = 1 << 20


def check_records(txn: ReadTxn, collector: FindingCollector) -> None:
    """Read every record of every typed table."""
    for table in _TABLES:
        for key, stored in txn.scan(table.name):
            try:
                table.get(txn, key)
            except StoreDamaged as error:
                place = f"{table.name}/{key.hex()[:16]}"
                collector.add(
                    place, str(error.fields["detail"]), *_repairs_of(table.name, key, stored)
                )
        if table.name in _COUNTED:
            collector.count(table.name, txn.count(table.name))
    collector.count("sources", txn.count("versions"))


def _repairs_of(table: str, key: bytes, stored: bytes) -> tuple[Repair, ...]:
    if table in _IRREPLACEABLE:
        return (ManualRepair(_BACKUP),)
    if table.startswith("jobs"):
        return (RewriteJobLists(),)
    if table == "births" or (table == "meta" and key == b"counter:birth"):
        skipped = CountGenerations(lost=True)
        return (DropRecord(table, key, stored), skipped) if table == "births" else (skipped,)
    if table == "meta" and key.startswith(b"counter:"):
        return (RaiseCounter(key.removeprefix(b"counter:").decode(), 0),)
    dropped = DropRecord(table, key, stored)
    return (
        (dropped, RebuildCache("lexical"), RebuildCache("dense")) if table == "log" else (dropped,)
    )


def check_counters(txn: ReadTxn, collector: FindingCollector) -> None:
    """Check that each counter is at or above every number in use."""
    for name, table in _COUNTER_OF.items():
        used = _highest(txn, table)
        try:
            reached = last_number(txn, name)
        except StoreDamaged:
            spare = 0 if name == "log" else _SPARE
            collector.add(f"counter {name}", "cannot be read", RaiseCounter(name, used + spare))
            continue
        if reached < used:
            problem = f"stands at {reached}, below {used}, which is in use"
            collector.add(f"counter {name}", problem, RaiseCounter(name, used))


def skip_numbers(txn: WriteTxn) -> None:
    """Raise every counter well above the numbers in use, after a store lost some records."""
    for name, table in _COUNTER_OF.items():
        raise_number(txn, name, _highest(txn, table) + (0 if name == "log" else _SPARE))


def _highest(txn: ReadTxn, table: str) -> int:
    if table == "jobs":
        return max(_orders(txn), default=0)
    return next((from_u64(key) for key, _ in txn.scan(table, reverse=True)), 0)


def _orders(txn: ReadTxn) -> Iterator[int]:
    """The `order` of every readable job; damaged ones are another check's findings."""
    for key, _ in txn.scan("jobs"):
        with suppress(StoreDamaged):
            job = records.JOBS.get(txn, key)
            if job is not None:
                yield job.order
