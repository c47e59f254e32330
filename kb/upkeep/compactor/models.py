"""Drops the previous embedding model after some days, and the caches of models not in use."""

from pathlib import Path
from typing import Final

import msgspec

from kb.model.embedder import EmbedderSet
from kb.search.index.dense_files import remove_vectors, unused_folders
from kb.store import embedders
from kb.store.store import Store
from kb.upkeep.compactor.grace import CompactionTime

_DAY_MS: Final = 86_400_000


def drop_previous(
    store: Store, now: CompactionTime, days: int, *, dry_run: bool
) -> EmbedderSet | None:
    """Drop the previous model `days` after the switch; returns the models that stay, if any."""
    with store.read() as txn:
        models = embedders.in_use(txn)
    if models is None or not _is_over(now, models, days):
        return models
    remaining = msgspec.structs.replace(models, previous=None)
    if dry_run:
        return remaining
    with store.write() as txn:
        models = embedders.in_use(txn)
        if models is not None and _is_over(now, models, days):
            models = msgspec.structs.replace(models, previous=None)
            embedders.put(txn, models)
    return models


def _is_over(now: CompactionTime, models: EmbedderSet, days: int) -> bool:
    if models.previous is None:
        return False
    return now.is_past(models.switched_ms, models.switched_run, days * _DAY_MS)


def remove_cache_folders(folder: Path, models: EmbedderSet | None, *, dry_run: bool) -> int:
    """Remove the dense caches of all models but these; returns the bytes freed."""
    if models is None:
        return 0
    freed = 0
    for other in unused_folders(folder, [spec.fingerprint for spec in models.retained]):
        freed += sum(path.stat().st_size for path in other.iterdir() if path.is_file())
        if not dry_run:
            remove_vectors(other)
    return freed
