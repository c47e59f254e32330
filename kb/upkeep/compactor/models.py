"""Which models' vectors stay? The one in use, the next one, and for some days the one before."""

from pathlib import Path
from typing import Final

import msgspec

from kb.model.embedder import EmbedderSet
from kb.search.index import remove_vectors, unused_folders
from kb.store import embedders
from kb.store.store import Store
from kb.upkeep.compactor.grace import Now

_DAY_MS: Final = 86_400_000


def forget(store: Store, now: Now, days: int, *, dry_run: bool) -> EmbedderSet | None:
    """Give up the model before, `days` after the switch; returns those that stay, if any."""
    with store.read() as txn:
        known = embedders.in_use(txn)
    if known is None or not _is_over(now, known, days):
        return known
    left = msgspec.structs.replace(known, previous=None)
    if dry_run:
        return left
    with store.write() as txn:
        known = embedders.in_use(txn)
        if known is not None and _is_over(now, known, days):
            known = msgspec.structs.replace(known, previous=None)
            embedders.put(txn, known)
    return known


def _is_over(now: Now, known: EmbedderSet, days: int) -> bool:
    if known.previous is None:
        return False
    return now.is_past(known.switched_ms, known.switched_run, days * _DAY_MS)


def remove_folders(folder: Path, kept: EmbedderSet | None, *, dry_run: bool) -> int:
    """Remove the caches of vectors of models that do not stay; returns their bytes."""
    if kept is None:
        return 0
    freed = 0
    for other in unused_folders(folder, [one.fingerprint for one in kept.kept]):
        freed += sum(path.stat().st_size for path in other.iterdir() if path.is_file())
        if not dry_run:
            remove_vectors(other)
    return freed
