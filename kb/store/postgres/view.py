"""The transactions of the key-value protocol: what is read comes in few round trips, and is kept.

A statement waits until its rows are needed, and then goes with all that is expected. What was read
at a commit is true for every transaction that sees this commit, so they share it.
"""

import bisect
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final

from kb.store.kv import TABLES, check_key
from kb.store.postgres.reads import UNKNOWN, Pair, Range, Reads
from kb.store.postgres.schema import Statements
from kb.store.postgres.session import Row, Session, WriteSession

_TABLES: Final = frozenset(TABLES)
_KEYS_MAX: Final = 4_000
# A scan fetches this many rows first, then more and more, as long as they are small.
_ROWS_FIRST: Final = 64
_ROWS_MAX: Final = 2_000
_BATCH_BYTES: Final = 4 << 20
# Of one transaction.
_OWN_BYTES_MAX: Final = 32 << 20
# More than this at once is read to be worked on, and hardly ever again.
_SHARED_BYTES_MAX: Final = 256 << 10

_Statement = tuple[bytes, tuple[object, ...]]
_Keys = tuple[str, list[bytes]]


class PostgresView:
    """A read transaction over a session; `shared` has what others have read at the same commit."""

    def __init__(self, session: Session, statements: Statements, shared: Reads) -> None:
        self._live: Session | None = session
        self._statements = statements
        self._shared = shared
        self._own = Reads(session.seen, _OWN_BYTES_MAX)
        self._wanted: dict[str, dict[bytes, None]] = {}
        self._wanted_ranges: dict[Range, None] = {}

    @property
    def _session(self) -> Session:
        if self._live is None:
            raise ValueError("a transaction was used after its block had ended")
        return self._live

    def end(self) -> None:
        """Refuse all that comes after."""
        self._live = None

    def get(self, table: str, key: bytes) -> bytes | None:
        """The value, or None."""
        _ = self._session
        value = self._value(_named(table), key)
        return self._fetched(table, [key])[key] if value is UNKNOWN else value  # type: ignore[return-value]

    def get_many(self, table: str, keys: Sequence[bytes]) -> list[bytes | None]:
        """The value of each key."""
        _ = self._session
        found: dict[bytes, object] = {key: self._value(_named(table), key) for key in keys}
        missing = [key for key, value in found.items() if value is UNKNOWN]
        if missing:
            found.update(self._fetched(table, missing))
        return [found[key] for key in keys]  # type: ignore[misc]

    def _value(self, table: str, key: bytes) -> object:
        value = self._own.value(table, key)
        return self._shared.value(table, key) if value is UNKNOWN else value

    def _fetched(self, table: str, keys: list[bytes]) -> dict[bytes, bytes | None]:
        """The values of these keys, and all that is expected, in one round trip."""
        keys = list(self._wanted.pop(table, {}) | dict.fromkeys(keys))
        if not self._wanted and not self._wanted_ranges and len(keys) == 1:
            rows = self._session.rows(self._statements.get, (table, keys[0]))
            values = {keys[0]: rows[0][0] if rows else None}
            self._keep(table, values)
            return values
        parts = _parts(table, keys)
        asked = [(self._statements.get_many, (table, part)) for _, part in parts]
        values = {}
        for (_, part), rows in zip(parts, self._ask(asked), strict=True):
            values |= self._keep_rows(table, part, rows)
        return values

    def _keep_rows(
        self, table: str, keys: list[bytes], rows: list[Row]
    ) -> dict[bytes, bytes | None]:
        values: dict[bytes, bytes | None] = dict.fromkeys(keys)
        values.update((row[0], row[1]) for row in rows)
        self._keep(table, values)
        return values

    def _keep(self, table: str, values: dict[bytes, bytes | None]) -> None:
        self._own.keep(table, values)
        if sum(len(value or b"") for value in values.values()) <= _SHARED_BYTES_MAX:
            self._shared.keep(table, values)

    def _ask(self, own: Sequence[_Statement]) -> list[list[Row]]:
        """The rows of each statement; what is expected comes with them, and is kept."""
        wanted, ranges = self._wanted, list(self._wanted_ranges)
        self._wanted, self._wanted_ranges = {}, {}
        parts = [part for table, keys in wanted.items() for part in _parts(table, list(keys))]
        statements = [
            *((self._statements.get_many, part) for part in parts),
            *(self._batch(asked, _ROWS_FIRST) for asked in ranges),
            *own,
        ]
        if len(statements) == 1:
            return [self._session.rows(*statements[0])]
        rows = iter(self._session.rows_of_each(statements))
        for table, keys in parts:
            self._keep_rows(table, keys, next(rows))
        for asked in ranges:
            self._keep_first(asked, next(rows), _ROWS_FIRST)
        return list(rows)

    def expect(self, table: str, keys: Iterable[bytes]) -> None:
        """Say which keys are got next: they come with the next round trip."""
        _ = self._session
        new = [key for key in keys if self._value(_named(table), key) is UNKNOWN]
        if new:
            self._wanted.setdefault(table, {}).update(dict.fromkeys(new[:_KEYS_MAX]))

    def expect_scan(
        self, table: str, start: bytes = b"", stop: bytes | None = None, *, reverse: bool = False
    ) -> None:
        """Say which range is scanned next: its first rows come with the next round trip."""
        _ = self._session
        asked = (_named(table), start, stop, reverse)
        if self._first(asked) is None:
            self._wanted_ranges[asked] = None

    def count(self, table: str) -> int:
        """How many keys the table holds."""
        return int(self._ask([(self._statements.count, (_named(table),))])[0][0][0])

    def last_txn(self) -> int:
        """The number of the newest commit that it sees."""
        return self._session.seen.number

    def scan(
        self, table: str, start: bytes = b"", stop: bytes | None = None, *, reverse: bool = False
    ) -> Iterator[Pair]:
        """The pairs of a range in key order, or backwards."""
        rows_max = _ROWS_FIRST
        while True:
            rows, is_all = self._batch_of((_named(table), start, stop, reverse), rows_max)
            for row in rows:
                yield row
                # Raises if the transaction has ended.
                _ = self._session
            if is_all:
                return
            # The next key after the last one, or else the keys below it.
            start, stop = (start, rows[-1][0]) if reverse else (rows[-1][0] + b"\0", stop)
            bytes_each = 1 + sum(len(key) + len(value) for key, value in rows) // len(rows)
            rows_max = max(1, min(4 * rows_max, _ROWS_MAX, _BATCH_BYTES // bytes_each))

    def _batch_of(self, asked: Range, rows_max: int) -> tuple[list[Pair], bool]:
        """The first rows of a range, and whether it has no others."""
        first = self._first(asked)
        if first is None:
            self._wanted_ranges.pop(asked, None)
            fetched = self._ask([self._batch(asked, rows_max)])[0]
            first = self._keep_first(asked, fetched, rows_max)
        return first

    def _first(self, asked: Range) -> tuple[list[Pair], bool] | None:
        _ = self._session
        return self._own.first(asked) or self._shared.first(asked)

    def _keep_first(
        self, asked: Range, fetched: list[Row], rows_max: int
    ) -> tuple[list[Pair], bool]:
        rows, is_all = [(row[0], row[1]) for row in fetched], len(fetched) < rows_max
        self._own.keep_first(asked, rows, is_all=is_all)
        if sum(len(value) for _, value in rows) <= _SHARED_BYTES_MAX:
            self._shared.keep_first(asked, rows, is_all=is_all)
        return rows, is_all

    def scan_many(
        self, table: str, ranges: Sequence[tuple[bytes, bytes | None]], limit: int
    ) -> list[list[Pair]]:
        """The first `limit` pairs of each range."""
        if limit > _ROWS_FIRST:
            asked = [self._batch((_named(table), *bounds, False), limit) for bounds in ranges]
            return [[(row[0], row[1]) for row in rows] for rows in self._ask(asked)]
        for start, stop in ranges:
            self.expect_scan(table, start, stop)
        return [list(islice(self.scan(table, *bounds), limit)) for bounds in ranges]

    def _batch(self, asked: Range, rows_max: int) -> _Statement:
        table, start, stop, reverse = asked
        text = self._statements.scan(has_stop=stop is not None, reverse=reverse)
        return text, (table, start, *(() if stop is None else (stop,)), rows_max)


class PostgresTxn(PostgresView):
    """The writer's transaction: what it writes lies over what it reads until the commit."""

    def __init__(self, session: WriteSession, statements: Statements, shared: Reads) -> None:
        super().__init__(session, statements, shared)
        self._changes = session.changes
        # Of the tables that were scanned since they were written: the keys in order.
        self._sorted: dict[str, list[bytes]] = {}

    def last_txn(self) -> int:
        """The number that its own commit will have."""
        return self._session.seen.number + 1

    def put(self, table: str, key: bytes, value: bytes) -> None:
        """Set the value, whatever was there."""
        check_key(key)
        self._change(_named(table), key, value)

    def delete(self, table: str, key: bytes) -> bool:
        """Remove the key; False where it was absent."""
        was_there = self.get(table, key) is not None
        if was_there:
            self._change(table, key, None)
        return was_there

    def _change(self, table: str, key: bytes, value: bytes | None) -> None:
        _ = self._session
        changes = self._changes.setdefault(table, {})
        if table in self._sorted and key not in changes:
            bisect.insort(self._sorted[table], key)
        changes[key] = value

    def get(self, table: str, key: bytes) -> bytes | None:
        """The value, or None; its own change first."""
        written = self._changes.get(table)
        if written is not None and key in written:
            _ = self._session
            return written[key]
        return super().get(table, key)

    def get_many(self, table: str, keys: Sequence[bytes]) -> list[bytes | None]:
        """The value of each key, its own changes first."""
        written = self._changes.get(_named(table))
        if not written:
            return super().get_many(table, keys)
        stored = iter(super().get_many(table, [key for key in keys if key not in written]))
        return [written[key] if key in written else next(stored) for key in keys]

    def count(self, table: str) -> int:
        """How many keys the table holds, with its own changes."""
        stored = super().count(table)
        changes = self._changes.get(table, {})
        before = super().get_many(table, list(changes))
        pairs = zip(changes.values(), before, strict=True)
        return stored + sum((new is not None) - (old is not None) for new, old in pairs)

    def scan(
        self, table: str, start: bytes = b"", stop: bytes | None = None, *, reverse: bool = False
    ) -> Iterator[Pair]:
        """The pairs of a range, with its own changes."""
        stored = super().scan(table, start, stop, reverse=reverse)
        changed = self._changed(_named(table), start, stop)
        if not changed:
            yield from stored
            return
        changes = self._changes[table]
        if reverse:
            changed.reverse()
        for key, value in _merged(stored, [(key, changes[key]) for key in changed], reverse):
            yield key, value
            _ = self._session

    def _changed(self, table: str, start: bytes, stop: bytes | None) -> list[bytes]:
        """The keys of a range that were written or removed, in order."""
        if not self._changes.get(table):
            return []
        if table not in self._sorted:
            self._sorted[table] = sorted(self._changes[table])
        keys = self._sorted[table]
        end = len(keys) if stop is None else bisect.bisect_left(keys, stop)
        return keys[bisect.bisect_left(keys, start) : end]

    def scan_many(
        self, table: str, ranges: Sequence[tuple[bytes, bytes | None]], limit: int
    ) -> list[list[Pair]]:
        """The first `limit` pairs of each range, with its own changes."""
        if not self._changes.get(_named(table)):
            return super().scan_many(table, ranges, limit)
        for start, stop in ranges:
            self.expect_scan(table, start, stop)
        return [list(islice(self.scan(table, *bounds), limit)) for bounds in ranges]


def _merged(
    stored: Iterator[Pair], changed: list[tuple[bytes, bytes | None]], reverse: bool
) -> Iterator[Pair]:
    """Stored pairs with changes over them; both are in the order of their keys."""
    place = 0
    for key, value in stored:
        while place < len(changed) and (
            changed[place][0] > key if reverse else changed[place][0] < key
        ):
            new, place = changed[place], place + 1
            if new[1] is not None:
                yield new[0], new[1]
        if place < len(changed) and changed[place][0] == key:
            new, place = changed[place], place + 1
            if new[1] is not None:
                yield new[0], new[1]
        else:
            yield key, value
    yield from ((key, new) for key, new in changed[place:] if new is not None)


def _parts(table: str, keys: list[bytes]) -> list[_Keys]:
    return [(table, keys[at : at + _KEYS_MAX]) for at in range(0, len(keys), _KEYS_MAX)]


def _named(table: str) -> str:
    if table not in _TABLES:
        raise KeyError(table)
    return table
