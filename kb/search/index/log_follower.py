"""How an index follows the store's change log: it catches up, or is rebuilt from the store."""

import errno
import zlib
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, Protocol

from msgspec import Struct

from kb.errors import StoreBusy, StoreDamaged
from kb.model.doc import Doc
from kb.model.job import LogEntry
from kb.model.text import Chunk
from kb.search.index.files import CacheDamaged
from kb.store import chunks, log
from kb.store.codec import from_u64, u64
from kb.store.content.lock import file_lock
from kb.store.kv import ReadTxn
from kb.store.records import LOG
from kb.store.store import Store

BATCH_CHUNKS: Final = 20_000
_WINDOW_CHUNKS: Final = 2_000


class CatchUpReport(Struct, frozen=True, kw_only=True):
    """What a catch-up did, and how far the index is."""

    watermark: int
    """Sequence number of the last log entry that the index holds; -1 where there is no index."""
    applied: int
    """Chunks read."""
    rebuilt: bool
    behind: int
    """Log entries that the index does not hold; 0 when it is up to date."""
    problem: str | None
    """Why it is behind or in memory only, for a person; None when all is well."""


class LogPosition(Struct, frozen=True, kw_only=True):
    """A position in the log. `tail` is a checksum of its entry, to tell one log from another."""

    watermark: int
    tail: str


class LevelMark(Struct, frozen=True, kw_only=True):
    """An index at this position had all that the log had at a commit, by its number."""

    position: LogPosition
    commit: int


class FollowingIndex(Protocol):
    """An index that follows the log; the lexical and the dense index implement it."""

    name: str
    lock_path: Path
    level_at: "LevelMark | None"
    """Where it was last seen to be up to date."""

    @property
    def has_new_marks(self) -> bool:
        """Whether the files are sound by their hashes, but their stat is not the recorded one."""
        ...

    @property
    def in_memory(self) -> bool:
        """Whether the index exists only in memory."""
        ...

    def refresh(self) -> LogPosition | None:
        """Open what is on disk; returns its position, or None where nothing sound is there."""
        ...

    def concerns(self, entry: LogEntry) -> bool:
        """Whether a log entry matters to this index."""
        ...

    def chunk_numbers(self, txn: ReadTxn) -> list[int]:
        """The numbers of all chunks that it may have to hold, ascending."""
        ...

    def apply(self, store: Store, nos: list[int], position: LogPosition) -> None:
        """Read these chunks again and record `position`, durably."""
        ...

    def rebuild(self, store: Store, nos: list[int], position: LogPosition) -> None:
        """Build the index anew from these chunks, durably."""
        ...

    def record_marks(self) -> None:
        """Record the current stat of the open files, durably."""
        ...

    def build_in_memory(self, store: Store, nos: list[int], position: LogPosition) -> None:
        """Build the index from these chunks in memory only."""
        ...


def catch_up(
    index: FollowingIndex,
    store: Store,
    wait_s: float,
    *,
    rebuild: bool = False,
    commit: int | None = None,
) -> CatchUpReport:
    """Bring an index up to date with the store, or with a `commit` that the caller has seen.

    Never raises for the index's own files: on an error the index stays as it was, or is built in
    memory where there was none, and `problem` says why.
    """
    position = index.refresh()
    if not rebuild and position and _is_level(index, store, position, commit):
        if index.has_new_marks:
            _refresh_marks(index)
        _register(store, index.lock_path.parent, position.watermark, is_new=False)
        return CatchUpReport(
            watermark=position.watermark, applied=0, rebuilt=False, behind=0, problem=None
        )
    applied, rebuilt, problem, locked_out = 0, False, None, False
    try:
        _make_folder(index.lock_path.parent)
        with file_lock(index.lock_path, wait_s):
            applied, rebuilt = _catch_up_locked(index, store, rebuild=rebuild)
    except StoreBusy as busy:
        # The holder of the lock does the same work.
        problem, locked_out = str(busy), True
    except OSError as error:
        problem = f"the {index.name} cache could not be written: {error.strerror or error}"
    except CacheDamaged as error:
        problem = f"the {index.name} cache could not be written: {error}"
    position = index.refresh()
    stale = position is None or (index.in_memory and not is_up_to_date(store, position))
    if stale and problem and not locked_out:
        nos, position = all_chunks(index, store)
        index.build_in_memory(store, nos, position)
    if position is not None and not index.in_memory:
        _register(store, index.lock_path.parent, position.watermark, is_new=rebuilt)
    if position is not None and problem is None:
        return CatchUpReport(
            watermark=position.watermark, applied=applied, rebuilt=rebuilt, behind=0, problem=None
        )
    return _report(store, position, applied, rebuilt=rebuilt, problem=problem)


def _is_level(
    index: FollowingIndex, store: Store, position: LogPosition, commit: int | None
) -> bool:
    """Whether it is up to date; not asked again of a commit where it was."""
    if commit is not None and index.level_at == LevelMark(position=position, commit=commit):
        return True
    level = _level_commit(store, position)
    index.level_at = None if level is None else LevelMark(position=position, commit=level)
    return level is not None


