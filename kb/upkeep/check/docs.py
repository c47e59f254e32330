"""Check docs, the pointers that lead to them, their facets and their ledger entries."""

import os

from kb.model.doc import Doc
from kb.model.ids import split_generation
from kb.model.source import path_of
from kb.store import docs, generations
from kb.store.codec import from_u64, u64
from kb.store.jobs import queue
from kb.store.keys import lsid_key
from kb.store.kv import ReadTxn
from kb.store.records import BIRTHS, DOCS, LEDGER, LSIDS, SOURCE_DOCS, VERSIONS
from kb.upkeep.check.collector import FindingCollector
from kb.upkeep.check.lookup import find, has_any_job, has_job, has_target
from kb.upkeep.check.recover import is_overwritten, locations_of
from kb.upkeep.check.repairs import (
    CountGenerations,
    DropRecord,
    ManualRepair,
    Rechunk,
    RecoverSource,
    RewriteFacets,
    RewritePointers,
)


def check_docs(txn: ReadTxn, collector: FindingCollector, fingerprint: str) -> None:
    """Check docs, their versions, facets and ledger entries."""
    facets = 0
    counts_generations = generations.are_counted(txn)
    for key, _ in txn.scan("docs"):
        doc = find(DOCS, txn, key)
        if doc is None:
            continue
        if counts_generations:
            _check_generation(txn, collector, doc)
        pointer = find(VERSIONS, txn, u64(doc.source_no))
        ref = find(SOURCE_DOCS, txn, u64(doc.source_no) + u64(doc.version))
        source_ref = find(LSIDS, txn, lsid_key(doc.place))
        if pointer is None or pointer.version < doc.version:
            collector.add(doc.doc_id, "its source does not lead to it", RewritePointers(doc.doc_id))
        if ref is None or ref.doc_id != doc.doc_id:
            collector.add(
                doc.doc_id, "it is not among its source's versions", RewritePointers(doc.doc_id)
            )
        if pointer is not None and pointer.doc_id == doc.doc_id:
            # Only the newest version is compared: older ones may name the place before a move.
            if (
                source_ref is None
                or source_ref.source_no != doc.source_no
                or source_ref.lsid != doc.place
            ):
                collector.add(doc.doc_id, "its source has no name", RewritePointers(doc.doc_id))
            facets += _check_newest(txn, collector, doc, fingerprint)
        elif doc.status == "active":
            collector.add(
                doc.doc_id, "a newer version does not replace it", RewritePointers(doc.doc_id)
            )
    if facets != txn.count("facets"):
        check_derived_rows(txn, collector, "facets", "a facet that no doc has")
    _check_pointers(txn, collector)


def _check_generation(txn: ReadTxn, collector: FindingCollector, doc: Doc) -> None:
    place, generation = split_generation(doc.lsid)
    count = find(BIRTHS, txn, lsid_key(place))
    if count is None or count.number < generation:
        collector.add(
            doc.doc_id,
            "the count of its source's generations does not include it",
            CountGenerations(),
        )


def _check_newest(txn: ReadTxn, collector: FindingCollector, doc: Doc, fingerprint: str) -> int:
    """Check the newest version of a source; returns how many of its facets exist."""
    expected = docs.facet_keys(doc)
    present = sum(txn.get("facets", key) is not None for key in expected)
    if present < len(expected):
        collector.add(doc.doc_id, "facets are missing", RewriteFacets(doc.doc_id))
    if doc.status == "active":
        _check_progress(txn, collector, doc, fingerprint)
    return present


def _check_progress(txn: ReadTxn, collector: FindingCollector, doc: Doc, fingerprint: str) -> None:
    entry = find(LEDGER, txn, doc.doc_id.encode())
    if entry is None:
        collector.add(doc.doc_id, "it has no ledger entry", Rechunk(doc.source_no))
    elif entry.state == "pending":
        if not has_any_job(txn, doc.doc_id, fingerprint):
            collector.add(
                doc.doc_id, "it waits for a job that does not exist", Rechunk(doc.source_no)
            )
    elif not has_job(txn, queue.dedupe_key("chunk", doc.doc_id)) and not any(
        True for _ in txn.scan("source_chunks", u64(doc.source_no), u64(doc.source_no + 1))
    ):
        collector.add(doc.doc_id, "it has no passages", Rechunk(doc.source_no))


def _check_pointers(txn: ReadTxn, collector: FindingCollector) -> None:
    for key, _ in txn.scan("versions"):
        pointer = find(VERSIONS, txn, key)
        if is_overwritten(txn, from_u64(key)):
            _add_overwritten(txn, collector, from_u64(key))
        if pointer and txn.get("docs", pointer.doc_id.encode()) is None:
            advice = "restore the home from a backup; adding the source again makes a new doc"
            collector.add(
                f"source {from_u64(key)}", "its newest doc is missing", ManualRepair(advice)
            )
    for key, stored in txn.scan("source_docs"):
        ref = find(SOURCE_DOCS, txn, key)
        if ref and txn.get("docs", ref.doc_id.encode()) is None:
            repair = DropRecord("source_docs", key, stored)
            collector.add(ref.doc_id, "a version without a record", repair)
    for key, stored in txn.scan("lsids"):
        source_ref = find(LSIDS, txn, key)
        if source_ref and txn.get("versions", u64(source_ref.source_no)) is None:
            repair = DropRecord("lsids", key, stored)
            collector.add(
                f"source {source_ref.source_no}", "the name of a source that does not exist", repair
            )
    for key, stored in txn.scan("ledger"):
        if txn.get("docs", key) is None:
            repair = DropRecord("ledger", key, stored)
            collector.add(
                f"ledger/{key.hex()[:16]}", "a ledger entry of a doc that does not exist", repair
            )


def _add_overwritten(txn: ReadTxn, collector: FindingCollector, source_no: int) -> None:
    places = [
        os.fspath(path_of(location.place) or location.place)
        for location in locations_of(txn, source_no)
    ]
    problem = "another source's doc has its id and its place"
    collector.add(", ".join(places) or f"source {source_no}", problem, RecoverSource(source_no))


def check_derived_rows(txn: ReadTxn, collector: FindingCollector, table: str, problem: str) -> None:
    """Report the rows of a derived table whose target does not exist or does not have them."""
    for key, stored in txn.scan(table):
        if not has_target(txn, table, key):
            collector.add(f"{table}/{key.hex()[-16:]}", problem, DropRecord(table, key, stored))
