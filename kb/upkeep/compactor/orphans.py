"""Removes orphaned content files: marked in one run, removed in a later one."""

import shutil
import stat
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Final

from msgspec import Struct

from kb.errors import StoreDenied, StoreUnreachable, UsageError
from kb.model.failpoints import failpoint
from kb.model.ids import DocId
from kb.store.content.files import ContentStore, RemovedContent, entries_of
from kb.store.content.layout import HomePaths
from kb.store.keys import text_key
from kb.store.kv import ReadTxn, WriteTxn
from kb.store.records import DOCS, LEDGER, ORPHANS, Orphan
from kb.store.store import Store
from kb.upkeep.compactor.grace import CompactionTime
from kb.upkeep.compactor.report import SweepReport

MARKS_PER_TXN: Final = 1_000
UNLINKS_PER_TXN: Final = 200
# A lower bound on the grace period: no write in progress is this old.
TEMPORARY_AGE_MIN_MS: Final = 600_000
# The last one is that of a machine without the library that speaks to it.
_BUCKET_FAILS: Final = (StoreUnreachable, StoreDenied, UsageError)


class _OrphanFile(Struct, frozen=True):
    """A file that no record names; `mark` is that of an earlier run, if any."""

    path: str
    mark: Orphan | None


def sweep(
    store: Store,
    content: ContentStore,
    now: CompactionTime,
    grace_ms: int,
    removed_docs: frozenset[DocId],
    *,
    dry_run: bool,
) -> SweepReport:
    """Mark orphaned files, and remove those marked `grace_ms` ago that are still orphans.

    A doc starts to use a file in a write transaction that also removes the file's mark. So a file
    that still has the mark it had when the orphans were listed is not in use, and cannot become so
    while this holds the write transaction. In a dry run `removed_docs` count as removed.
    """
    orphans: list[_OrphanFile] = []
    problems: list[str] = []
    with store.read() as txn:
        try:
            orphans.extend(_orphan_files(txn, content, removed_docs))
        except _BUCKET_FAILS as error:
            # What lies in the database was listed before, and needs no bucket.
            problems.append(f"{error}; what lies there is left for the next run")
    due = [s for s in orphans if s.mark and _is_due(now, s.mark, grace_ms)]
    # A mark from the future means that the clock was set back: the wait starts again.
    new = [s for s in orphans if s.mark is None or s.mark.marked_ms > now.ms]
    if dry_run:
        with store.read() as txn:
            freed = sum(content.size_of(txn, s.path) for s in due)
        return SweepReport(
            marked=len(new), removed=len(due), bytes_freed=freed, problems=tuple(problems)
        )
    if not problems:
        _drop_stale_marks(store, {text_key(s.path) for s in orphans})
    removed, freed = _remove_all(store, content, due, problems)
    return SweepReport(
        marked=_mark_all(store, new, now),
        removed=removed,
        bytes_freed=freed,
        problems=tuple(problems),
    )


def _is_due(now: CompactionTime, mark: Orphan, grace_ms: int) -> bool:
    is_past = now.is_past(mark.marked_ms, mark.marked_run, grace_ms)
    return is_past and mark.marked_ms <= now.ms


def _orphan_files(
    txn: ReadTxn, content: ContentStore, removed_docs: frozenset[DocId]
) -> Iterator[_OrphanFile]:
    # Records are read before files are listed: a file made in between is at worst marked once.
    referenced = _referenced(txn, removed_docs)
    for path in content.all_paths(txn):
        if path not in referenced:
            yield _OrphanFile(path, ORPHANS.get(txn, text_key(path)))


def _referenced(txn: ReadTxn, removed_docs: frozenset[DocId]) -> set[str]:
    paths: set[str] = set()
    for _, doc in DOCS.scan(txn):
        if doc.doc_id not in removed_docs:
            paths.update((doc.raw_path, doc.md_path))
    for _, entry in LEDGER.scan(txn):
        if entry.state != "done" and entry.doc_id not in removed_docs:
            paths.update(entry.new_paths)
    return paths


def _drop_stale_marks(store: Store, orphan_keys: set[bytes]) -> None:
    """Remove the marks of files that are in use again or no longer exist."""
    with store.read() as txn:
        stale = [key for key, _ in txn.scan("orphans") if key not in orphan_keys]
    waiting = iter(stale)
    while page := list(islice(waiting, MARKS_PER_TXN)):
        with store.write() as txn:
            for key in page:
                ORPHANS.delete(txn, key)


def _remove_all(
    store: Store, content: ContentStore, due: list[_OrphanFile], problems: list[str]
) -> tuple[int, int]:
    removed: list[RemovedContent] = []
    waiting = iter(due)
    while page := list(islice(waiting, UNLINKS_PER_TXN)):
        with store.write() as txn:
            failpoint("compact.before_delete")
            in_page = _remove_page(txn, content, page, problems)
            # A crash here leaves marks without files, which the next run removes.
            failpoint("compact.after_delete")
        removed += in_page
        try:
            content.discard([item.object for item in in_page if item.object])
        except _BUCKET_FAILS as error:
            # It is listed from now on, and marked anew.
            problems.append(str(error))
    return len(removed), sum(item.size_bytes for item in removed)


def _remove_page(
    txn: WriteTxn, content: ContentStore, page: list[_OrphanFile], problems: list[str]
) -> list[RemovedContent]:
    """Remove the files of a page that still have their marks."""
    removed: list[RemovedContent] = []
    for orphan in page:
        mark = ORPHANS.get(txn, text_key(orphan.path))
        if mark is None or mark != orphan.mark:
            continue
        try:
            item = content.remove(txn, orphan.path)
        except OSError as error:
            problems.append(f"{orphan.path}: cannot be removed ({error.strerror})")
            continue
        if item is not None:
            ORPHANS.delete(txn, text_key(orphan.path))
            removed.append(item)
    return removed


def _mark_all(store: Store, orphans: list[_OrphanFile], now: CompactionTime) -> int:
    # A file may have come into use since it was listed. Its mark then does no harm: the run that
    # would remove the file checks its records again.
    waiting = iter(orphans)
    while page := list(islice(waiting, MARKS_PER_TXN)):
        with store.write() as txn:
            for orphan in page:
                mark = Orphan(marked_ms=now.ms, marked_run=now.runs)
                ORPHANS.put(txn, text_key(orphan.path), mark)
        failpoint("compact.after_mark")
    return len(orphans)


def remove_temporary(paths: HomePaths, now_ms: int, grace_ms: int, *, dry_run: bool) -> SweepReport:
    """Remove files and folders in tmp/ that dead writers left."""
    before_ms = now_ms - max(grace_ms, TEMPORARY_AGE_MIN_MS)
    removed, freed = 0, 0
    problems: list[str] = []
    for entry in entries_of(paths.tmp):
        try:
            status = entry.stat(follow_symlinks=False)
            is_folder = stat.S_ISDIR(status.st_mode)
            if not (is_folder or stat.S_ISREG(status.st_mode)):
                continue
            if status.st_mtime_ns // 1_000_000 > before_ms:
                continue
            if not dry_run:
                _unlink(paths.tmp / entry.name, is_folder=is_folder)
        except FileNotFoundError:
            continue
        except OSError as error:
            problems.append(f"tmp/{entry.name}: cannot be removed ({error.strerror})")
            continue
        removed += 1
        freed += status.st_size
    return SweepReport(removed=removed, bytes_freed=freed, problems=tuple(problems))


def _unlink(path: Path, *, is_folder: bool) -> None:
    if is_folder:
        shutil.rmtree(path)
    else:
        path.unlink()