def _make_folder(folder: Path) -> None:
    """Make an index's folder. Raises OSError for a link, which could lead anywhere."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if folder.is_symlink():
        raise OSError(errno.ELOOP, "the folder of a cache is a link; remove it", str(folder))


def _refresh_marks(index: FollowingIndex) -> None:
    """Record the marks of a copied home, to spare the next process the hashing; best effort."""
    with suppress(OSError, StoreBusy, CacheDamaged), file_lock(index.lock_path, 0.0):
        index.refresh()
        if index.has_new_marks:
            index.record_marks()


def _report(
    store: Store, position: LogPosition | None, applied: int, *, rebuilt: bool, problem: str | None
) -> CatchUpReport:
    watermark = position.watermark if position else -1
    with store.read() as txn:
        behind = log.last_seq(txn) - max(watermark, 0)
    return CatchUpReport(
        watermark=watermark,
        applied=applied,
        rebuilt=rebuilt,
        behind=max(behind, 0),
        problem=problem,
    )


def _catch_up_locked(index: FollowingIndex, store: Store, *, rebuild: bool) -> tuple[int, bool]:
    """Catch up under the lock; returns the chunks read, and whether the index was rebuilt."""
    position = None if rebuild else index.refresh()
    if position is not None:
        try:
            applied = apply_log(index, store, position)
        except CacheDamaged:
            applied = None
        if applied is not None:
            return applied, False
    nos, position = all_chunks(index, store)
    index.rebuild(store, nos, position)
    return len(nos) + (apply_log(index, store, position) or 0), True


def apply_log(index: FollowingIndex, store: Store, position: LogPosition) -> int | None:
    """Apply the log entries after `position`, the index's own; returns the chunks read.

    None if it is another log, or does not have all of them any more.
    """
    applied = 0
    while True:
        with store.read() as txn:
            if not can_follow(txn, position):
                return None
            nos, next_position = next_batch(txn, index, position)
            is_end = next_position.watermark == log.last_seq(txn)
        if next_position == position:
            return applied
        index.apply(store, nos, next_position)
        applied += len(nos)
        position = next_position
        # What took long may have been overtaken meanwhile.
        if is_end and len(nos) <= _WINDOW_CHUNKS:
            return applied


def next_batch(
    txn: ReadTxn, index: FollowingIndex, position: LogPosition
) -> tuple[list[int], LogPosition]:
    """The chunks changed after `position`, ascending, in batches of at least BATCH_CHUNKS."""
    nos: set[int] = set()
    reached = position
    for key, stored in txn.scan("log", u64(position.watermark + 1)):
        entry = LOG.decode(key, stored)
        if index.concerns(entry):
            nos.update(entry.nos)
        reached = LogPosition(watermark=from_u64(key), tail=_tail(stored))
        if len(nos) >= BATCH_CHUNKS:
            break
    return sorted(nos), reached


def _position_at(txn: ReadTxn, seq: int) -> LogPosition:
    entry = txn.get("log", u64(seq)) if seq else None
    return LogPosition(watermark=seq, tail=_tail(entry) if entry else "")


def _tail(entry: bytes) -> str:
    return f"{zlib.crc32(entry):08x}"


def is_up_to_date(store: Store, position: LogPosition) -> bool:
    """Whether the log has no entry after `position`, and is the same log."""
    return _level_commit(store, position) is not None


def _level_commit(store: Store, position: LogPosition) -> int | None:
    """The newest commit, if the log has no entry after `position`, and is the same log."""
    with store.read() as txn:
        log.expect_end(txn, position.watermark)
        # Mostly nothing; where there is something, it is read next.
        txn.expect_scan("log", u64(position.watermark + 1))
        is_level = position.watermark == log.last_seq(txn) and _is_same_log(txn, position)
        return txn.last_txn() if is_level else None


def can_follow(txn: ReadTxn, position: LogPosition) -> bool:
    """Whether the log is the same and still holds all entries after `position`."""
    log.expect_end(txn, position.watermark)
    log.expect_since(txn, position.watermark)
    first, last = log.first_seq(txn), log.last_seq(txn)
    return first - 1 <= position.watermark <= last and _is_same_log(txn, position)


def _is_same_log(txn: ReadTxn, position: LogPosition) -> bool:
    now = _position_at(txn, position.watermark).tail
    # Where the entry was truncated there is nothing to compare.
    return not now or not position.tail or now == position.tail


def all_chunks(index: FollowingIndex, store: Store) -> tuple[list[int], LogPosition]:
    """All chunks that an index may have to hold, and the log position of this state."""
    with store.read() as txn:
        return index.chunk_numbers(txn), _position_at(txn, log.last_seq(txn))


def read_windows(
    store: Store, nos: Iterable[int]
) -> Iterator[tuple[ReadTxn, list[tuple[int, tuple[Chunk, Doc] | None]]]]:
    """Chunks by number with their doc, None where not live; one window per read transaction.

    The transaction of a window ends when the next window is requested.
    """
    numbers = list(nos)
    for start in range(0, len(numbers), _WINDOW_CHUNKS):
        window = numbers[start : start + _WINDOW_CHUNKS]
        with store.read() as txn:
            chunks.expect_active(txn, window)
            yield txn, [(no, _live_chunk(txn, no)) for no in window]


def _live_chunk(txn: ReadTxn, no: int) -> tuple[Chunk, Doc] | None:
    try:
        return chunks.get_active(txn, no)
    except StoreDamaged:
        # One unreadable record must not hide all others; `kb check` reports it.
        return None


def _register(store: Store, folder: Path, log_seq: int, *, is_new: bool) -> None:
    """Register the cache on a home that machines share."""
    if store.node:
        from kb.search.index.following import register

        register(store, folder, log_seq, is_new=is_new)
