"""`sync-all`: syncs every due source, one after another; a failure stops none of the others."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol

import msgspec
from msgspec import Struct

from kb.errors import Gone, NotFound, RateLimited, SourceError
from kb.intake.sync.collection import Collection, diff_collection
from kb.intake.sync.fetch import RETRY_AFTER_S_MAX
from kb.intake.sync.folder import FolderDiff, diff_folder, tombstone_vanished, unavailable_reason
from kb.intake.sync.moves import DetectedMove, apply_moves, detect_moves
from kb.intake.sync.origins import (
    acquire,
    is_elsewhere,
    is_own,
    lies_on,
    list_origins,
    mark_synced,
    origin_folder,
    origins_here,
    register,
    release,
    resolve_origin,
    shown_location,
    unregister,
)
from kb.intake.sync.report import (
    AddReport,
    SiteReport,
    SourceLine,
    SyncOutcome,
    SyncReport,
    Tally,
    total_report,
)
from kb.intake.sync.url import next_try_ms
from kb.intake.sync.walk import SkippedFile, WalkedFile
from kb.model.doc import Doc
from kb.model.failpoints import failpoint
from kb.model.ids import DocId
from kb.model.origin import FOLDERS, SITES, Origin
from kb.store.store import Store

_IN_RECORDS: Final = ("entries", "notebook")
_MINUTE_MS: Final = 60_000


class SyncOptions(Struct, frozen=True, kw_only=True):
    """The options of a sync."""

    interval_min: int = 20
    sources_max: int | None = None
    only: str | None = None
    """Id or location of the only source to sync, due or not."""
    dry_run: bool = False
    accept_deletions: bool = False
    file_bytes_max: int = 64 << 20
    home: Path | None = None


class SourceReader(Protocol):
    """Reads sources into the store."""

    def take_in(
        self, origin: Origin, seen: Sequence[WalkedFile | SkippedFile]
    ) -> tuple[AddReport, Origin]:
        """Ingest a page, or the files that a walk of a folder found, as `add` does.

        Returns the report, and the source with its new cursor.
        """
        ...

    def title_of(self, path: Path, data: bytes) -> str | None:
        """The title of a file with these bytes at this path; None where it cannot be read."""
        ...

    def declared(self) -> list[Origin]:
        """The sources that the settings declare, registered or not."""
        ...

    def follow(self, origin: Origin, *, accept_deletions: bool) -> SiteReport:
        """Bring a site or a feed level, its vanished pages included."""
        ...

    def collect(self, origin: Origin) -> Collection:
        """The current members of a topic, a pack or a folder of entries."""
        ...

    def take_members(self, collection: Collection) -> AddReport:
        """Ingest the members of a collection."""
        ...


class _OpenFolderSync(Struct, frozen=True, kw_only=True):
    """An acquired folder whose files were ingested, and whose vanished docs remain yet."""

    acquired: Origin
    after: Origin
    diff: FolderDiff
    moved: int
    report: AddReport


class Syncer:
    """Syncs the registered sources of one home."""

    def __init__(self, store: Store, reader: SourceReader, options: SyncOptions) -> None:
        self._store = store
        self._reader = reader
        self._options = options
        self._moved: set[DocId] = set()
        """Docs whose files this run found in another place."""

    def run(self, on_line: Callable[[SourceLine], None] | None = None) -> SyncReport:
        """Sync all due sources. A source may fail on its own; a full disk ends the run.

        A file that vanished from one folder may have moved to another: docs are removed only after
        all folders have been read.
        """
        lines: list[SourceLine] = []
        open_folders: list[_OpenFolderSync] = []

        def report(line: SourceLine) -> None:
            lines.append(line)
            if on_line:
                on_line(line)

        self._register_declared()
        try:
            for origin in self._due():
                if is_elsewhere(origin, self._store.machine) and origin.kind != "pack":
                    report(_line(origin, "failed", reason=lies_on(origin)))
                    continue
                synced = self._dry_run(origin) if self._options.dry_run else self._sync(origin)
                if isinstance(synced, SourceLine):
                    report(synced)
                else:
                    open_folders.append(synced)
                    if not synced.diff.vanished:
                        report(self._close(open_folders, len(open_folders) - 1))
            while open_folders:
                report(self._close(open_folders, 0))
        finally:
            if not self._options.dry_run:
                for folder in open_folders:
                    release(self._store, folder.after)
        return total_report(lines)

    def _close(self, open_folders: list[_OpenFolderSync], number: int) -> SourceLine:
        line, after = self._end_folder(open_folders[number])
        open_folders.pop(number)
        if not self._options.dry_run:
            release(self._store, _with_count(after, line))
        return line

    def _register_declared(self) -> None:
        with self._store.read() as txn:
            registered = {origin.origin_id for origin in list_origins(txn)}
        for origin in self._reader.declared():
            if origin.origin_id not in registered and not self._options.dry_run:
                register(self._store, origin)

    def _due(self) -> list[Origin]:
        now_ms = self._store.clock.now_ms()
        with self._store.read() as txn:
            if self._options.only is not None:
                only, caller = self._options.only, self._store.caller
                return [resolve_origin(txn, only, caller, self._store.machine)]
            # What other homes have in their folder is in records, and only commits change it.
            left_out = _IN_RECORDS if self._store.is_shared else ()
            here = origins_here(txn, self._store.machine)
            own = (origin for origin in here if is_own(origin, self._store.caller))
            origins = [origin for origin in own if origin.kind not in left_out]
        wait_ms = self._options.interval_min * _MINUTE_MS
        due = [origin for origin in origins if _is_due(origin, now_ms, wait_ms)]
        # Those not tried for longest come first, so that --max reaches all sources in turn.
        due.sort(key=lambda origin: (origin.tried_ms or 0, origin.location))
        return due[: self._options.sources_max]

    def _sync(self, origin: Origin) -> "SourceLine | _OpenFolderSync":
        acquired = acquire(self._store, origin)
        if acquired is None:
            return _line(origin, "busy", reason="another process is syncing it, or just has")
        after: Origin | None = acquired
        try:
            failpoint("sync.after_hold")
            if acquired.kind in FOLDERS:
                open_folder = self._begin_folder(acquired)
                after = None
                return open_folder
            line, after = self._sync_one(acquired)
            after = _with_count(after, line)
        except Gone as error:
            after = self._failed(acquired, error)
            since_ms = acquired.gone_since_ms or self._store.clock.now_ms()
            after = msgspec.structs.replace(after, gone_since_ms=since_ms)
            line = _line(acquired, "gone", reason=f"{error.reason}; its doc is kept")
        except SourceError as error:
            after = self._failed(acquired, error)
            line = _line(acquired, "failed", reason=error.reason)
        finally:
            if after is not None:
                release(self._store, after)
        return line

    def _sync_one(self, origin: Origin) -> tuple[SourceLine, Origin]:
        if origin.kind in SITES:
            return self._site(origin)
        return self._url(origin) if origin.kind == "url" else self._collection(origin)

    def _site(self, origin: Origin) -> tuple[SourceLine, Origin]:
        done = self._reader.follow(origin, accept_deletions=self._options.accept_deletions)
        held_back = done.hold_back_reason
        line = _line(
            origin,
            "held_back" if held_back else "synced",
            done.report,
            removed=done.removed,
            reason=held_back
            or (f"{done.stopped}; the next sync goes on" if done.stopped else None),
        )
        if held_back:
            return line, msgspec.structs.replace(done.after, last_error=held_back)
        return line, self._synced(done.after)

    def _collection(self, origin: Origin) -> tuple[SourceLine, Origin]:
        collection = self._reader.collect(origin)
        report = self._reader.take_members(collection)
        diff = diff_collection(self._store, collection)
        reason = (
            diff.hold_back_reason
            if collection.problem or not self._options.accept_deletions
            else None
        )
        removed = [] if reason else tombstone_vanished(self._store, diff.vanished)
        outcome: SyncOutcome = "held_back" if reason else "synced"
        line = _line(origin, outcome, report, removed=len(removed), reason=reason)
        if collection.is_removed:
            with suppress(NotFound):
                unregister(self._store, origin.origin_id)
        if reason:
            return line, msgspec.structs.replace(origin, last_error=reason)
        return line, self._synced(origin)

    def _begin_folder(self, origin: Origin) -> _OpenFolderSync:
        """Ingest the files that are there, or report it in a dry run."""
        diff = self._diff(origin)
        recognised = detect_moves(
            self._store,
            diff.fresh,
            diff.missing,
            self._options.file_bytes_max,
            to=origin,
            title_of=self._reader.title_of,
        )
        moved = self._apply_moves(recognised)
        self._moved.update(moved)
        report, after = self._reader.take_in(origin, diff.entries)
        if self._options.dry_run:
            # A walk finds a moved file at its new place, where it is unchanged.
            report = msgspec.structs.replace(
                report,
                added=report.added - len(moved),
                unchanged=report.unchanged + len(moved),
            )
        return _OpenFolderSync(
            acquired=origin, after=after, diff=diff, moved=len(moved), report=report
        )

    def _apply_moves(self, recognised: list[DetectedMove]) -> list[DocId]:
        if self._options.dry_run:
            return [move.doc.doc_id for move in recognised]
        return apply_moves(self._store, recognised)

    def _end_folder(self, folder: _OpenFolderSync) -> tuple[SourceLine, Origin]:
        """Remove the docs whose files are gone, unless there are suspiciously many."""
        vanished, held_back = self._removable(folder)
        removed = 0 if held_back else len(vanished)
        not_level: SyncOutcome = "held_back" if folder.diff.keeps_docs(self._moved) else "failed"
        inside = folder.report.hold_back_reason
        if removed and not self._options.dry_run:
            removed = len(tombstone_vanished(self._store, vanished))
        unread = folder.diff.unread_reason
        saw_any = not unread or any(isinstance(one, WalkedFile) for one in folder.diff.entries)
        line = _line(
            folder.acquired,
            not_level if held_back or inside else "synced" if saw_any else "failed",
            folder.report,
            moved=folder.moved,
            removed=removed,
            reason=held_back,
        )
        if held_back or inside:
            return line, msgspec.structs.replace(folder.after, last_error=held_back or inside)
        # Its docs that could not be looked at may be outdated, whatever else is level.
        return line, msgspec.structs.replace(self._synced(folder.after), last_error=unread)

    def _removable(self, folder: _OpenFolderSync) -> tuple[list[Doc], str | None]:
        """Docs whose files are gone and were found nowhere, and why they may not be removed."""
        diff = folder.diff
        vanished = [doc for doc in diff.vanished if doc.doc_id not in self._moved]
        if self._options.dry_run:
            held_back = diff.hold_back_reason if vanished or not diff.entries else None
            return vanished, None if self._options.accept_deletions else held_back
        if not vanished:
            root = origin_folder(folder.acquired)
            return vanished, unavailable_reason(root, has_docs=diff.keeps_docs(self._moved))
        # Compare again: files that have come back keep their docs.
        recheck = self._diff(folder.acquired, diff.known_count)
        still_vanished = {doc.doc_id for doc in recheck.vanished}
        vanished = [doc for doc in vanished if doc.doc_id in still_vanished]
        return vanished, None if self._options.accept_deletions else recheck.hold_back_reason

    def _diff(self, origin: Origin, known_before: int | None = None) -> FolderDiff:
        return diff_folder(self._store, origin, self._options.home, known_before)

    def _url(self, origin: Origin) -> tuple[SourceLine, Origin]:
        report, after = self._reader.take_in(origin, ())
        return _line(origin, "synced", report), self._synced(after)

    def _synced(self, origin: Origin) -> Origin:
        return mark_synced(origin, self._store.clock.now_ms())

    def _failed(self, origin: Origin, error: SourceError) -> Origin:
        failures = origin.failures + 1
        wait_s = error.retry_after_s if isinstance(error, RateLimited) else None
        return msgspec.structs.replace(
            origin,
            failures=failures,
            last_error=error.reason,
            next_try_ms=next_try_ms(failures, wait_s, self._store.clock.now_ms()),
        )

    def _dry_run(self, origin: Origin) -> "SourceLine | _OpenFolderSync":
        if origin.kind == "url" or origin.kind in SITES:
            return _line(origin, "synced", reason="would be asked whether it changed")
        if origin.kind in FOLDERS:
            return self._begin_folder(origin)
        collection = self._reader.collect(origin)
        report = self._reader.take_members(collection)
        diff = diff_collection(self._store, collection)
        reason = (
            diff.hold_back_reason
            if collection.problem or not self._options.accept_deletions
            else None
        )
        outcome: SyncOutcome = "held_back" if reason else "synced"
        removed = 0 if reason else len(diff.vanished)
        return _line(origin, outcome, report, removed=removed, reason=reason)


def _is_due(origin: Origin, now_ms: int, wait_ms: int) -> bool:
    """Whether a source is due. A time in the future, from a wrong clock, does not delay it."""
    synced_ms = origin.synced_ms or 0
    if origin.next_try_ms > now_ms:
        return origin.next_try_ms > now_ms + RETRY_AFTER_S_MAX * 1000
    return synced_ms > now_ms or synced_ms + wait_ms <= now_ms


def _with_count(after: Origin, line: SourceLine) -> Origin:
    """The source as a sync leaves it, with how much of it could not be taken in."""
    return msgspec.structs.replace(after, files_failed=line.failed)


def _line(
    origin: Origin,
    outcome: SyncOutcome,
    report: AddReport | None = None,
    *,
    moved: int = 0,
    removed: int = 0,
    reason: str | None = None,
) -> SourceLine:
    counts = report or Tally().report()
    return SourceLine(
        origin_id=origin.origin_id,
        kind=origin.kind,
        location=shown_location(origin),
        outcome=outcome,
        scanned=counts.scanned,
        added=counts.added,
        updated=counts.updated,
        unchanged=counts.unchanged,
        resurrected=counts.resurrected,
        skipped=counts.skipped,
        failed=counts.failed,
        moved=moved,
        removed=removed,
        reason=reason,
        problems=counts.problems,
        mails=counts.mails,
        attachments=counts.attachments,
        records=counts.records,
    )
