"""How a cache catches up: from its place in the change log to the end, or anew from the store."""

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
from kb.search.index.lock import file_lock
from kb.store import chunks, log
from kb.store.codec import u64
from kb.store.kv import ReadTxn
from kb.store.store import Store

BATCH_NOS: Final = 20_000
_WINDOW_NOS: Final = 1_000


class CatchUp(Struct, frozen=True, kw_only=True):
    """What catching up came to."""

    watermark: int
    """Log sequence that the cache now holds; -1 where there is no cache."""
    applied: int
    """Passages looked at."""
    rebuilt: bool
    behind: int
    """Log entries that the cache does not hold; 0 when it is level with the store."""
    problem: str | None
    """Why it is behind or kept in memory only, for a person; None when all is well."""


class Place(Struct, frozen=True, kw_only=True):
    """A place in the log. `tail` sums the entry there: a restored store has another one."""

    watermark: int
    tail: str


class Cache(Protocol):
    """What the two caches have in common."""

    name: str
    lock_path: Path

    @property
    def has_moved(self) -> bool:
        """Whether what `refresh` took up is sound by its hashes, and a stat did not know it."""
        ...

    @property
    def in_memory(self) -> bool:
        """Whether it is held in memory alone."""
        ...

    def refresh(self) -> Place | None:
        """Take up what lies on disk; its place, or None where nothing sound lies there."""
        ...

    def wants(self, entry: LogEntry) -> bool:
        """Whether an entry concerns this cache."""
        ...

    def numbers(self, txn: ReadTxn) -> list[int]:
        """The numbers of every passage that it may have to hold, ascending."""
        ...

    def apply(self, store: Store, nos: list[int], place: Place) -> None:
        """Look at these passages again and stand at `place`, durably."""
        ...

    def rebuild(self, store: Store, nos: list[int], place: Place) -> None:
        """Make the cache anew of these passages, durably."""
        ...

    def mark_again(self) -> None:
        """Write down how a stat knows the files that were taken up, durably."""
        ...

    def hold_in_memory(self, store: Store, nos: list[int], place: Place) -> None:
        """Make the cache of these passages in memory alone."""
        ...


def catch_up(cache: Cache, store: Store, wait_s: float, *, anew: bool = False) -> CatchUp:
    """Bring a cache level with the store.

    Never raises for what happens to the cache's own files: the cache then stays as it was (in
    memory, where nothing can be written and nothing was there) and `problem` says why.
    """
    place = cache.refresh()
    if not anew and place and _is_level(store, place):
        if cache.has_moved:
            _settle(cache)
        return CatchUp(watermark=place.watermark, applied=0, rebuilt=False, behind=0, problem=None)
    applied, rebuilt, problem, locked_out = 0, False, None, False
    try:
        _make_folder(cache.lock_path.parent)
        with file_lock(cache.lock_path, wait_s):
            applied, rebuilt = _follow(cache, store, anew=anew)
    except StoreBusy as busy:
        # Its holder is about to finish what we would begin.
        problem, locked_out = str(busy), True
    except (OSError, CacheDamaged) as error:
        problem = f"the {cache.name} cache could not be written: {error}"
    place = cache.refresh()
    stale = place is None or (cache.in_memory and not _is_level(store, place))
    if stale and problem and not locked_out:
        nos, place = everything(cache, store)
        cache.hold_in_memory(store, nos, place)
    return _outcome(store, place, applied, rebuilt=rebuilt, problem=problem)


def _make_folder(folder: Path) -> None:
    """Make a cache's folder. Raises OSError for a link, which would have us write elsewhere."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    if folder.is_symlink():
        raise OSError(errno.ELOOP, "a link is no folder of a cache; remove it", str(folder))


def _settle(cache: Cache) -> None:
    """Spare the next process the hashes of a home that was copied; where that cannot be, let it."""
    with suppress(OSError, StoreBusy, CacheDamaged), file_lock(cache.lock_path, 0.0):
        cache.refresh()
        if cache.has_moved:
            cache.mark_again()


def _outcome(
    store: Store, place: Place | None, applied: int, *, rebuilt: bool, problem: str | None
) -> CatchUp:
    watermark = place.watermark if place else -1
    with store.read() as txn:
        behind = log.last_seq(txn) - max(watermark, 0)
    return CatchUp(
        watermark=watermark,
        applied=applied,
        rebuilt=rebuilt,
        behind=max(behind, 0),
        problem=problem,
    )


def _follow(cache: Cache, store: Store, *, anew: bool) -> tuple[int, bool]:
    """Catch up under the lock; returns passages looked at, and whether all were."""
    place = None if anew else cache.refresh()
    if place is not None and can_follow(store, place):
        try:
            return apply_log(cache, store, place), False
        except CacheDamaged:
            pass
    nos, place = everything(cache, store)
    cache.rebuild(store, nos, place)
    return len(nos) + apply_log(cache, store, place), True


def apply_log(cache: Cache, store: Store, place: Place) -> int:
    """Apply what came after `place`, where the cache stands; returns passages looked at."""
    applied = 0
    while True:
        with store.read() as txn:
            nos, following = next_batch(txn, cache, place)
        if following == place:
            return applied
        cache.apply(store, nos, following)
        applied += len(nos)
        place = following


def next_batch(txn: ReadTxn, cache: Cache, place: Place) -> tuple[list[int], Place]:
    """The passages touched after `place`, ascending, at least BATCH_NOS where there are more."""
    nos: set[int] = set()
    reached = place.watermark
    for seq, entry in log.since(txn, place.watermark):
        if cache.wants(entry):
            nos.update(entry.nos)
        reached = seq
        if len(nos) >= BATCH_NOS:
            break
    if reached == place.watermark:
        return [], place
    return sorted(nos), _place_at(txn, reached)


def _place_at(txn: ReadTxn, seq: int) -> Place:
    entry = txn.get("log", u64(seq)) if seq else None
    return Place(watermark=seq, tail=f"{zlib.crc32(entry):08x}" if entry else "")


def _is_level(store: Store, place: Place) -> bool:
    with store.read() as txn:
        return place.watermark == log.last_seq(txn) and _same_tail(txn, place)


def can_follow(store: Store, place: Place) -> bool:
    """Whether the log still holds all that came after, and is the log that was followed."""
    with store.read() as txn:
        first, last = log.first_seq(txn), log.last_seq(txn)
        return first - 1 <= place.watermark <= last and _same_tail(txn, place)


def _same_tail(txn: ReadTxn, place: Place) -> bool:
    now = _place_at(txn, place.watermark).tail
    # A truncated entry says nothing either way.
    return not now or not place.tail or now == place.tail


def everything(cache: Cache, store: Store) -> tuple[list[int], Place]:
    """All that a cache may have to hold, and the place in the log that goes with it."""
    with store.read() as txn:
        return cache.numbers(txn), _place_at(txn, log.last_seq(txn))


def windows(
    store: Store, nos: Iterable[int]
) -> Iterator[tuple[ReadTxn, list[tuple[int, tuple[Chunk, Doc] | None]]]]:
    """Passages by number with what is live of each, a bounded window to a read transaction.

    The transaction that comes with a window ends when the next one is asked for.
    """
    wanted = list(nos)
    for start in range(0, len(wanted), _WINDOW_NOS):
        with store.read() as txn:
            yield txn, [(no, _live(txn, no)) for no in wanted[start : start + _WINDOW_NOS]]


def _live(txn: ReadTxn, no: int) -> tuple[Chunk, Doc] | None:
    try:
        return chunks.get_active(txn, no)
    except StoreDamaged:
        # One record that cannot be read must not hide all others; `kb check` names it.
        return None
