"""Does everything that leads to a doc lead there, and has each what it needs?"""

import os

from kb.model.doc import Doc
from kb.model.ids import birth_of
from kb.model.source import path_of
from kb.store import births, docs
from kb.store.codec import from_u64, u64
from kb.store.jobs import queue
from kb.store.keys import lsid_key
from kb.store.kv import ReadTxn
from kb.store.records import BIRTHS, DOCS, LEDGER, LSIDS, SOURCE_DOCS, VERSIONS
from kb.upkeep.check.lookup import find, has_any_job, has_job, is_named
from kb.upkeep.check.mends import (
    BringBack,
    ByHand,
    CountBirths,
    DropRecord,
    Recut,
    Refacet,
    Repoint,
)
from kb.upkeep.check.notes import Notes
from kb.upkeep.check.reborn import is_overwritten, names_of


def check_docs(txn: ReadTxn, notes: Notes, fingerprint: str) -> None:
    """Docs, their versions, facets and ledger entries."""
    facets = 0
    counts_births = births.are_kept(txn)
    for key, _ in txn.scan("docs"):
        doc = find(DOCS, txn, key)
        if doc is None:
            continue
        if counts_births:
            _check_birth(txn, notes, doc)
        pointer = find(VERSIONS, txn, u64(doc.source_no))
        ref = find(SOURCE_DOCS, txn, u64(doc.source_no) + u64(doc.version))
        named = find(LSIDS, txn, lsid_key(doc.place))
        if pointer is None or pointer.version < doc.version:
            notes.add(doc.doc_id, "its source does not lead to it", Repoint(doc.doc_id))
        if ref is None or ref.doc_id != doc.doc_id:
            notes.add(doc.doc_id, "it is not among its source's versions", Repoint(doc.doc_id))
        if pointer is not None and pointer.doc_id == doc.doc_id:
            # Versions before a move name the place before it.
            if named is None or named.source_no != doc.source_no or named.lsid != doc.place:
                notes.add(doc.doc_id, "its source is not known by name", Repoint(doc.doc_id))
            facets += _check_newest(txn, notes, doc, fingerprint)
        elif doc.status == "active":
            notes.add(doc.doc_id, "a newer version does not replace it", Repoint(doc.doc_id))
    if facets != txn.count("facets"):
        check_rows(txn, notes, "facets", "a facet that no doc has")
    _check_pointers(txn, notes)


def _check_birth(txn: ReadTxn, notes: Notes, doc: Doc) -> None:
    place, birth = birth_of(doc.lsid)
    count = find(BIRTHS, txn, lsid_key(place))
    if count is None or count.number < birth:
        notes.add(doc.doc_id, "its birth is not counted", CountBirths())


def _check_newest(txn: ReadTxn, notes: Notes, doc: Doc, fingerprint: str) -> int:
    """Returns how many of its facets are there."""
    expected = docs.facet_keys(doc)
    present = sum(txn.get("facets", key) is not None for key in expected)
    if present < len(expected):
        notes.add(doc.doc_id, "facets are missing", Refacet(doc.doc_id))
    if doc.status == "active":
        _check_progress(txn, notes, doc, fingerprint)
    return present


def _check_progress(txn: ReadTxn, notes: Notes, doc: Doc, fingerprint: str) -> None:
    entry = find(LEDGER, txn, doc.doc_id.encode())
    if entry is None:
        notes.add(doc.doc_id, "it has no ledger entry", Recut(doc.source_no))
    elif entry.state == "pending":
        if not has_any_job(txn, doc.doc_id, fingerprint):
            notes.add(doc.doc_id, "it waits for a job that is not there", Recut(doc.source_no))
    elif not has_job(txn, queue.dedupe_key("chunk", doc.doc_id)) and not any(
        True for _ in txn.scan("source_chunks", u64(doc.source_no), u64(doc.source_no + 1))
    ):
        notes.add(doc.doc_id, "it has no passages", Recut(doc.source_no))


def _check_pointers(txn: ReadTxn, notes: Notes) -> None:
    for key, _ in txn.scan("versions"):
        pointer = find(VERSIONS, txn, key)
        if is_overwritten(txn, from_u64(key)):
            _note_overwritten(txn, notes, from_u64(key))
        if pointer and txn.get("docs", pointer.doc_id.encode()) is None:
            advice = "restore the home from a backup; adding the source again makes a new doc"
            notes.add(f"source {from_u64(key)}", "its newest doc is missing", ByHand(advice))
    for key, stored in txn.scan("source_docs"):
        ref = find(SOURCE_DOCS, txn, key)
        if ref and txn.get("docs", ref.doc_id.encode()) is None:
            mend = DropRecord("source_docs", key, stored)
            notes.add(ref.doc_id, "a version without a record", mend)
    for key, stored in txn.scan("lsids"):
        named = find(LSIDS, txn, key)
        if named and txn.get("versions", u64(named.source_no)) is None:
            mend = DropRecord("lsids", key, stored)
            notes.add(f"source {named.source_no}", "a name of a source that is not there", mend)
    for key, stored in txn.scan("ledger"):
        if txn.get("docs", key) is None:
            mend = DropRecord("ledger", key, stored)
            notes.add(f"ledger/{key.hex()[:16]}", "an entry of a doc that is not there", mend)


def _note_overwritten(txn: ReadTxn, notes: Notes, source_no: int) -> None:
    places = [os.fspath(path_of(name.place) or name.place) for name in names_of(txn, source_no)]
    problem = "another source's doc has its id, and stands in its place"
    notes.add(", ".join(places) or f"source {source_no}", problem, BringBack(source_no))


def check_rows(txn: ReadTxn, notes: Notes, table: str, problem: str) -> None:
    """Note the rows of a table that lead to nothing that has them."""
    for key, stored in txn.scan(table):
        if not is_named(txn, table, key):
            notes.add(f"{table}/{key.hex()[-16:]}", problem, DropRecord(table, key, stored))
