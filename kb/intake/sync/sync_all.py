"""`sync-all`: every due source is brought level, one after the other, each on its own account."""

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
    list_origins,
    origin_folder,
    register,
    release,
    resolve_origin,
    unregister,
)
from kb.intake.sync.report import AddReport, SourceLine, SyncOutcome, SyncReport, Tally
from kb.intake.sync.url import next_try_ms
from kb.intake.sync.walk import SkippedFile, WalkedFile
from kb.model.doc import Doc
from kb.model.failpoints import failpoint
from kb.model.ids import DocId
from kb.model.origin import FOLDERS, Origin
from kb.store.store import Store

_MINUTE_MS: Final = 60_000


class SyncOptions(Struct, frozen=True, kw_only=True):
    """What was asked for."""

    interval_min: int = 20
    sources_max: int | None = None
    only: str | None = None
    """Id or place of the one source to sync, due or not."""
    dry_run: bool = False
    accept_deletions: bool = False
    file_bytes_max: int = 64 << 20
    home: Path | None = None


class SourceReader(Protocol):
    """How sources are read into the store."""

    def take_in(
        self, origin: Origin, seen: Sequence[WalkedFile | SkippedFile]
    ) -> tuple[AddReport, Origin]:
        """Take in a page, or what a walk brought of a folder, as `add` does.

        Returns what became of it, and what the source is known by now.
        """
        ...

    def title_of(self, path: Path, data: bytes) -> str | None:
        """What a file of these bytes is called where it is now; None where it cannot be read."""
        ...

    def declared(self) -> list[Origin]:
        """The sources that the settings name, registered or not."""
        ...

    def collect(self, origin: Origin) -> Collection:
        """What a topic, a pack or a folder of entries names now."""
        ...

    def take_members(self, collection: Collection) -> AddReport:
        """Take in what a collection names."""
        ...


class _OpenFolderSync(Struct, frozen=True, kw_only=True):
    """A folder that is held: all that is there was taken in, and nothing has been removed yet."""

    held: Origin
    after: Origin
    found: FolderDiff
    moved: int
    report: AddReport


