"""Which files does nothing name? Marked in one run, removed in a later one."""

import os
import stat
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import Final

from msgspec import Struct

from kb.model.failpoints import failpoint
from kb.model.ids import DocId
from kb.store.content.layout import HomePaths
from kb.store.keys import text_key
from kb.store.kv import ReadTxn, WriteTxn
from kb.store.records import DOCS, LEDGER, ORPHANS, Orphan
from kb.store.store import Store
from kb.upkeep.compactor.grace import Now
from kb.upkeep.compactor.report import Swept

MARKS_PER_TXN: Final = 1_000
UNLINKS_PER_TXN: Final = 200
# A write in progress is never this old, however short a grace was asked for.
TEMPORARY_AGE_MIN_MS: Final = 600_000
_FOLDERS: Final = ("raw", "md")


class _Stray(Struct, frozen=True):
    """A file that nothing names; `mark` where an earlier run marked it."""

    path: str
    mark: Orphan | None


def sweep(
    store: Store,
    paths: HomePaths,
    now: Now,
    grace_ms: int,
    gone: frozenset[DocId],
    *,
    dry_run: bool,
) -> Swept:
    """Mark what nothing names; remove what was marked `grace_ms` ago and still is not named.

    A doc takes a file into use in a write transaction that also removes its mark. So a file that
    carries the mark it had before `strays` were looked for has not been taken since, and while
    this holds the writer's place nobody can. In a dry run the docs `gone` name nothing.
    """
    with store.read() as txn:
        strays = list(_strays(txn, paths.root, gone))
    due = [s for s in strays if s.mark and _is_due(now, s.mark, grace_ms)]
    # Marked in what is now the future: the clock was set back, and the wait begins anew.
    new = [s for s in strays if s.mark is None or s.mark.marked_ms > now.ms]
    if dry_run:
        sizes = (_size(paths.root / s.path) for s in due)
        return Swept(marked=len(new), removed=len(due), bytes_freed=sum(sizes))
    _drop_stale_marks(store, {text_key(s.path) for s in strays})
    removed, freed, problems = _remove_all(store, paths.root, due)
    return Swept(
        marked=_mark_all(store, new, now),
        removed=removed,
        bytes_freed=freed,
        problems=tuple(problems),
    )


def _is_due(now: Now, mark: Orphan, grace_ms: int) -> bool:
    is_past = now.is_past(mark.marked_ms, mark.marked_run, grace_ms)
    return is_past and mark.marked_ms <= now.ms


def _strays(txn: ReadTxn, root: Path, gone: frozenset[DocId]) -> Iterator[_Stray]:
    # Named before listed: a file that is made in between is a stray at worst until the next run.
    named = _named(txn, gone)
    for path in _files(root):
        if path not in named:
            yield _Stray(path, ORPHANS.get(txn, text_key(path)))


def _named(txn: ReadTxn, gone: frozenset[DocId]) -> set[str]:
    named: set[str] = set()
    for _, doc in DOCS.scan(txn):
        if doc.doc_id not in gone:
            named.update((doc.raw_path, doc.md_path))
    for _, entry in LEDGER.scan(txn):
        if entry.state != "done" and entry.doc_id not in gone:
            named.update(entry.new_paths)
    return named


def _files(root: Path) -> Iterator[str]:
    """Regular files two folders deep, as records name them; no link is followed."""
    for folder in _FOLDERS:
        for inner in _entries(root / folder):
            if inner.is_dir(follow_symlinks=False):
                for file in _entries(root / folder / inner.name):
                    if file.is_file(follow_symlinks=False):
                        yield f"{folder}/{inner.name}/{file.name}"


def _entries(folder: Path) -> list["os.DirEntry[str]"]:
    try:
        if folder.is_symlink():
            return []
        with os.scandir(folder) as found:
            return list(found)
    except FileNotFoundError:
        return []


def _drop_stale_marks(store: Store, strays: set[bytes]) -> None:
    """Forget marks of files that are named again or gone."""
    with store.read() as txn:
        stale = [key for key, _ in txn.scan("orphans") if key not in strays]
    waiting = iter(stale)
    while page := list(islice(waiting, MARKS_PER_TXN)):
        with store.write() as txn:
            for key in page:
                ORPHANS.delete(txn, key)


def _remove_all(store: Store, root: Path, due: list[_Stray]) -> tuple[int, int, list[str]]:
    removed, freed = 0, 0
    problems: list[str] = []
    waiting = iter(due)
    while page := list(islice(waiting, UNLINKS_PER_TXN)):
        with store.write() as txn:
            failpoint("compact.before_delete")
            for stray in page:
                try:
                    size_bytes = _remove(txn, root, stray)
                except OSError as error:
                    problems.append(f"{stray.path}: cannot be removed ({error.strerror})")
                    continue
                removed += size_bytes is not None
                freed += size_bytes or 0
            # A crash here leaves marks without files, which the next run forgets.
            failpoint("compact.after_delete")
    return removed, freed, problems


def _remove(txn: WriteTxn, root: Path, stray: _Stray) -> int | None:
    """Remove a file that still carries its mark; its size, or None where it stays."""
    mark = ORPHANS.get(txn, text_key(stray.path))
    if mark is None or mark != stray.mark:
        return None
    path = root / stray.path
    try:
        status = path.lstat()
        if not stat.S_ISREG(status.st_mode):
            return None
        path.unlink()
    except FileNotFoundError:
        return None
    ORPHANS.delete(txn, text_key(stray.path))
    return status.st_size


def _mark_all(store: Store, strays: list[_Stray], now: Now) -> int:
    # A file may have been taken into use since it was looked for. Its mark then does no harm:
    # the run that would remove it looks again, later than the mark.
    waiting = iter(strays)
    while page := list(islice(waiting, MARKS_PER_TXN)):
        with store.write() as txn:
            for stray in page:
                mark = Orphan(marked_ms=now.ms, marked_run=now.runs)
                ORPHANS.put(txn, text_key(stray.path), mark)
        failpoint("compact.after_mark")
    return len(strays)


def remove_temporary(paths: HomePaths, now_ms: int, grace_ms: int, *, dry_run: bool) -> Swept:
    """Remove what writers that died left in tmp/, directly and as regular files."""
    before_ms = now_ms - max(grace_ms, TEMPORARY_AGE_MIN_MS)
    removed, freed = 0, 0
    problems: list[str] = []
    for entry in _entries(paths.tmp):
        try:
            status = entry.stat(follow_symlinks=False)
            if not stat.S_ISREG(status.st_mode) or status.st_mtime_ns // 1_000_000 > before_ms:
                continue
            if not dry_run:
                os.unlink(paths.tmp / entry.name)
        except FileNotFoundError:
            continue
        except OSError as error:
            problems.append(f"tmp/{entry.name}: cannot be removed ({error.strerror})")
            continue
        removed += 1
        freed += status.st_size
    return Swept(removed=removed, bytes_freed=freed, problems=tuple(problems))


def _size(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:
        return 0
