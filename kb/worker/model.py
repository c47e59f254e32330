"""The model in use: when it changes, every doc's passages are asked to be embedded anew."""

from typing import Final

from kb.jobs import queue
from kb.store import docs
from kb.store.kv import WriteTxn
from kb.store.meta import get_word, set_word
from kb.store.store import Store

_WORD: Final = "embedder"


def follow_model(store: Store, fingerprint: str) -> int:
    """Make `fingerprint` the model in use; returns how many docs are to be embedded for it.

    Vectors of another model stay under their own fingerprint: the two never mix.
    """
    with store.read() as txn:
        known = get_word(txn, _WORD)
    if known == fingerprint:
        return 0
    with store.write() as txn:
        count = _enqueue_all(txn, store, fingerprint) if known else 0
        set_word(txn, _WORD, fingerprint)
    return count


def _enqueue_all(txn: WriteTxn, store: Store, fingerprint: str) -> int:
    ids = [doc.doc_id for doc in docs.all_latest(txn) if doc.status == "active"]
    for doc_id in ids:
        key = queue.dedupe_key("embed", doc_id, fingerprint)
        queue.enqueue(txn, store.clock, "embed", doc_id, key=key)
    return len(ids)
