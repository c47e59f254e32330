"""Removes unused vectors: of texts that no chunk has, and of models not in use."""

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
# Text hashes held in memory at once; a larger store takes several passes.
HASHES_MAX: Final = 1_000_000
_MODEL_BYTES: Final = 8


def remove_unused(
    store: Store, purged: frozenset[SourceNo], models: EmbedderSet | None, *, dry_run: bool
) -> int:
    """Remove vectors whose text no chunk has, or whose model is not in `models`; returns how many.

    Chunks of the sources `purged` count as removed. If `models` is None, vectors of all models
    stay.
    """
    with store.read() as txn:
        passes = txn.count("chunks") // HASHES_MAX + 1
    return sum(
        _remove_share(store, purged, models, part, passes, dry_run=dry_run)
        for part in range(passes)
    )


def _remove_share(
    store: Store,
    purged: frozenset[SourceNo],
    models: EmbedderSet | None,
    part: int,
    passes: int,
    *,
    dry_run: bool,
) -> int:
    removed = 0
    # Without models the one prefix is empty, which every key starts with.
    prefixes = (
        tuple(vector_key(spec.fingerprint, "") for spec in models.retained) if models else (b"",)
    )
    with store.read() as txn:
        seq = log.last_seq(txn)
        used = {
            digest
            for _, chunk in CHUNKS.scan(txn)
            if chunk.source_no not in purged
            and _share_of(digest := bytes.fromhex(chunk.text_hash), passes) == part
        }
        unused = (
            key
            for key, _ in txn.scan("vectors")
            if _share_of(digest := key[_MODEL_BYTES:], passes) == part
            and (digest not in used or not key.startswith(prefixes))
        )
        if dry_run:
            return sum(1 for _ in unused)
        keys = list(unused)
    keys_left = iter(keys)
    while page := list(islice(keys_left, VECTORS_PER_TXN)):
        with store.write() as txn:
            if log.first_seq(txn) > seq + 1 or embedders.in_use(txn) != models:
                # The log no longer has all changes since, or another model was chosen, whose
                # vectors may be among these keys: leave the rest to the next run.
                return removed
            fresh = _used_since(txn, seq)
            removed += sum(
                txn.delete("vectors", key)
                for key in page
                if key[_MODEL_BYTES:] not in fresh or not key.startswith(prefixes)
            )
    return removed


def _used_since(txn: ReadTxn, seq: int) -> frozenset[bytes]:
    """Hashes of the texts of chunks that changed after `seq`.

    A new chunk may have found an unused vector for its text; no job would make that vector again.
    """
    nos = (no for _, entry in log.since(txn, seq) for no in entry.nos)
    changed = (chunks.get(txn, no) for no in nos)
    return frozenset(bytes.fromhex(chunk.text_hash) for chunk in changed if chunk)


def _share_of(digest: bytes, passes: int) -> int:
    return digest[0] % passes
