"""Changes the model: makes another set of vectors while searches use the present one."""

import msgspec

from kb.errors import UsageError
from kb.model.embedder import EmbedderChoice, EmbedderSet, EmbedderSpec
from kb.model.ids import DocId
from kb.model.job import JobKind
from kb.store import chunks, docs, embedders
from kb.store.jobs import queue
from kb.store.kv import ReadTxn, WriteTxn
from kb.store.meta import compactions
from kb.store.records import CHUNKS
from kb.store.store import Store


def begin_change(store: Store, spec: EmbedderSpec, settings: EmbedderChoice) -> EmbedderSet:
    """Start to make vectors with the model `spec`; searches use it once all are there.

    A home without vectors uses it at once. Asking for the model in use ends a change to another.
    Repeating the call is safe: vectors that exist stay.
    """
    with store.write() as txn:
        in_use = embedders.in_use(txn)
        if in_use is None:
            chosen = EmbedderSet(active=spec, settings=settings)
        elif spec.fingerprint == in_use.active.fingerprint:
            chosen = msgspec.structs.replace(in_use, active=spec, next=None, settings=settings)
        else:
            is_back = in_use.previous and in_use.previous.fingerprint == spec.fingerprint
            chosen = msgspec.structs.replace(
                in_use,
                next=spec,
                settings=settings,
                # The vectors of the previous model are the ones that are being completed now.
                previous=None if is_back else in_use.previous,
            )
            if in_use.next is None or in_use.next.fingerprint != spec.fingerprint:
                ids = [doc.doc_id for doc in docs.all_latest(txn) if doc.status == "active"]
                _enqueue(txn, store, "reembed", ids)
        embedders.put(txn, chosen)
    return chosen


def roll_back(store: Store) -> EmbedderSet:
    """Stop a change of the model; if there is none, go back to the previous model.

    Until they are embedded, docs added since the switch are found by words alone. Raises UsageError
    if there is nothing to go back to.
    """
    with store.write() as txn:
        in_use = embedders.in_use(txn)
        if in_use is not None and in_use.next is not None:
            chosen = msgspec.structs.replace(in_use, next=None)
        elif in_use is not None and in_use.previous is not None:
            chosen = msgspec.structs.replace(
                in_use,
                active=in_use.previous,
                previous=in_use.active,
                switched_ms=store.clock.now_ms(),
                switched_run=compactions(txn),
            )
            model = chosen.active.fingerprint
            _enqueue(txn, store, "embed", _docs_lacking_vectors(txn, model), model)
        else:
            raise UsageError(
                "there is no model to go back to: none came before, or its vectors were removed"
            )
        embedders.put(txn, chosen)
    return chosen


def switch_if_complete(store: Store) -> bool:
    """Make the next model the active one if every chunk has its vector; returns whether it did."""
    with store.read() as txn:
        in_use = embedders.in_use(txn)
        if in_use is None or in_use.next is None or queue.count_of_kind(txn, "reembed"):
            return False
        lacking = _docs_lacking_vectors(txn, in_use.next.fingerprint)
    with store.write() as txn:
        # Docs that were cut meanwhile have jobs for their own vectors.
        if embedders.in_use(txn) != in_use or queue.count_of_kind(txn, "reembed"):
            return False
        if lacking:
            _enqueue(txn, store, "reembed", lacking)
            return False
        switched = msgspec.structs.replace(
            in_use,
            active=in_use.next,
            next=None,
            previous=in_use.active,
            switched_ms=store.clock.now_ms(),
            switched_run=compactions(txn),
        )
        embedders.put(txn, switched)
    return True


def _docs_lacking_vectors(txn: ReadTxn, model: str) -> list[DocId]:
    """Docs with a chunk without a vector, except those that will be cut again anyway."""
    # Imported late: a change of the model is rare, and whether one is under way is asked often.
    from kb.intake.chunks import has_current_title

    doc_ids: dict[DocId, None] = {}
    for _, chunk in CHUNKS.scan(txn):
        if chunks.has_vector(txn, model, chunk.text_hash):
            continue
        doc = docs.latest(txn, chunk.source_no)
        if doc is None or doc.status != "active" or doc.by_name:
            continue
        if not has_current_title(doc, chunk):
            continue
        if queue.by_key(txn, queue.dedupe_key("chunk", doc.doc_id)) is None:
            doc_ids[doc.doc_id] = None
    return list(doc_ids)


def _enqueue(txn: WriteTxn, store: Store, kind: JobKind, ids: list[DocId], model: str = "") -> None:
    for doc_id in ids:
        key = queue.dedupe_key(kind, doc_id, model)
        queue.enqueue(txn, store.clock, kind, doc_id, key=key)
