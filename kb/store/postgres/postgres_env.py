"""The environment in a PostgreSQL database: one table, with the row of a counter as the lock."""

import os
import threading
import weakref
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from psycopg import Connection

from kb.errors import NotFound, WrongProcess
from kb.store.content.database import DatabaseAddress
from kb.store.kv import TABLES, ReadTxn, WriteTxn, check_key
from kb.store.postgres.connections import Connections
from kb.store.postgres.schema import (
    SCHEMA_FORMAT,
    SchemaState,
    Statements,
    check_format,
    make_schema,
    migrate,
    schema_state,
)
from kb.store.postgres.server_clock import ServerClock, ServerTime
from kb.store.postgres.session import Session, WriteSession
from kb.store.postgres.translate import translated_errors

_TABLES: Final = frozenset(TABLES)
_KEYS_MAX: Final = 1_000
# Of each table; keys and values of some kilobytes each.
_KNOWN_MAX: Final = 4_000
# A scan fetches this many rows first, then more and more, as long as they are small.
_ROWS_FIRST: Final = 32
_ROWS_MAX: Final = 2_000
_BATCH_BYTES: Final = 4 << 20
_HOME_BYTES: Final = 8
_Pair = tuple[bytes, bytes]


class _PostgresView:
    def __init__(self, session: Session, statements: Statements) -> None:
        self._live: Session | None = session
        self._statements = statements
        # What was read: nobody changes it while the transaction lasts, but a writer itself.
        self._known: dict[str, dict[bytes, bytes | None]] = {}

    @property
    def _session(self) -> Session:
        if self._live is None:
            raise ValueError("a transaction was used after its block had ended")
        return self._live

    def end(self) -> None:
        self._live = None

    def get(self, table: str, key: bytes) -> bytes | None:
        return self.get_many(table, (key,))[0]

    def get_many(self, table: str, keys: Sequence[bytes]) -> list[bytes | None]:
        _ = self._session
        known = self._known.setdefault(_named(table), {})
        new = list(dict.fromkeys(key for key in keys if key not in known))
        if len(known) + len(new) > _KNOWN_MAX:
            known.clear()
            new = list(dict.fromkeys(keys))
        for start in range(0, len(new), _KEYS_MAX):
            batch = new[start : start + _KEYS_MAX]
            known.update(dict.fromkeys(batch))
            known.update(self._fetched(table, batch))
        return [known[key] for key in keys]

    def _fetched(self, table: str, keys: list[bytes]) -> Iterable[_Pair]:
        if len(keys) > 1:
            return self._session.rows(self._statements.get_many, (table, keys))
        rows = self._session.rows(self._statements.get, (table, keys[0]))
        return [(keys[0], row[0]) for row in rows]

    def expect(self, table: str, keys: Iterable[bytes]) -> None:
        self.get_many(table, list(keys)[:_KNOWN_MAX])

    def count(self, table: str) -> int:
        return int(self._session.rows(self._statements.count, (_named(table),))[0][0])

    def last_txn(self) -> int:
        return self._session.number

    def scan(
        self, table: str, start: bytes = b"", stop: bytes | None = None, *, reverse: bool = False
    ) -> Iterator[_Pair]:
        rows_max = _ROWS_FIRST
        while True:
            batch = self._session.rows(*self._asked(table, start, stop, rows_max, reverse=reverse))
            for key, value in batch:
                yield key, value
                # Raises if the transaction has ended.
                _ = self._session
            if len(batch) < rows_max:
                return
            # The next key after the last one, or else the keys below it.
            start, stop = (start, batch[-1][0]) if reverse else (batch[-1][0] + b"\0", stop)
            bytes_each = 1 + sum(len(key) + len(value) for key, value in batch) // len(batch)
            rows_max = max(1, min(4 * rows_max, _ROWS_MAX, _BATCH_BYTES // bytes_each))

    def scan_many(
        self, table: str, ranges: Sequence[tuple[bytes, bytes | None]], limit: int
    ) -> list[list[_Pair]]:
        asked = [self._asked(table, start, stop, limit) for start, stop in ranges]
        return [[(row[0], row[1]) for row in rows] for rows in self._session.rows_of_each(asked)]

    def _asked(
        self, table: str, start: bytes, stop: bytes | None, rows_max: int, *, reverse: bool = False
    ) -> tuple[bytes, tuple[object, ...]]:
        text = self._statements.scan(has_stop=stop is not None, reverse=reverse)
        bounds = (start,) if stop is None else (start, stop)
        return text, (_named(table), *bounds, rows_max)


class _PostgresTxn(_PostgresView):
    """What it writes goes before what it has read."""

    def __init__(self, session: WriteSession, statements: Statements) -> None:
        super().__init__(session, statements)
        self._writer = session

    def last_txn(self) -> int:
        return self._session.number + 1

    def put(self, table: str, key: bytes, value: bytes) -> None:
        check_key(key)
        _ = self._session
        self._writer.change(_named(table), key, value)

    def delete(self, table: str, key: bytes) -> bool:
        was_there = self.get(table, key) is not None
        if was_there:
            self._writer.change(table, key, None)
        return was_there

    def get_many(self, table: str, keys: Sequence[bytes]) -> list[bytes | None]:
        written = self._writer.changes.get(_named(table), {})
        stored = iter(super().get_many(table, [key for key in keys if key not in written]))
        return [written[key] if key in written else next(stored) for key in keys]

    def count(self, table: str) -> int:
        _ = self._session
        self._writer.send(table)
        return super().count(table)

    def scan(
        self, table: str, start: bytes = b"", stop: bytes | None = None, *, reverse: bool = False
    ) -> Iterator[_Pair]:
        _ = self._session
        self._writer.send(table)
        yield from super().scan(table, start, stop, reverse=reverse)

    def scan_many(
        self, table: str, ranges: Sequence[tuple[bytes, bytes | None]], limit: int
    ) -> list[list[_Pair]]:
        self._writer.send(table)
        return super().scan_many(table, ranges, limit)


class PostgresEnvironment:
    """The environment in one schema of a database; made if missing, unless not `create`."""

    def __init__(
        self,
        address: DatabaseAddress,
        *,
        create: bool = True,
        server_time: ServerTime | None = None,
    ) -> None:
        """Open it. Raises NotFound without `create`, if it is missing; never an error of psycopg.

        Raises StoreUnreachable, StoreDenied, StoreTooNew, and ReadOnlyHome if it has to be made or
        migrated and this user may not.
        """
        self._place = address.shown
        self._pid = os.getpid()
        self._closed = False
        self._seen = 0
        self._seen_lock = threading.Lock()
        self._statements = Statements(address.schema)
        self._connections = Connections(address)
        self._time = server_time or ServerTime()
        self.clock = ServerClock(self._time)
        # Also where nobody closes it.
        self._release = weakref.finalize(self, _release, self._connections, self._pid)
        try:
            with self._lent() as connection:
                self.home = self._prepared(connection, address.schema, create=create).home
        except BaseException:
            self.close()
            raise

    def _prepared(self, connection: Connection, schema: str, *, create: bool) -> SchemaState:
        state = schema_state(connection, self._statements)
        if state is None:
            if not create:
                raise NotFound(id=self._place)
            state = make_schema(connection, schema, self._statements, os.urandom(_HOME_BYTES).hex())
        if state.format < SCHEMA_FORMAT:
            state = migrate(connection, schema, self._statements)
        check_format(state.format, self._place)
        return state

    @contextmanager
    def read(self) -> Iterator[ReadTxn]:
        """A read transaction. Raises WrongProcess after a fork."""
        self._check_usable()
        session = Session(self._connections, self._statements, self._time)
        self._see(session.number)
        view = _PostgresView(session, self._statements)
        try:
            yield view
        finally:
            view.end()
            session.end()

    @contextmanager
    def write(self) -> Iterator[WriteTxn]:
        """The write transaction; durable when the block has ended.

        Raises StoreFull, StoreUnreachable and ReadOnlyHome, each of which leaves the previous state
        intact, and WrongProcess after a fork.
        """
        self._check_usable()
        session = WriteSession(self._connections, self._statements, self._time)
        view = _PostgresTxn(session, self._statements)
        try:
            try:
                yield view
            finally:
                view.end()
            session.commit()
            self._see(session.number + bool(session.changes))
        finally:
            session.end()

    def size_bytes(self) -> int:
        """Bytes of the table and its index on the server."""
        return int(self._value(self._statements.size))

    def last_txn(self) -> int:
        """The number of the newest commit: one look-up."""
        number = int(self._value(self._statements.newest))
        self._see(number)
        return number

    def seen_txn(self) -> int:
        """The newest of the numbers of this process's own transactions."""
        return self._seen

    def _see(self, number: int) -> None:
        with self._seen_lock:
            self._seen = max(self._seen, number)

    def reap_readers(self) -> int:
        """Nothing to reap: the server notices that a connection has ended."""
        self._check_usable()
        return 0

    def copy_to(self, folder: Path) -> None:
        """Write a snapshot into an LMDB environment."""
        from kb.store.copying import copy_rows

        with self.read() as txn:
            copy_rows(txn, folder)

    def close(self) -> None:
        """Close, except in a forked child: the connections belong to the parent."""
        self._release()
        self._closed = True

    def _value(self, text: bytes) -> Any:
        self._check_usable()
        values: list[Any] = []

        def ask(connection: Connection) -> None:
            row = connection.execute(text).fetchone()
            values[:] = row or ()

        with translated_errors(self._place):
            self._connections.give_back(self._connections.take(ask))
        return values[0]

    @contextmanager
    def _lent(self) -> Iterator[Connection]:
        with translated_errors(self._place):
            connection = self._connections.take(lambda _: None)
            try:
                yield connection
            finally:
                self._connections.give_back(connection)

    def _check_usable(self) -> None:
        if os.getpid() != self._pid:
            raise WrongProcess(place=self._place, opened_by=self._pid)
        if self._closed:
            raise ValueError(f"the environment in {self._place} is closed")


def _release(connections: Connections, pid: int) -> None:
    if os.getpid() == pid:
        connections.close()


def _named(table: str) -> str:
    if table not in _TABLES:
        raise KeyError(table)
    return table
