"""Filling a home: a folder that nobody sees before it is whole, or a database."""

import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, Protocol, TypeVar

from msgspec import Struct

from kb.errors import StoreBusy, StoreDamaged, UsageError
from kb.knowledge.notebook.repair import renew_index
from kb.store import home_files
from kb.store.bucket.bucket import Bucket
from kb.store.bucket.place import BUCKET_WORD, place_of
from kb.store.bucket_content import head_of, is_large, new_object
from kb.store.codec import RecordTable
from kb.store.content.layout import HomePaths
from kb.store.keys import lsid_key
from kb.store.kv import ReadTxn, WriteTxn
from kb.store.lmdb_env import LmdbEnvironment
from kb.store.meta import FORMAT_UNFINISHED, MACHINE, get_word, set_word, word_key
from kb.store.records import CONTENT, HOME_FILE_PARTS, HOME_FILES, META, ContentPart, HomeFile
from kb.store.store import Store
from kb.store.stored_content import parts_of
from kb.upkeep.transfer.holdings import TABLES_OF_RECORDS, ContentBytes
from kb.upkeep.transfer.reading import is_extra, is_inside

T = TypeVar("T")

_BATCH_ROWS: Final = 4_000
_BATCH_BYTES: Final = 4 << 20
_NEW_FILE: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
_FORMAT_ROW: Final = (META.name, b"word:format")
_MACHINE_ROW: Final = (META.name, b"word:machine")
_BUCKET_ROW: Final = (META.name, word_key(BUCKET_WORD))
# What `finish` writes, and what each home has for itself.
_OWN_ROWS: Final = (_FORMAT_ROW, _MACHINE_ROW, _BUCKET_ROW)
Pair = tuple[bytes, bytes]


class _RowChange(Struct, frozen=True):
    table: str
    key: bytes
    value: bytes | None
    """None removes it."""


class TransferTarget(Protocol):
    """A home that is being filled. It counts as one when `finish` has ended, and not before."""

    def put_rows(self, table: str, rows: Iterable[Pair]) -> Iterator[int]:
        """Make a table hold these rows and no others; yields how many of them are dealt with."""
        ...

    def put_contents(self, contents: Iterable[ContentBytes]) -> int:
        """Write content, unless it is there; returns the bytes of what was new."""
        ...

    def put_file(self, file: HomeFile, pieces: Iterable[bytes]) -> None:
        """Write a file or a link of the home. Raises StoreDamaged for a path that is none."""
        ...

    def finish(self, format_: str, made_on: str) -> None:
        """Make all of it durable, as a store of this format, whose files are a machine's."""
        ...


class TransferFolder:
    """A home in a folder, which the caller renames when it is finished."""

    def __init__(self, folder: Path, *, is_backup: bool = False) -> None:
        """A backup remembers which machine has the files of a home that machines share."""
        self._left_out = (_BUCKET_ROW,) if is_backup else (_BUCKET_ROW, _MACHINE_ROW)
        self._paths = HomePaths(folder)
        self._paths.make()
        self._env = LmdbEnvironment(self._paths.store)
        self._links: list[HomeFile] = []

    def put_rows(self, table: str, rows: Iterable[Pair]) -> Iterator[int]:
        """Write the rows, which are in key order."""
        wanted = (row for row in rows if (table, row[0]) not in self._left_out)
        for batch in _batches(_RowChange(table, key, value) for key, value in wanted):
            with self._env.write() as txn:
                _apply(txn, batch)
            yield len(batch)

    def put_contents(self, contents: Iterable[ContentBytes]) -> int:
        """Write content files. Raises StoreDamaged for a path that leads out of the home."""
        written = 0
        for content in contents:
            if not is_inside(content.path):
                raise StoreDamaged("its path leads out of the home", place=content.path)
            if not (self._paths.root / content.path).exists():
                self._write(content.path, [content.data], 0o600)
                written += len(content.data)
        return written

    def put_file(self, file: HomeFile, pieces: Iterable[bytes]) -> None:
        """Write a file; links come last, so that no file is ever written through one."""
        if not is_extra(file.path):
            raise StoreDamaged("a file of a home cannot be there", place=file.path)
        if file.link is not None:
            self._links.append(file)
        else:
            self._write(file.path, pieces, 0o700 if file.executable else 0o600)

    def _write(self, path: str, pieces: Iterable[bytes], mode: int) -> None:
        target = self._paths.root / path
        target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        descriptor = os.open(target, _NEW_FILE, mode)
        with os.fdopen(descriptor, "wb") as file:
            for piece in pieces:
                file.write(piece)
            file.flush()
            os.fsync(descriptor)

    def finish(self, format_: str, made_on: str) -> None:  # noqa: ARG002  they are among the rows
        """Make the links, and close the store. What is of machines that share a home goes."""
        with self._env.write() as txn:
            txn.delete("meta", word_key(MACHINE))
            for table in ("followers", "workers"):
                for key in [key for key, _ in txn.scan(table)]:
                    txn.delete(table, key)
        for link in self._links:
            target = self._paths.root / link.path
            target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            target.symlink_to(str(link.link))
        git = self._paths.notebook / ".git"
        if git.is_dir() and not (git / "index").exists():
            # A shared notebook has none, because it is of a work tree.
            renew_index(self._paths.notebook, wait_s=0)
        self._env.close()


