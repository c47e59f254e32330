"""Changes docs that are in the store: hides them, moves them, changes who may see them."""

from collections.abc import Callable

import msgspec

from kb.errors import UsageError
from kb.model.doc import Doc, LedgerEntry, SourceStamp, Visibility
from kb.model.ids import DocId, Lsid
from kb.model.source import file_of, from_machine, member_of, part_lsid
from kb.store import chunks, docs, log
from kb.store.jobs import queue
from kb.store.keys import lsid_key
from kb.store.kv import ReadTxn, WriteTxn
from kb.store.meta import compactions
from kb.store.records import HOLDS, LEDGER, LSIDS, SEEN, SourceRef, StoredValue
from kb.store.store import Store


def tombstone(store: Store, doc_ids: list[DocId]) -> list[DocId]:
    """Hide docs from every reader, in one transaction; compaction removes them after a while.

    Any version's id stands for its source, whose newest version is hidden. Returns the ids of the
    docs that this call has hidden.
    """
    with store.write() as txn:
        hidden = _tombstone(txn, store, doc_ids)
        for file in filter(None, (file_of(doc.place) for doc in hidden)):
            # A mailbox that is as it was is read again by whoever brings docs back.
            seen = SEEN.get(txn, lsid_key(part_lsid(file)))
            if seen is not None:
                left_out = msgspec.structs.replace(seen, left_out=seen.left_out + 1)
                SEEN.put(txn, lsid_key(seen.lsid), left_out)
        return [doc.doc_id for doc in hidden]


def tombstone_missing(
    store: Store, doc_ids: list[DocId], also: Callable[[WriteTxn], None] | None = None
) -> list[DocId]:
    """Hide docs as `tombstone` does, because their files are gone.

    This deletes their seen records. A doc without one comes back with its file; a doc that a person
    removed does not. `also` runs in the same transaction.
    """
    with store.write() as txn:
        if also is not None:
            also(txn)
        return hide_missing(txn, store, doc_ids)


def hide_missing(txn: WriteTxn, store: Store, doc_ids: list[DocId]) -> list[DocId]:
    """As `tombstone_missing`, in a transaction of the caller."""
    hidden = _tombstone(txn, store, doc_ids)
    for doc in hidden:
        SEEN.delete(txn, lsid_key(doc.place))
    return [doc.doc_id for doc in hidden]


def was_removed(txn: ReadTxn, lsid: Lsid) -> bool:
    """Whether a person removed the doc of this place, and nobody has added it since."""
    doc = docs.latest_of(txn, lsid)
    if doc is None:
        return HOLDS.get(txn, lsid_key(lsid)) is not None
    if doc.status != "tombstoned":
        return False
    return doc.kind in ("url", "stdin") or SEEN.get(txn, lsid_key(lsid)) is not None


def release_purged_place(txn: WriteTxn, store: Store, doc: Doc) -> None:
    """Free the place of a tombstone that is purged.

    If a person removed the doc, the place is held: its file stays out until `kb add` names it.
    """
    is_there = docs.source_no_of(txn, doc.place) == doc.source_no
    if is_there and was_removed(txn, doc.place):
        HOLDS.put(txn, lsid_key(doc.place), StoredValue(number=store.clock.now_ms()))
    docs.release_place(txn, doc)


def release_hold(txn: WriteTxn, place: Lsid) -> None:
    """Stop holding a place: its source has been added."""
    HOLDS.delete(txn, lsid_key(place))


def _tombstone(txn: WriteTxn, store: Store, doc_ids: list[DocId]) -> list[Doc]:
    hidden: list[Doc] = []
    for doc_id in doc_ids:
        doc = _newest(txn, doc_id)
        if doc is None or doc.status != "active":
            continue
        now_ms = store.clock.now_ms()
        run = compactions(txn)
        hidden_doc = msgspec.structs.replace(
            doc, status="tombstoned", updated_ms=now_ms, hidden_run=run
        )
        docs.replace(txn, hidden_doc)
        log.append(txn, chunks.numbers_of(txn, doc.source_no), words=True, vectors=True)
        hidden.append(doc)
    return hidden


def set_visibility(store: Store, doc_id: DocId, visibility: Visibility) -> Doc | None:
    """Set who may see a doc; returns the changed doc, or None if there is no active doc.

    Raises UsageError for a subject of a topic: the settings say who may see those.
    """
    with store.write() as txn:
        doc = _newest(txn, doc_id)
        if doc is None or doc.status != "active":
            return None
        if doc.kind == "topic":
            collection, _ = member_of(doc.place)
            name = from_machine(collection, store.machine) or collection
            raise UsageError(
                f"{doc_id}: its topic decides who sees it; set kb.topic.{name}.visibility"
            )
        changed = msgspec.structs.replace(doc, visibility=visibility)
        docs.replace(txn, changed)
        # Each audience has its own lexical index: the old one and the new one both look again.
        log.append(txn, chunks.numbers_of(txn, doc.source_no), words=True)
        return changed


def _newest(txn: WriteTxn, doc_id: DocId) -> Doc | None:
    doc = docs.get(txn, doc_id)
    return docs.latest(txn, doc.source_no) if doc else None


def move_doc(txn: WriteTxn, store: Store, doc: Doc, place: Lsid, seen: SourceStamp | None) -> Doc:
    """Move a doc's source to another place: the doc and its chunks stay the same.

    `doc` is the doc after the move: its `source` names the new place, and its chunks follow a new
    title or visibility. `seen` is what a file there was seen as. A new source may take the old
    place.
    """
    before = docs.latest(txn, doc.source_no) or doc
    docs.release_place(txn, before)
    moved = msgspec.structs.replace(
        doc, status="active", hidden_run=0, moved_to=None if place == doc.lsid else place
    )
    docs.replace(txn, moved)
    LSIDS.put(txn, lsid_key(place), SourceRef(source_no=doc.source_no, lsid=place))
    if seen is not None:
        SEEN.put(txn, lsid_key(place), seen)
    if before.status == "tombstoned" or before.audience != moved.audience:
        log.append(txn, chunks.numbers_of(txn, doc.source_no), words=True, vectors=True)
    elif before.source != moved.source:
        # The indexes of words hold the name of its file.
        log.append(txn, chunks.numbers_of(txn, doc.source_no), words=True)
    if before.status == "tombstoned" or before.label != moved.label:
        # Chunker and model may have changed while it was hidden, because only active docs follow
        # them.
        request_chunking(txn, store, moved)
    return moved


def request_chunking(txn: WriteTxn, store: Store, doc: Doc) -> None:
    """Add a job that cuts a doc into chunks."""
    mark_pending(txn, store, doc)
    key = queue.dedupe_key("chunk", doc.doc_id)
    queue.enqueue(txn, store.clock, "chunk", doc.doc_id, key=key)


def mark_pending(txn: WriteTxn, store: Store, doc: Doc) -> None:
    """Mark a doc as pending, so that its files stay until its chunks are stored."""
    entry = LedgerEntry(
        doc_id=doc.doc_id,
        state="pending",
        new_paths=(doc.raw_path, doc.md_path),
        updated_ms=store.clock.now_ms(),
    )
    LEDGER.put(txn, doc.doc_id.encode(), entry)
