"""The environment in a PostgreSQL database: one table, with the row of a counter as the lock."""

import os
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final

from psycopg import Connection, Error
from psycopg.errors import InsufficientPrivilege, UndefinedColumn, WrongObjectType

from kb.errors import NotFound, ReadOnlyHome, StoreBusy, UsageError, WrongProcess
from kb.store.content.database import DatabaseAddress
from kb.store.kv import ReadTxn, ToldTable, WriteTxn
from kb.store.postgres.connections import Connections
from kb.store.postgres.inspecting import inspect_server
from kb.store.postgres.listener import Listener
from kb.store.postgres.reads import Reads
from kb.store.postgres.schema import (
    SCHEMA_FORMAT,
    Commit,
    SchemaState,
    Statements,
    check_format,
    make_schema,
    migrate,
    schema_state,
)
from kb.store.postgres.server_clock import ServerClock, ServerTime
from kb.store.postgres.session import Session, WriteSession
from kb.store.postgres.translate import denied_reading, translated_errors
from kb.store.postgres.view import PostgresTxn, PostgresView
from kb.store.server_state import ServerState

# Records that many transactions at one commit read.
_SHARED_BYTES_MAX: Final = 8 << 20
_HOME_BYTES: Final = 8
_TRY_LOCK: Final = "SELECT pg_try_advisory_xact_lock(hashtextextended(%s, 0))"
_LOCK_PAUSE_S: Final = 0.1
_TO_MIGRATE: Final = "an earlier kb made its tables, and their owner has to use this kb first"


class PostgresEnvironment:
    """The environment in one schema of a database; made if missing, unless not `create`."""

    def __init__(
        self,
        address: DatabaseAddress,
        *,
        create: bool = True,
        beside: bool = False,
        server_time: ServerTime | None = None,
    ) -> None:
        """Open it. Raises NotFound without `create`, if it is missing; never an error of psycopg.

        One that is asked `beside` another home fails soon where its server is away.
        Raises StoreUnreachable, StoreDenied, StoreTooNew, UsageError for a schema of something
        else, and ReadOnlyHome if it has to be made or migrated and this user may not.
        """
        self._address = address
        self._place = address.shown
        self._schema = address.schema
        self._pid = os.getpid()
        self._closed = False
        self._seen = 0
        self._seen_lock = threading.Lock()
        self._statements = Statements(address.schema)
        self._connections = Connections(address, beside=beside)
        self._time = server_time or ServerTime()
        self.clock = ServerClock(self._time)
        self._reads = Reads(Commit(-1, ""), _SHARED_BYTES_MAX)
        # Also where nobody closes it.
        self._release = weakref.finalize(self, _release, self._connections, self._pid)
        try:
            with self._lent() as connection:
                state = self._prepared(connection, address.schema, create=create)
            self.home = state.home
            self.role = "" if state.is_owner else state.role
            """The role of the connections; empty where it owns the home."""
        except BaseException:
            self.close()
            raise

    def _prepared(self, connection: Connection, schema: str, *, create: bool) -> SchemaState:
        try:
            state = schema_state(connection, self._statements)
        except InsufficientPrivilege as error:
            raise denied_reading(error, self._place) from error
        except UndefinedColumn as error:
            raise self._not_a_home() from error
        if state is None:
            if not create:
                raise NotFound(id=self._place)
            home = os.urandom(_HOME_BYTES).hex()
            try:
                state = make_schema(connection, schema, self._statements, home)
            except (UndefinedColumn, WrongObjectType) as error:
                raise self._not_a_home() from error
        if state.format < SCHEMA_FORMAT:
            try:
                state = migrate(connection, schema, self._statements)
            except InsufficientPrivilege as error:
                raise ReadOnlyHome(_TO_MIGRATE, place=self._place) from error
        check_format(state.format, self._place)
        return state

    def _not_a_home(self) -> UsageError:
        detail = f"the schema {self._schema} has tables that kb did not make; take another name"
        return UsageError(f"{self._place}: {detail}")

    @contextmanager
    def read(self) -> Iterator[ReadTxn]:
        """A read transaction. Raises WrongProcess after a fork."""
        self._check_usable()
        session = Session(self._connections, self._statements, self._time)
        self._see(session.seen.number)
        view = PostgresView(session, self._statements, self._reads_at(session.seen))
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
        view = PostgresTxn(session, self._statements, self._reads_at(session.seen))
        try:
            try:
                yield view
            finally:
                view.end()
            session.commit()
            # Only this writer's changes are between its view and the next commit.
            if session.changes and self._reads.commit == session.seen:
                self._reads = self._reads.after(session.made, session.changes)
            self._see(session.made.number)
        finally:
            session.end()

    def _reads_at(self, commit: Commit) -> Reads:
        """What transactions that see this commit share."""
        reads = self._reads
        if reads.commit != commit:
            # Who still sees another commit keeps what it has.
            self._reads = reads = Reads(commit, _SHARED_BYTES_MAX)
        return reads

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

    def tell_of(self, table: ToldTable, wake: Callable[[], None]) -> Callable[[], None]:
        """Call `wake` whenever the server tells of new rows, until the result is called."""
        self._check_usable()
        return Listener(self._address, self._statements.listen[table], wake).stop

    def reap_readers(self) -> int:
        """Nothing to reap: the server notices that a connection has ended."""
        self._check_usable()
        return 0

    def server_state(self) -> ServerState:
        """How it stands with the server."""
        self._check_usable()
        with self._lent() as connection:
            return inspect_server(connection, self._schema)

    @contextmanager
    def exclusive(self, name: str, wait_s: float) -> Iterator[None]:
        """Hold a lock of the server for the block; it ends with its holder's connection.

        Raises StoreBusy after `wait_s` seconds.
        """
        self._check_usable()
        key = f"kb:{self._schema}:{name}"
        with self._lent() as connection:
            # In a transaction, because a pooler keeps a connection for no longer. However long its
            # holder works, it asks nothing by this connection meanwhile.
            connection.execute("BEGIN; SET LOCAL idle_in_transaction_session_timeout = 0")
            try:
                deadline = time.monotonic() + wait_s
                while connection.execute(_TRY_LOCK, (key,)).fetchone() != (True,):
                    if time.monotonic() > deadline:
                        raise StoreBusy(place=f"the {name} of {self._place}")
                    time.sleep(_LOCK_PAUSE_S)
                yield
            finally:
                with suppress(Error):
                    connection.execute("ROLLBACK")

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