class Syncer:
    """Brings sources level."""

    def __init__(self, store: Store, reach: SourceReader, options: SyncOptions) -> None:
        self._store = store
        self._reach = reach
        self._options = options
        self._moved: set[DocId] = set()
        """Docs that were found in another place by this run."""

    def run(self, on_line: Callable[[SourceLine], None] | None = None) -> SyncReport:
        """Sync what is due. One source's failure is its own; a full disk ends the run.

        What is gone from one folder may be in another one: nothing is removed from a folder
        before all of them were gone through.
        """
        lines: list[SourceLine] = []
        begun: list[_OpenFolderSync] = []

        def say(line: SourceLine) -> None:
            lines.append(line)
            if on_line:
                on_line(line)

        self._register_declared()
        try:
            for origin in self._due():
                now = self._foresee(origin) if self._options.dry_run else self._sync(origin)
                if isinstance(now, SourceLine):
                    say(now)
                else:
                    begun.append(now)
                    if not now.found.vanished:
                        say(self._end(begun, len(begun) - 1))
            while begun:
                say(self._end(begun, 0))
        finally:
            if not self._options.dry_run:
                for one in begun:
                    release(self._store, one.after)
        return total_report(lines)

    def _end(self, begun: list[_OpenFolderSync], number: int) -> SourceLine:
        line, after = self._end_folder(begun[number])
        begun.pop(number)
        if not self._options.dry_run:
            release(self._store, after)
        return line

    def _register_declared(self) -> None:
        with self._store.read() as txn:
            known = {origin.origin_id for origin in list_origins(txn)}
        for origin in self._reach.declared():
            if origin.origin_id not in known and not self._options.dry_run:
                register(self._store, origin)

    def _due(self) -> list[Origin]:
        now_ms = self._store.clock.now_ms()
        with self._store.read() as txn:
            if self._options.only is not None:
                return [resolve_origin(txn, self._options.only)]
            origins = list_origins(txn)
        wait_ms = self._options.interval_min * _MINUTE_MS
        due = [origin for origin in origins if _is_due(origin, now_ms, wait_ms)]
        # The longest unseen first, so that --max serves all of them in turn.
        due.sort(key=lambda origin: (origin.tried_ms or 0, origin.location))
        return due[: self._options.sources_max]

    def _sync(self, origin: Origin) -> "SourceLine | _OpenFolderSync":
        held = acquire(self._store, origin)
        if held is None:
            return _line(origin, "busy", reason="another process is syncing it, or just has")
        after: Origin | None = held
        try:
            failpoint("sync.after_hold")
            if held.kind in FOLDERS:
                begun = self._begin_folder(held)
                after = None
                return begun
            line, after = self._level_one(held)
        except Gone as error:
            after = self._failed(held, error)
            since_ms = held.gone_since_ms or self._store.clock.now_ms()
            after = msgspec.structs.replace(after, gone_since_ms=since_ms)
            line = _line(held, "gone", reason=f"{error.reason}; its doc is kept")
        except SourceError as error:
            after = self._failed(held, error)
            line = _line(held, "failed", reason=error.reason)
        finally:
            if after is not None:
                release(self._store, after)
        return line

    def _level_one(self, origin: Origin) -> tuple[SourceLine, Origin]:
        return self._url(origin) if origin.kind == "url" else self._collection(origin)

    def _collection(self, origin: Origin) -> tuple[SourceLine, Origin]:
        named = self._reach.collect(origin)
        report = self._reach.take_members(named)
        found = diff_collection(self._store, named)
        held = found.hold_back_reason if named.amiss or not self._options.accept_deletions else None
        removed = [] if held else tombstone_vanished(self._store, found.vanished)
        outcome: SyncOutcome = "held_back" if held else "synced"
        line = _line(origin, outcome, report, removed=len(removed), reason=held)
        if named.is_gone:
            with suppress(NotFound):
                unregister(self._store, origin.origin_id)
        if held:
            return line, msgspec.structs.replace(origin, last_error=held)
        return line, self._level(origin)

    def _begin_folder(self, origin: Origin) -> _OpenFolderSync:
        """Take in what is there, or with a dry run say what would be."""
        found = self._survey(origin)
        recognised = detect_moves(
            self._store,
            found.fresh,
            found.lost,
            self._options.file_bytes_max,
            to=origin,
            title_of=self._reach.title_of,
        )
        moved = self._follow(recognised)
        self._moved.update(moved)
        report, after = self._reach.take_in(origin, found.seen)
        if self._options.dry_run:
            # What has moved is looked at in its new place, and is unchanged there.
            report = msgspec.structs.replace(
                report,
                added=report.added - len(moved),
                unchanged=report.unchanged + len(moved),
            )
        return _OpenFolderSync(
            held=origin, after=after, found=found, moved=len(moved), report=report
        )

    def _follow(self, recognised: list[DetectedMove]) -> list[DocId]:
        if self._options.dry_run:
            return [one.doc.doc_id for one in recognised]
        return apply_moves(self._store, recognised)

    def _end_folder(self, begun: _OpenFolderSync) -> tuple[SourceLine, Origin]:
        """Remove what is nowhere any more, unless so much is gone that it must be an accident."""
        left, held_back = self._left_over(begun)
        removed = 0 if held_back or not left else len(left)
        if removed and not self._options.dry_run:
            removed = len(tombstone_vanished(self._store, left))
        line = _line(
            begun.held,
            "held_back" if held_back else "synced",
            begun.report,
            moved=begun.moved,
            removed=removed,
            reason=held_back,
        )
        if held_back:
            return line, msgspec.structs.replace(begun.after, last_error=held_back)
        return line, self._level(begun.after)

    def _left_over(self, begun: _OpenFolderSync) -> tuple[list[Doc], str | None]:
        """Docs whose files are gone and nowhere else, and why they may not be removed."""
        found = begun.found
        left = [doc for doc in found.vanished if doc.doc_id not in self._moved]
        if self._options.dry_run:
            held_back = found.hold_back_reason if left or not found.seen else None
            return left, None if self._options.accept_deletions else held_back
        if not left:
            return left, unavailable_reason(origin_folder(begun.held))
        # Looked at again: what has come back since, or was never gone, stays.
        again = self._survey(begun.held, found.known)
        still = {doc.doc_id for doc in again.vanished}
        left = [doc for doc in left if doc.doc_id in still]
        return left, None if self._options.accept_deletions else again.hold_back_reason

    def _survey(self, origin: Origin, known_before: int | None = None) -> FolderDiff:
        return diff_folder(self._store, origin, self._options.home, known_before)

    def _url(self, origin: Origin) -> tuple[SourceLine, Origin]:
        report, after = self._reach.take_in(origin, ())
        return _line(origin, "synced", report), self._level(after)

    def _level(self, origin: Origin) -> Origin:
        now_ms = self._store.clock.now_ms()
        return msgspec.structs.replace(
            origin,
            synced_ms=now_ms,
            failures=0,
            last_error=None,
            next_try_ms=0,
            gone_since_ms=None,
        )

    def _failed(self, origin: Origin, error: SourceError) -> Origin:
        failures = origin.failures + 1
        wait_s = error.retry_after_s if isinstance(error, RateLimited) else None
        return msgspec.structs.replace(
            origin,
            failures=failures,
            last_error=error.reason,
            next_try_ms=next_try_ms(failures, wait_s, self._store.clock.now_ms()),
        )

    def _foresee(self, origin: Origin) -> "SourceLine | _OpenFolderSync":
        if origin.kind == "url":
            return _line(origin, "synced", reason="would be asked whether it changed")
        if origin.kind in FOLDERS:
            return self._begin_folder(origin)
        named = self._reach.collect(origin)
        report = self._reach.take_members(named)
        found = diff_collection(self._store, named)
        held = found.hold_back_reason if named.amiss or not self._options.accept_deletions else None
        outcome: SyncOutcome = "held_back" if held else "synced"
        removed = 0 if held else len(found.vanished)
        return _line(origin, outcome, report, removed=removed, reason=held)


