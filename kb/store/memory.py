"""The environment in memory, for tests and missing homes; passes LMDB's contract tests."""

import bisect
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path

from kb.store.kv import TABLES, ReadTxn, ToldTable, WriteTxn, check_key

_Tables = dict[str, dict[bytes, bytes]]


class _MemoryView:
    def __init__(self, tables: _Tables, last_txn: int) -> None:
        self._live: _Tables | None = tables
        self._last_txn = last_txn
        self._keys: dict[str, list[bytes]] = {}

    @property
    def _tables(self) -> _Tables:
        if self._live is None:
            raise ValueError("a transaction was used after its block had ended")
        return self._live

    def end(self) -> None:
        self._live = None

    def get(self, table: str, key: bytes) -> bytes | None:
        return self._tables[table].get(key)

    def get_many(self, table: str, keys: Sequence[bytes]) -> list[bytes | None]:
        return [self.get(table, key) for key in keys]

    def count(self, table: str) -> int:
        return len(self._tables[table])

    def last_txn(self) -> int:
        return self._last_txn

    def scan(
        self, table: str, start: bytes = b"", stop: bytes | None = None, *, reverse: bool = False
    ) -> Iterator[tuple[bytes, bytes]]:
        rows = self._tables[table]
        if table not in self._keys:
            self._keys[table] = sorted(rows)
        keys = self._keys[table]
        low = bisect.bisect_left(keys, start)
        high = len(keys) if stop is None else bisect.bisect_left(keys, stop)
        picked = keys[low:high]
        for key in reversed(picked) if reverse else picked:
            yield key, rows[key]
            # Raises if the transaction has ended.
            _ = self._tables

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


class _MemoryTxn(_MemoryView):
    def put(self, table: str, key: bytes, value: bytes) -> None:
        check_key(key)
        if key not in self._tables[table]:
            self._keys.pop(table, None)
        self._tables[table][key] = value

    def delete(self, table: str, key: bytes) -> bool:
        self._keys.pop(table, None)
        return self._tables[table].pop(key, None) is not None


class MemoryEnvironment:
    """Tables as dictionaries; a write transaction works on a copy that replaces them."""

    def __init__(self) -> None:
        # One tuple, so that a reader never sees the rows of one commit with another's number.
        self._committed: tuple[_Tables, int] = ({name: {} for name in TABLES}, 0)
        self._writer = threading.Lock()
        self._closed = False

    @contextmanager
    def read(self) -> Iterator[ReadTxn]:
        """A view of the tables as they are now; a later commit replaces them, not their rows."""
        self._check_open()
        view = _MemoryView(*self._committed)
        try:
            yield view
        finally:
            view.end()

    @contextmanager
    def write(self) -> Iterator[WriteTxn]:
        """Copy, hand out, and swap in when the block ends without an exception."""
        self._check_open()
        with self._writer:
            tables, last_txn = self._committed
            copy = {name: dict(rows) for name, rows in tables.items()}
            view = _MemoryTxn(copy, last_txn + 1)
            try:
                yield view
            finally:
                view.end()
            self._committed = (copy, last_txn + 1)

    def size_bytes(self) -> int:
        """Bytes of all keys and values."""
        self._check_open()
        return sum(len(k) + len(v) for rows in self._committed[0].values() for k, v in rows.items())

    def last_txn(self) -> int:
        """How many transactions were committed."""
        self._check_open()
        return self._committed[1]

    def seen_txn(self) -> int:
        """The same: it is at hand."""
        return self.last_txn()

    def tell_of(self, table: ToldTable, wake: Callable[[], None]) -> None:
        """Nothing: it cannot tell."""

    def reap_readers(self) -> int:
        """Nothing to reap."""
        self._check_open()
        return 0

    def copy_to(self, folder: Path) -> None:
        """Write the tables as they are now into an LMDB environment."""
        from kb.store.copying import copy_rows

        with self.read() as txn:
            copy_rows(txn, folder)

    def close(self) -> None:
        """Close: later transactions raise ValueError."""
        self._closed = True

    def _check_open(self) -> None:
        if self._closed:
            raise ValueError("the environment is closed")