class TransferDatabase:
    """A home in a database. Until it is finished nobody can open it; a second try goes on.

    If it has a bucket, large originals go there, as whoever adds to it puts them there.

    Nobody else may write to it meanwhile: each commit is checked to follow the one before.
    """

    def __init__(self, store: Store, place: str) -> None:
        """Begin, or go on. Raises UsageError for a home that is not empty."""
        self._store = store
        self._place = place
        self._waiting: list[_RowChange] = []
        self._waiting_bytes = 0
        self._number = 0
        with store.write() as txn:
            check_empty(txn, place)
            self.goes_on = get_word(txn, "format") == FORMAT_UNFINISHED
            set_word(txn, "format", FORMAT_UNFINISHED)
            bucket = place_of(txn)
            # Whoever was filling it before notices this commit, and ends.
            self._number = txn.last_txn()
        self._bucket = Bucket(bucket) if bucket.url else None
        self._files: dict[str, HomeFile] = {}
        if self.goes_on:
            with store.read() as view:
                self._files = {file.path: file for file in home_files.listed(view)}

    def put_rows(self, table: str, rows: Iterable[Pair]) -> Iterator[int]:
        """Write the rows that are missing or differ, and remove all others."""
        done = 0
        wanted = (pair for pair in rows if (table, pair[0]) not in _OWN_ROWS)
        for row in self._differing(table, wanted) if self.goes_on else _all_rows(table, wanted):
            done += 1
            if row is not None and self._put(row):
                yield done
                done = 0
        self._flush()
        yield done

    def _differing(self, table: str, rows: Iterator[Pair]) -> Iterator[_RowChange | None]:
        """What makes the table hold these rows, which are in key order; None for a row it has."""
        with self._store.read() as view:
            there = (pair for pair in view.scan(table) if (table, pair[0]) not in _OWN_ROWS)
            present = next(there, None)
            for key, value in rows:
                while present is not None and present[0] < key:
                    yield _RowChange(table, present[0], None)
                    present = next(there, None)
                if present is not None and present[0] == key:
                    is_same = present[1] == value
                    present = next(there, None)
                    yield None if is_same else _RowChange(table, key, value)
                else:
                    yield _RowChange(table, key, value)
            while present is not None:
                yield _RowChange(table, present[0], None)
                present = next(there, None)

    def put_contents(self, contents: Iterable[ContentBytes]) -> int:
        """Write content records."""
        written = 0
        batch = {lsid_key(content.path) + bytes(4): content for content in contents}
        with self._store.read() as view:
            firsts = view.get_many(CONTENT.name, list(batch))
        for (key, content), first in zip(batch.items(), firsts, strict=True):
            if first is not None:
                part = CONTENT.decode(key, first)
                if (part.path, part.size_bytes) == (content.path, len(content.data)):
                    continue
            for part_key, part in self._parts_of(content):
                self._put(_row_of(CONTENT, part_key, part))
            written += len(content.data)
        # What a path has is looked up in the store, so it has to be there.
        self._flush()
        return written

    def _parts_of(self, content: ContentBytes) -> Iterator[tuple[bytes, ContentPart]]:
        if self._bucket is None or not is_large(content.path, len(content.data)):
            return parts_of(content.path, content.data)
        name = new_object(content.path)
        self._bucket.put(name, content.data)
        return iter([head_of(content.path, len(content.data), name)])

    def put_file(self, file: HomeFile, pieces: Iterable[bytes]) -> None:
        """Write the records of a file."""
        if not is_extra(file.path):
            raise StoreDamaged("a file of a home cannot be there", place=file.path)
        present = self._files.pop(file.path, None)
        if present == file:
            return
        if present is not None:
            self._remove_file(file.path)
        for key, part in home_files.parts(file.path, pieces):
            self._put(_row_of(HOME_FILE_PARTS, key, part))
        self._put(_row_of(HOME_FILES, lsid_key(file.path), file))

    def _remove_file(self, path: str) -> None:
        self._flush()
        with self._write() as txn:
            home_files.remove(txn, path)

    def finish(self, format_: str, made_on: str) -> None:
        """Let it be opened: the last commit, and the one that counts."""
        for path in list(self._files):
            self._remove_file(path)
        self._flush()
        with self._write() as txn:
            set_word(txn, MACHINE, made_on)
            set_word(txn, "format", format_)

    def _put(self, row: _RowChange) -> bool:
        """Write a row with others; whether it was time to write them."""
        self._waiting.append(row)
        self._waiting_bytes += len(row.key) + len(row.value or b"")
        is_full = len(self._waiting) >= _BATCH_ROWS or self._waiting_bytes >= _BATCH_BYTES
        if is_full:
            self._flush()
        return is_full

    def _flush(self) -> None:
        rows, self._waiting, self._waiting_bytes = self._waiting, [], 0
        if rows:
            with self._write() as txn:
                _apply(txn, rows)

    @contextmanager
    def _write(self) -> Iterator[WriteTxn]:
        """A transaction, in which something is written. Raises StoreBusy if others have written."""
        with self._store.write() as txn:
            number = txn.last_txn()
            if number != self._number + 1:
                raise StoreBusy(place=self._place)
            yield txn
        self._number = number


