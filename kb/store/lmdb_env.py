"""The environment on LMDB: one memory-mapped file with many readers and one writer."""

# Long because transactions, tables and the errors of one engine belong together.

import errno
import os
import threading
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from itertools import islice
from pathlib import Path
from typing import Final, cast

import lmdb

from kb.errors import KbError, ReadOnlyHome, StoreBusy, StoreDamaged, StoreFull, WrongProcess
from kb.model.failpoints import failpoint
from kb.store import pages
from kb.store.kv import KEY_BYTES_MAX, TABLES, ReadTxn, ToldTable, WriteTxn, check_key

# Sizes of the map, in address space: the file grows only with its data. The map is this large so
# that no process has to resize it; smaller sizes are tried if address space is limited.
_MAP_BYTES: Final = tuple(1 << bits for bits in (40, 36, 33, 30))
_READERS_MAX: Final = 510
# One byte longer than the longest key, so it is never found.
_NO_KEY: Final = bytes(KEY_BYTES_MAX + 1)
_NO_ROOM: Final = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
_CODES: Final = (*_NO_ROOM, errno.EIO, errno.EACCES, errno.EROFS, errno.EPERM)
_ROOM_PROBED_BYTES: Final = 1 << 20
# Without `buffers`, lmdb returns bytes; its annotations allow both.
_Pairs = Iterator[tuple[bytes, bytes]]


