"""Runs the steps of a compaction in order. Each step can be killed and repeated safely."""

import errno
from collections.abc import Callable
from typing import Final

from kb.errors import ReadOnlyHome
from kb.model.config import CompactSettings
from kb.model.ids import DocId, SourceNo
from kb.search.index.dense import DenseIndex
from kb.search.index.lexical_indexes import LexicalIndexes
from kb.store import docs
from kb.store.content.files import ContentStore
from kb.store.content.lock import file_lock
from kb.store.meta import count_compaction
from kb.store.store import Store
from kb.upkeep.compactor import caches, models, orphans, packs, vectors, versions
from kb.upkeep.compactor.grace import compaction_time
from kb.upkeep.compactor.report import CompactReport

_MINUTE_MS: Final = 60_000
_WAIT_S: Final = 30.0


class Compactor:
    """Removes what a home no longer needs. Opens the caches only when a run needs them."""

    def __init__(
        self,
        store: Store,
        content: ContentStore,
        lexical: Callable[[], LexicalIndexes],
        dense: Callable[[], DenseIndex],
        settings: CompactSettings,
    ) -> None:
        self._store = store
        self._content = content
        self._paths = content.paths
        self._lexical = lexical
        self._dense = dense
        self._settings = settings

    def run(self, *, grace_min: int | None = None, dry_run: bool = False) -> CompactReport:
        """Run every step once; with `dry_run`, only report what would be done.

        A file is removed `grace_min` minutes (default: as configured) after an earlier run marked
        it. Raises StoreBusy if another run is active, StoreFull, ReadOnlyHome, and StoreDamaged if
        a record cannot be read, before any file of a doc is removed.
        """
        minutes = self._settings.grace_min if grace_min is None else grace_min
        if dry_run:
            return self._run(minutes * _MINUTE_MS, dry_run=True)
        try:
            # One run at a time, so that each run can tell its own marks from older ones.
            with (
                file_lock(self._paths.compact_lock, _WAIT_S),
                self._store.exclusive("compaction", _WAIT_S),
            ):
                return self._run(minutes * _MINUTE_MS, dry_run=False)
        except OSError as error:
            if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS):
                raise ReadOnlyHome(error.strerror or "", place=self._paths.root) from error
            raise

    def _run(self, grace_ms: int, *, dry_run: bool) -> CompactReport:
        store, now = self._store, compaction_time(self._store)
        readers = 0 if dry_run else store.reap_readers()
        temporary = orphans.remove_temporary(self._paths, now.ms, grace_ms, dry_run=dry_run)
        settled = versions.settle(store, dry_run=dry_run)
        purged = versions.purge(store, now, self._settings.tombstone_days, dry_run=dry_run)
        removed_docs = (
            self._removed_docs(settled.removed, purged) if dry_run else frozenset[DocId]()
        )
        swept = orphans.sweep(store, self._content, now, grace_ms, removed_docs, dry_run=dry_run)
        unpacked = packs.remove_unreferenced(store, self._paths, dry_run=dry_run)
        models_kept = models.drop_previous(store, now, self._settings.model_days, dry_run=dry_run)
        unused = vectors.remove_unused(store, frozenset(purged), models_kept, dry_run=dry_run)
        folders = models.remove_cache_folders(
            self._paths.index / "dense", models_kept, dry_run=dry_run
        )
        dropped, log_problems = self._shorten_log(dry_run=dry_run)
        if not dry_run:
            with store.write() as txn:
                count_compaction(txn)
        return CompactReport(
            dry_run=dry_run,
            readers_reaped=readers,
            temporary_removed=temporary.removed,
            ledger_advanced=settled.done,
            versions_removed=len(settled.removed),
            docs_purged=len(purged),
            files_marked=swept.marked,
            files_removed=swept.removed,
            packs_removed=unpacked.removed,
            bytes_freed=sum(report.bytes_freed for report in (temporary, swept, unpacked))
            + folders,
            vectors_removed=unused,
            log_entries_removed=dropped,
            problems=(*temporary.problems, *swept.problems, *unpacked.problems, *log_problems),
        )

    def _removed_docs(self, superseded: list[DocId], purged: list[SourceNo]) -> frozenset[DocId]:
        with self._store.read() as txn:
            of_purged = [doc_id for no in purged for doc_id in docs.versions(txn, no)]
        return frozenset((*superseded, *of_purged))

    def _shorten_log(self, *, dry_run: bool) -> tuple[int, list[str]]:
        if dry_run:
            return caches.droppable_entries(self._store), []
        persisted, problems = caches.sync_caches(
            self._store, self._lexical(), self._dense(), _WAIT_S
        )
        return caches.truncate_log(self._store, persisted, self._paths.index), problems
