"""`sync-all`: every due source is brought level, one after the other, each on its own account."""

from collections.abc import Callable
from pathlib import Path
from typing import Final, Literal

import msgspec
from msgspec import Struct

from kb.errors import Gone, RateLimited, SourceError
from kb.model.origin import Origin
from kb.store.store import Store
from kb.sync.folder import Survey, follow_moves, remove, survey
from kb.sync.origins import give_back, hold, listed, resolve
from kb.sync.report import AddReport, Problem, Tally
from kb.sync.url import next_try_ms

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


# Takes one source in and says what became of it, and what the source is known by now.
TakeIn = Callable[[Origin], tuple[AddReport, Origin]]


class Syncer:
    """Brings sources level; `take_in` reads one source into the store, as `add` does."""

    def __init__(self, store: Store, take_in: TakeIn, options: SyncOptions) -> None:
        self._store = store
        self._take_in = take_in
        self._options = options

    def run(self, on_line: Callable[[SourceLine], None] | None = None) -> SyncReport:
        """Sync what is due. One source's failure is its own; a full disk ends the run."""
        lines: list[SourceLine] = []
        for origin in self._due():
            line = self._foresee(origin) if self._options.dry_run else self._sync(origin)
            lines.append(line)
            if on_line:
                on_line(line)
        return summed(lines)

    def _due(self) -> list[Origin]:
        now_ms = self._store.clock.now_ms()
        with self._store.read() as txn:
            if self._options.only is not None:
                return [resolve(txn, self._options.only)]
            origins = listed(txn)
        wait_ms = self._options.interval_min * _MINUTE_MS
        due = [
            origin
            for origin in origins
            if origin.next_try_ms <= now_ms and (origin.synced_ms or 0) + wait_ms <= now_ms
        ]
        # The longest unseen first, so that --max serves all of them in turn.
        due.sort(key=lambda origin: (origin.tried_ms or 0, origin.location))
        return due[: self._options.sources_max]

    def _sync(self, origin: Origin) -> SourceLine:
        held = hold(self._store, origin.origin_id)
        if held is None:
            return _line(origin, "busy", reason="another process is syncing it")
        after = held
        try:
            line, after = self._folder(held) if held.kind == "folder" else self._url(held)
        except Gone as error:
            after = _failed(held, error, self._store.clock.now_ms())
            since_ms = held.gone_since_ms or self._store.clock.now_ms()
            after = msgspec.structs.replace(after, gone_since_ms=since_ms)
            line = _line(held, "gone", reason=f"{error.reason}; its doc is kept")
        except SourceError as error:
            after = _failed(held, error, self._store.clock.now_ms())
            line = _line(held, "failed", reason=error.reason)
        finally:
            give_back(self._store, after)
        return line

    def _folder(self, origin: Origin) -> tuple[SourceLine, Origin]:
        root = Path(origin.location)
        found = survey(self._store, root, origin.extensions, self._options.home)
        if not root.is_dir():
            reason = found.held_back or "the folder is not there"
            return _line(origin, "held_back", reason=reason), origin
        moved = follow_moves(self._store, found, self._options.file_bytes_max)
        report, after = self._take_in(origin)
        left = [doc for doc in found.vanished if doc.doc_id not in set(moved)]
        held_back = self._held_back(found, len(left), origin)
        removed = remove(self._store, left) if held_back is None else []
        line = _line(
            origin,
            "held_back" if held_back else "synced",
            report,
            moved=len(moved),
            removed=len(removed),
            reason=held_back,
        )
        return line, self._level(after)

    def _held_back(self, found: Survey, vanished: int, origin: Origin) -> str | None:
        """The survey's word, judged again without what has only moved."""
        if self._options.accept_deletions or not vanished or found.held_back is None:
            return None
        again = survey(self._store, Path(origin.location), origin.extensions, self._options.home)
        return again.held_back

    def _url(self, origin: Origin) -> tuple[SourceLine, Origin]:
        report, after = self._take_in(origin)
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

    def _foresee(self, origin: Origin) -> SourceLine:
        if origin.kind == "url":
            return _line(origin, "synced", reason="would be asked whether it changed")
        root = Path(origin.location)
        found = survey(self._store, root, origin.extensions, self._options.home)
        report, _ = self._take_in(origin)
        outcome: SyncOutcome = "held_back" if found.held_back else "synced"
        return _line(origin, outcome, report, removed=len(found.vanished), reason=found.held_back)


def _failed(origin: Origin, error: SourceError, now_ms: int) -> Origin:
    failures = origin.failures + 1
    wait_s = error.retry_after_s if isinstance(error, RateLimited) else None
    return msgspec.structs.replace(
        origin,
        failures=failures,
        last_error=error.reason,
        next_try_ms=next_try_ms(failures, wait_s, now_ms),
    )


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
