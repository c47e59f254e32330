"""The stages in use: when the chunker or the model changes, their work is asked for anew."""

from kb.jobs import queue
from kb.model.job import JobKind
from kb.store import docs
from kb.store.kv import WriteTxn
from kb.store.meta import CHUNKER, MODEL, get_word, set_word
from kb.store.store import Store


def follow_stages(store: Store, *, chunker: str, model: str) -> int:
    """Make these fingerprints the ones in use; returns how many docs are to be worked on again.

    Passages stay findable as they are until their doc is cut anew. Vectors of another model stay
    under their own fingerprint: the two never mix.
    """
    with store.read() as txn:
        known = get_word(txn, CHUNKER), get_word(txn, MODEL)
    if known == (chunker, model):
        return 0
    count = 0
    with store.write() as txn:
        if known[0] and known[0] != chunker:
            count = _enqueue_all(txn, store, "chunk", "")
        elif known[1] and known[1] != model:
            count = _enqueue_all(txn, store, "embed", model)
        set_word(txn, CHUNKER, chunker)
        set_word(txn, MODEL, model)
    return count


def _enqueue_all(txn: WriteTxn, store: Store, kind: JobKind, model: str) -> int:
    # Cutting asks for the vectors that are missing, so a chunk job serves a new model too.
    ids = [doc.doc_id for doc in docs.all_latest(txn) if doc.status == "active"]
    for doc_id in ids:
        key = queue.dedupe_key(kind, doc_id, model)
        queue.enqueue(txn, store.clock, kind, doc_id, key=key)
    return len(ids)
