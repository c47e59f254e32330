"""`sync-all`: every due source is brought level, one after the other, each on its own account."""

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, Literal, Protocol, assert_never

import msgspec
from msgspec import Struct

from kb.errors import Gone, NotFound, RateLimited, SourceError
from kb.failpoints import failpoint
from kb.model.ids import DocId
from kb.model.origin import FOLDERS, Origin
from kb.store.store import Store
from kb.sync.collection import Collection, gap
from kb.sync.fetch import RETRY_AFTER_S_MAX
from kb.sync.folder import Survey, follow, moves, not_there, remove, survey
from kb.sync.origins import (
    folder_of,
    give_back,
    hold,
    listed,
    register,
    resolve,
    unregister,
)
from kb.sync.report import AddReport, Problem, Tally
from kb.sync.url import next_try_ms
from kb.sync.walk import Found, Passed

SyncOutcome = Literal["synced", "failed", "gone", "held_back", "busy"]

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


class SourceLine(Struct, frozen=True, kw_only=True):
    """What became of one source; scanned is the sum of the six outcomes behind it."""

    origin_id: str
    kind: str
    location: str
    outcome: SyncOutcome
    scanned: int = 0
    added: int = 0
    updated: int = 0
    unchanged: int = 0
    resurrected: int = 0
    skipped: int = 0
    failed: int = 0
    moved: int = 0
    """Of those scanned: recognised in a new place."""
    removed: int = 0
    """Docs whose source is gone; not among those scanned."""
    reason: str | None = None
    problems: tuple[Problem, ...] = ()


class SyncReport(Struct, frozen=True, kw_only=True):
    """The sources' lines, and their sums."""

    sources: tuple[SourceLine, ...]
    scanned: int
    added: int
    updated: int
    unchanged: int
    resurrected: int
    skipped: int
    failed: int
    moved: int
    removed: int


class Reach(Protocol):
    """How sources are read into the store."""

    def take_in(self, origin: Origin, seen: Sequence[Found | Passed]) -> tuple[AddReport, Origin]:
        """Take in a page, or what a walk brought of a folder, as `add` does.

        Returns what became of it, and what the source is known by now.
        """
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


class Syncer:
    """Brings sources level."""

    def __init__(self, store: Store, reach: Reach, options: SyncOptions) -> None:
        self._store = store
        self._reach = reach
        self._options = options

    def run(self, on_line: Callable[[SourceLine], None] | None = None) -> SyncReport:
        """Sync what is due. One source's failure is its own; a full disk ends the run."""
        lines: list[SourceLine] = []
        self._register_declared()
        for origin in self._due():
            line = self._foresee(origin) if self._options.dry_run else self._sync(origin)
            lines.append(line)
            if on_line:
                on_line(line)
        return summed(lines)

    def _register_declared(self) -> None:
        with self._store.read() as txn:
            known = {origin.origin_id for origin in listed(txn)}
        for origin in self._reach.declared():
            if origin.origin_id not in known and not self._options.dry_run:
                register(self._store, origin)

    def _due(self) -> list[Origin]:
        now_ms = self._store.clock.now_ms()
        with self._store.read() as txn:
            if self._options.only is not None:
                return [resolve(txn, self._options.only)]
            origins = listed(txn)
        wait_ms = self._options.interval_min * _MINUTE_MS
        due = [origin for origin in origins if _is_due(origin, now_ms, wait_ms)]
        # The longest unseen first, so that --max serves all of them in turn.
        due.sort(key=lambda origin: (origin.tried_ms or 0, origin.location))
        return due[: self._options.sources_max]

    def _sync(self, origin: Origin) -> SourceLine:
        held = hold(self._store, origin)
        if held is None:
            return _line(origin, "busy", reason="another process is syncing it, or just has")
        after = held
        try:
            failpoint("sync.after_hold")
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
            give_back(self._store, after)
        return line

    def _level_one(self, origin: Origin) -> tuple[SourceLine, Origin]:
        match origin.kind:
            case "folder" | "notebook":
                return self._folder(origin)
            case "url":
                return self._url(origin)
            case "topic" | "pack" | "entries":
                return self._collection(origin)
            case _:
                assert_never(origin.kind)

    def _collection(self, origin: Origin) -> tuple[SourceLine, Origin]:
        named = self._reach.collect(origin)
        report = self._reach.take_members(named)
        found = gap(self._store, named)
        held = found.held_back if named.amiss or not self._options.accept_deletions else None
        removed = [] if held else remove(self._store, found.vanished)
        outcome: SyncOutcome = "held_back" if held else "synced"
        line = _line(origin, outcome, report, removed=len(removed), reason=held)
        if named.is_gone:
            with suppress(NotFound):
                unregister(self._store, origin.origin_id)
        if held:
            return line, msgspec.structs.replace(origin, last_error=held)
        return line, self._level(origin)

    def _folder(self, origin: Origin) -> tuple[SourceLine, Origin]:
        found = self._survey(origin)
        recognised = moves(self._store, found, self._options.file_bytes_max)
        moved = follow(self._store, recognised)
        report, after = self._reach.take_in(origin, found.seen)
        removed: list[DocId] = []
        held_back = not_there(folder_of(origin))
        if len(found.vanished) > len(moved):
            # Looked at again: what has come back since, or was never gone, stays.
            again = self._survey(origin, found.known)
            still = {doc.doc_id for doc in again.vanished}
            left = [doc for doc in found.vanished if doc.doc_id in still]
            held_back = again.held_back
            if held_back is None or self._options.accept_deletions:
                removed = remove(self._store, left)
                held_back = None
        line = _line(
            origin,
            "held_back" if held_back else "synced",
            report,
            moved=len(moved),
            removed=len(removed),
            reason=held_back,
        )
        if held_back:
            return line, msgspec.structs.replace(after, last_error=held_back)
        return line, self._level(after)

    def _survey(self, origin: Origin, known_before: int | None = None) -> Survey:
        return survey(self._store, origin, self._options.home, known_before)

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

    def _foresee(self, origin: Origin) -> SourceLine:
        if origin.kind == "url":
            return _line(origin, "synced", reason="would be asked whether it changed")
        if origin.kind not in FOLDERS:
            named = self._reach.collect(origin)
            report = self._reach.take_members(named)
            found = gap(self._store, named)
            held = found.held_back if named.amiss or not self._options.accept_deletions else None
            outcome: SyncOutcome = "held_back" if held else "synced"
            removed = 0 if held else len(found.vanished)
            return _line(origin, outcome, report, removed=removed, reason=held)
        walked = self._survey(origin)
        moved = len(moves(self._store, walked, self._options.file_bytes_max))
        report, _ = self._reach.take_in(origin, walked.seen)
        # What has moved is looked at in its new place, and is unchanged there.
        report = msgspec.structs.replace(
            report, added=report.added - moved, unchanged=report.unchanged + moved
        )
        vanished = len(walked.vanished) - moved
        held_back = walked.held_back if vanished or not walked.seen else None
        if self._options.accept_deletions:
            held_back = None
        return _line(
            origin,
            "held_back" if held_back else "synced",
            report,
            moved=moved,
            removed=0 if held_back else vanished,
            reason=held_back,
        )


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


def summed(lines: list[SourceLine]) -> SyncReport:
    """The report over all sources."""
    names = [name for name in SyncReport.__struct_fields__ if name != "sources"]
    sums = {name: sum(getattr(line, name) for line in lines) for name in names}
    return SyncReport(sources=tuple(lines), **sums)