def check_empty(txn: ReadTxn, place: str) -> None:
    """Raise UsageError for a home that has anything but a format, or what a copy left there."""
    if get_word(txn, "format") == FORMAT_UNFINISHED:
        return
    for table in (*TABLES_OF_RECORDS, CONTENT.name, HOME_FILES.name):
        if table != META.name and next(txn.scan(table), None) is not None:
            raise UsageError(f"{place} is not empty; name a home that nothing was put into")


def _all_rows(table: str, rows: Iterable[Pair]) -> Iterator[_RowChange]:
    return (_RowChange(table, key, value) for key, value in rows)


def _row_of(records: RecordTable[T], key: bytes, record: T) -> _RowChange:
    return _RowChange(records.name, key, records.encode(key, record))


def _apply(txn: WriteTxn, rows: list[_RowChange]) -> None:
    txn.expect(rows[0].table, (row.key for row in rows if row.value is None))
    for row in rows:
        if row.value is None:
            txn.delete(row.table, row.key)
        else:
            txn.put(row.table, row.key, row.value)


def _batches(rows: Iterable[_RowChange]) -> Iterator[list[_RowChange]]:
    """The rows in lists of a bounded number and size."""
    batch: list[_RowChange] = []
    size_bytes = 0
    for row in rows:
        batch.append(row)
        size_bytes += len(row.key) + len(row.value or b"")
        if len(batch) >= _BATCH_ROWS or size_bytes >= _BATCH_BYTES:
            yield batch
            batch, size_bytes = [], 0
    if batch:
        yield batch
