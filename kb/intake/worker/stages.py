"""The stages in use: when the chunker changes, its work is asked for anew."""

from kb.model.embedder import EmbedderSet
from kb.store import docs, embedders
from kb.store.jobs import queue
from kb.store.meta import CHUNKER, get_word, set_word
from kb.store.store import Store


def follow_stages(store: Store, *, chunker: str, models: EmbedderSet) -> int:
    """Make this chunker the one in use; returns how many docs are to be cut again.

    Chunks stay findable as they are until their doc is cut anew. `models` are those of a home
    that has none yet; what a home has, only `kb.intake.worker.embedders` changes.
    """
    with store.read() as txn:
        chunker_before = get_word(txn, CHUNKER)
        is_new = embedders.in_use(txn) is None
    if chunker_before == chunker and not is_new:
        return 0
    with store.write() as txn:
        if embedders.in_use(txn) is None:
            embedders.put(txn, models)
        set_word(txn, CHUNKER, chunker)
        if not chunker_before or chunker_before == chunker:
            return 0
        # Cutting asks for the vectors that are missing, too.
        ids = [doc.doc_id for doc in docs.all_latest(txn) if doc.status == "active"]
        for doc_id in ids:
            key = queue.dedupe_key("chunk", doc_id)
            queue.enqueue(txn, store.clock, "chunk", doc_id, key=key)
        return len(ids)