def _is_due(origin: Origin, now_ms: int, wait_ms: int) -> bool:
    """A time that cannot be, from before the clock was put right, holds nothing up."""
    synced_ms = origin.synced_ms or 0
    if origin.next_try_ms > now_ms:
        return origin.next_try_ms > now_ms + RETRY_AFTER_S_MAX * 1000
    return synced_ms > now_ms or synced_ms + wait_ms <= now_ms


def _line(
    origin: Origin,
    outcome: SyncOutcome,
    report: AddReport | None = None,
    *,
    moved: int = 0,
    removed: int = 0,
    reason: str | None = None,
) -> SourceLine:
    done = report or Tally().report()
    return SourceLine(
        origin_id=origin.origin_id,
        kind=origin.kind,
        location=origin.location,
        outcome=outcome,
        scanned=done.scanned,
        added=done.added,
        updated=done.updated,
        unchanged=done.unchanged,
        resurrected=done.resurrected,
        skipped=done.skipped,
        failed=done.failed,
        moved=moved,
        removed=removed,
        reason=reason,
        problems=done.problems,
    )


def total_report(lines: list[SourceLine]) -> SyncReport:
    """The report over all sources."""
    names = [name for name in SyncReport.__struct_fields__ if name != "sources"]
    sums = {name: sum(getattr(line, name) for line in lines) for name in names}
    return SyncReport(sources=tuple(lines), **sums)
