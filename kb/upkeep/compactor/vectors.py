"""Which vectors serve nothing? Those of texts that no record holds, and of models given up."""

from itertools import islice
from typing import Final

from kb.model.embedder import EmbedderSet
from kb.model.ids import SourceNo
from kb.store import chunks, embedders, log
from kb.store.keys import vector_key
from kb.store.kv import ReadTxn
from kb.store.records import CHUNKS
from kb.store.store import Store

VECTORS_PER_TXN: Final = 1_000
# Hashes held in memory at once: a larger store is gone over in several passes.
HASHES_MAX: Final = 1_000_000
_MODEL_BYTES: Final = 8


def remove_unused(
    store: Store, purged: frozenset[SourceNo], kept: EmbedderSet | None, *, dry_run: bool
) -> int:
    """Remove vectors whose text no passage has, or whose model is not kept; returns how many.

    In a dry run passages of the sources `purged` count as gone. Without models, all are kept.
    """
    with store.read() as txn:
        passes = txn.count("chunks") // HASHES_MAX + 1
    return sum(
        _one_pass(store, purged, kept, part, passes, dry_run=dry_run) for part in range(passes)
    )


def _one_pass(
    store: Store,
    purged: frozenset[SourceNo],
    kept: EmbedderSet | None,
    part: int,
    passes: int,
    *,
    dry_run: bool,
) -> int:
    removed = 0
    # Every key starts with the empty one.
    models = tuple(vector_key(one.fingerprint, "") for one in kept.kept) if kept else (b"",)
    with store.read() as txn:
        seq = log.last_seq(txn)
        used = {
            digest
            for _, chunk in CHUNKS.scan(txn)
            if chunk.source_no not in purged
            and _share(digest := bytes.fromhex(chunk.text_hash), passes) == part
        }
        unused = (
            key
            for key, _ in txn.scan("vectors")
            if _share(digest := key[_MODEL_BYTES:], passes) == part
            and (digest not in used or not key.startswith(models))
        )
        if dry_run:
            return sum(1 for _ in unused)
        keys = list(unused)
    waiting = iter(keys)
    while page := list(islice(waiting, VECTORS_PER_TXN)):
        with store.write() as txn:
            if log.first_seq(txn) > seq + 1 or embedders.in_use(txn) != kept:
                # What changed since can no longer be read there, or a model was chosen that may
                # count on what it had; another run will do it.
                return removed
            fresh = _used_since(txn, seq)
            removed += sum(
                txn.delete("vectors", key)
                for key in page
                if key[_MODEL_BYTES:] not in fresh or not key.startswith(models)
            )
    return removed


def _used_since(txn: ReadTxn, seq: int) -> frozenset[bytes]:
    """Hashes of the texts of passages that changed after `seq`.

    A passage that took up an unused vector a moment ago has no job that would make it again.
    """
    nos = (no for _, entry in log.since(txn, seq) for no in entry.nos)
    found = (chunks.get(txn, no) for no in nos)
    return frozenset(bytes.fromhex(chunk.text_hash) for chunk in found if chunk)


def _share(digest: bytes, passes: int) -> int:
    return digest[0] % passes