class _LmdbView:
    # A table is None if an older store lacks it and the environment is read-only.
    def __init__(self, txn: "lmdb.Transaction", dbs: dict[str, "lmdb._Database | None"]) -> None:
        self._live: lmdb.Transaction | None = txn
        self._dbs = dbs

    @property
    def _txn(self) -> "lmdb.Transaction":
        if self._live is None:
            raise ValueError("a transaction was used after its block had ended")
        return self._live

    def end(self) -> None:
        self._live = None

    def get(self, table: str, key: bytes) -> bytes | None:
        txn, db = self._txn, self._dbs[table]
        if db is None:
            return None
        # LMDB raises an error for an empty key; here it is a key that does not exist.
        return cast("bytes | None", txn.get(key or _NO_KEY, db=db))

    def get_many(self, table: str, keys: Sequence[bytes]) -> list[bytes | None]:
        return [self.get(table, key) for key in keys]

    def count(self, table: str) -> int:
        txn, db = self._txn, self._dbs[table]
        return int(txn.stat(db)["entries"]) if db is not None else 0

    def last_txn(self) -> int:
        return int(self._txn.id())

    def scan(
        self, table: str, start: bytes = b"", stop: bytes | None = None, *, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        db = self._dbs[table]
        if db is None:
            return
        with self._txn.cursor(db) as cursor:
            pairs = _backwards(cursor, start, stop) if reverse else _forwards(cursor, start, stop)
            for pair in pairs:
                yield pair
                # Raises if the transaction has ended, and its cursor with it.
                _ = self._txn

    def expect(self, table: str, keys: Iterable[bytes]) -> None:
        """Nothing: a look-up costs no round trip."""

    def expect_scan(
        self, table: str, start: bytes = b"", stop: bytes | None = None, *, reverse: bool = False
    ) -> None:
        """Nothing, as `expect`."""

    def scan_many(
        self, table: str, ranges: Sequence[tuple[bytes, bytes | None]], limit: int
    ) -> list[list[tuple[bytes, bytes]]]:
        return [list(islice(self.scan(table, start, stop), limit)) for start, stop in ranges]


class _LmdbTxn(_LmdbView):
    def put(self, table: str, key: bytes, value: bytes) -> None:
        check_key(key)
        self._txn.put(key, value, db=self._dbs[table])

    def delete(self, table: str, key: bytes) -> bool:
        return bool(self._txn.delete(key or _NO_KEY, db=self._dbs[table]))


def _forwards(
    cursor: "lmdb.Cursor", start: bytes, stop: bytes | None
) -> Iterator[tuple[bytes, bytes]]:
    if not (cursor.set_range(start) if start else cursor.first()):
        return
    for key, value in cast("_Pairs", cursor.iternext()):
        if stop is not None and key >= stop:
            return
        yield key, value


def _backwards(
    cursor: "lmdb.Cursor", start: bytes, stop: bytes | None
) -> Iterator[tuple[bytes, bytes]]:
    if stop is not None and cursor.set_range(stop):
        if not cursor.prev():
            return
    elif not cursor.last():
        return
    for key, value in cast("_Pairs", cursor.iterprev()):
        if key < start:
            return
        yield key, value


class LmdbEnvironment:
    """The LMDB environment in `folder`; created if missing, unless `read_only`."""

    def __init__(self, folder: Path, *, read_only: bool = False, locked: bool = True) -> None:
        """Open it. Raises StoreDamaged, ReadOnlyHome or StoreFull, never an lmdb error.

        Without `locked` no lock file is used, so nobody may write to the data file.
        """
        self._folder = folder
        self._data_file = folder / "data.mdb"
        self._pid = os.getpid()
        self._closed = False
        with self._translated_errors():
            shared = _shared_lmdb(folder, read_only=read_only, locked=locked)
        self._env, self._dbs = shared.env, shared.dbs
        # Also where nobody closes it; not at the end of the process, under busy threads.
        self._release = weakref.finalize(self, _release, shared, self._pid)
        self._release.atexit = False

    @contextmanager
    def read(self) -> Iterator[ReadTxn]:
        """A read transaction. Raises WrongProcess after a fork."""
        self._check_usable()
        with self._translated_errors(), self._begin(write=False) as txn:
            view = _LmdbView(txn, self._dbs)
            try:
                yield view
            finally:
                view.end()

    @contextmanager
    def write(self) -> Iterator[WriteTxn]:
        """The write transaction; durable (fsync) when the block has ended.

        Raises StoreFull, which leaves the previous state intact, and WrongProcess after a fork.
        """
        self._check_usable()
        with self._translated_errors():
            txn = self._begin(write=True)
            view = _LmdbTxn(txn, self._dbs)
            try:
                yield view
            except BaseException:
                txn.abort()
                raise
            finally:
                view.end()
            self._commit(txn)

    def _commit(self, txn: "lmdb.Transaction") -> None:
        try:
            failpoint("store.before_commit")
            txn.commit()
            failpoint("store.after_commit")
        except OSError as error:
            txn.abort()
            raise _errno_error(error.errno or 0, str(error), self._folder) from error
        # LMDB may count pages that it did not write; padding keeps the file from looking truncated.
        with suppress(OSError):
            pages.pad(self._data_file, self.size_bytes())

    def _begin(self, *, write: bool) -> "lmdb.Transaction":
        try:
            return self._env.begin(write=write)
        except lmdb.MapResizedError:
            # A process with more address space made the file larger than our map.
            self._env.set_mapsize(0)
            return self._env.begin(write=write)

    def size_bytes(self) -> int:
        """Bytes of the data file that hold pages."""
        self._check_usable()
        info, stat = self._env.info(), self._env.stat()
        return int((info["last_pgno"] + 1) * stat["psize"])

    def last_txn(self) -> int:
        """The number of the newest committed transaction."""
        self._check_usable()
        return int(self._env.info()["last_txnid"])

    def seen_txn(self) -> int:
        """The same: it is at hand."""
        return self.last_txn()

    def tell_of(self, table: ToldTable, wake: Callable[[], None]) -> None:
        """Nothing: it cannot tell."""

    def reap_readers(self) -> int:
        """Free the reader slots of dead processes; returns how many."""
        self._check_usable()
        return int(self._env.reader_check())

    def copy_to(self, folder: Path) -> None:
        """Write a snapshot without free pages into the empty `folder`."""
        self._check_usable()
        try:
            self._env.copy(str(folder), compact=True)
            with open(folder / "data.mdb", "rb") as copied:
                os.fsync(copied.fileno())
        except lmdb.Error as error:
            raise _copy_error(error, self._folder, folder) from error
        except OSError as error:
            raise _errno_error(error.errno or 0, str(error), folder) from error

    def close(self) -> None:
        """Close, except in a forked child: the environment belongs to the parent."""
        self._release()
        self._closed = True

    def _check_usable(self) -> None:
        if os.getpid() != self._pid:
            raise WrongProcess(place=self._folder, opened_by=self._pid)
        if self._closed:
            raise ValueError(f"the environment in {self._folder} is closed")

    @contextmanager
    def _translated_errors(self) -> Iterator[None]:
        try:
            yield
        except lmdb.Error as error:
            raise _translate_error(error, self._folder) from error


class _SharedEnvironment:
    """An environment and its tables, opened once for all of a process that open it alike.

    While it is open nobody may open a table of it again: LMDB would wait for the writer, and the
    writer, if it is a thread of this process, for the interpreter.
    """

    def __init__(self, folder: Path, *, read_only: bool, locked: bool) -> None:
        self.users = 0
        self.env = _open_lmdb(folder, read_only=read_only, locked=locked)
        try:
            self._check_length(folder / "data.mdb")
            self.dbs = {name: self._table(name, read_only) for name in TABLES}
        except BaseException:
            self.env.close()
            raise

    def _table(self, name: str, read_only: bool) -> "lmdb._Database | None":
        try:
            return self.env.open_db(name.encode(), create=not read_only)
        except lmdb.NotFoundError:
            # Every version of kb makes this table: without it the file is not a store of kb.
            if name == "meta":
                raise
            return None

    def _check_length(self, data_file: Path) -> None:
        with self.env.begin() as txn:
            if pages.tree_is_truncated(data_file, txn.id()):
                raise StoreDamaged("the data file is cut short", place=data_file)


# What is open in this process: LMDB opens no data file twice in one.
_OPEN: Final[dict[tuple[object, ...], _SharedEnvironment]] = {}
# Reentrant: what nobody closed may be collected, and released, at any moment.
_OPEN_LOCK: Final = threading.RLock()


def _shared_lmdb(folder: Path, *, read_only: bool, locked: bool) -> _SharedEnvironment:
    """The environment in a folder, the same one for all of this process that open it alike."""
    with _OPEN_LOCK:
        # After a fork those of the parent, which this process must not use; the parent keeps its.
        for key in [key for key in list(_OPEN) if key[0] != os.getpid()]:
            _OPEN.pop(key).env.close()
        shared = _OPEN.get(_key(folder, read_only, locked))
        if shared is None:
            shared = _SharedEnvironment(folder, read_only=read_only, locked=locked)
            _OPEN[_key(folder, read_only, locked)] = shared
        shared.users += 1
        return shared


def _release(shared: _SharedEnvironment, pid: int) -> None:
    """Close an environment with the last who opened it, in the process that did."""
    if os.getpid() != pid:
        return
    with _OPEN_LOCK:
        shared.users -= 1
        if not shared.users:
            for key in [key for key, other in list(_OPEN.items()) if other is shared]:
                del _OPEN[key]
            shared.env.close()


def _key(folder: Path, read_only: bool, locked: bool) -> tuple[object, ...]:
    # By the file, which another may replace, and by the process: a child has to open its own.
    try:
        status = os.stat(folder / "data.mdb")
    except OSError:
        return os.getpid(), folder, read_only, locked
    return os.getpid(), status.st_dev, status.st_ino, read_only, locked


def _open_lmdb(folder: Path, *, read_only: bool, locked: bool) -> "lmdb.Environment":
    last: Exception | None = None
    for map_bytes in _MAP_BYTES:
        try:
            return lmdb.open(
                str(folder),
                map_size=map_bytes,
                max_dbs=len(TABLES) + 8,
                max_readers=_READERS_MAX,
                readonly=read_only,
                lock=locked and not (read_only and not os.access(folder, os.W_OK)),
                writemap=False,
                readahead=True,
            )
        except (lmdb.MemoryError, MemoryError) as error:
            last = error
    raise StoreFull(f"no address space to map the store ({last})", place=folder)


@contextmanager
def pin_snapshot(folder: Path) -> Iterator[int | None]:
    """Hold a read transaction, which keeps its pages from being reused; yields its number.

    Yields None if LMDB cannot open the file. Reads no page but the two roots.
    """
    with ExitStack() as stack:
        number = None
        with suppress(lmdb.Error, StoreFull):
            env = stack.enter_context(_open_lmdb(folder, read_only=True, locked=True))
            number = int(stack.enter_context(env.begin()).id())
        yield number


def _translate_error(error: "lmdb.Error", place: Path) -> KbError:
    match error:
        case lmdb.MapFullError() | lmdb.DiskError():
            return StoreFull(str(error), place=place)
        case lmdb.ReadersFullError() | lmdb.LockError():
            return StoreBusy(place=place)
        case lmdb.ReadonlyError():
            return ReadOnlyHome(os.strerror(errno.EACCES), place=place)
        case _:
            text = str(error)
            named = (code for code in _CODES if os.strerror(code) in text)
            return _errno_error(next(named, 0), text, place)


def _copy_error(error: "lmdb.Error", folder: Path, to: Path) -> KbError:
    """The error of a failed copy: most often the target has no room or cannot be written."""
    translated = _translate_error(error, to)
    if not isinstance(translated, StoreDamaged):
        return translated
    # After a partial write LMDB reports an invalid argument, although the disk is full.
    if _is_disk_full(to):
        detail = "the disk is full, or the size of files is limited (ulimit -f)"
        return StoreFull(detail, place=to)
    return StoreDamaged(str(error), place=folder)


def _errno_error(code: int, text: str, place: Path) -> KbError:
    # LMDB reports EIO for a short write, which is what a full disk causes.
    if code == errno.EFBIG:
        return StoreFull(f"{text} (ulimit -f limits the size of files)", place=place)
    if code in _NO_ROOM or (code == errno.EIO and _is_disk_full(place)):
        return StoreFull(text, place=place)
    if code in (errno.EACCES, errno.EROFS, errno.EPERM):
        return ReadOnlyHome(os.strerror(code), place=place)
    return StoreDamaged(text, place=place)


def _is_disk_full(folder: Path) -> bool:
    """Whether there is no room for a file slightly longer than the data file."""
    probe = folder / f"probe-{os.getpid()}"
    try:
        size_bytes = (folder / "data.mdb").stat().st_size
        fd = os.open(probe, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        try:
            os.posix_fallocate(fd, size_bytes, _ROOM_PROBED_BYTES)
        finally:
            os.close(fd)
            probe.unlink()
    except OSError as error:
        return error.errno in _NO_ROOM
    return False
