"""One transaction's connection. If it is lost, the transaction goes on over another one.

It may, as long as no commit came in between: then the new connection sees what the old one saw. A
writer's changes are sent with its commit. So a server can start again amid a transaction.
"""

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Final, TypeVar

import psycopg
from psycopg import Connection
from psycopg.errors import InsufficientPrivilege, error_from_result
from psycopg.generators import fetch_many
from psycopg.pq import ExecStatus

from kb.errors import KbError, StoreUnreachable
from kb.model.failpoints import failpoint
from kb.store.postgres.connections import (
    READ_PATIENCE_S,
    WRITE_PATIENCE_S,
    Connections,
    roll_back,
)
from kb.store.postgres.schema import (
    COMMITS_KEPT,
    TOKEN_BYTES,
    Commit,
    Statements,
    check_format,
)
from kb.store.postgres.server_clock import ServerTime
from kb.store.postgres.translate import denied_reading, is_lost, translated

T = TypeVar("T")
Row = tuple[Any, ...]
Changes = dict[str, dict[bytes, bytes | None]]
"""table -> key -> the new value, None for a key that is removed."""

_NONE: Final = Commit(-1, "")
_LOSSES_MAX: Final = 5
_SENT_BYTES_MAX: Final = 8 << 20
_SENT_ROWS_MAX: Final = 10_000


class Session:
    """A transaction on the server. `end` it, whatever happens."""

    def __init__(
        self, connections: Connections, statements: Statements, server_time: ServerTime
    ) -> None:
        """Begin. Raises StoreUnreachable, StoreDenied, StoreBusy, StoreTooNew or StoreDamaged."""
        self._connections = connections
        self._statements = statements
        self._time = server_time
        self._losses = 0
        self.seen = _NONE
        """The newest commit that it sees."""
        self._connection: Connection | None = None
        self._connection = self._taken()

    @property
    def _begin_text(self) -> bytes:
        return self._statements.begin_read

    @property
    def _patience_s(self) -> float:
        return READ_PATIENCE_S

    def rows(self, text: bytes, parameters: Sequence[object]) -> list[Row]:
        """Run a statement and fetch its rows, again over another connection if one is lost."""
        return self._resumed(
            lambda connection: connection.cursor(binary=True).execute(text, parameters).fetchall()
        )

    def rows_of_each(self, statements: Iterable[tuple[bytes, Sequence[object]]]) -> list[list[Row]]:
        """Run several statements in one round trip, and fetch the rows of each."""
        asked = list(statements)

        def run(connection: Connection) -> list[list[Row]]:
            with connection.pipeline():
                cursors = [
                    connection.cursor(binary=True).execute(text, parameters)
                    for text, parameters in asked
                ]
                return [cursor.fetchall() for cursor in cursors]

        return self._resumed(run)

    def end(self) -> None:
        """Roll back what is not committed, and give the connection back; waits for no answer."""
        connection, self._connection = self._connection, None
        if connection is not None:
            self._connections.give_back(connection)

    def _taken(self) -> Connection:
        try:
            return self._connections.take(self._begin, patience_s=self._patience_s)
        except psycopg.Error as error:
            raise self._translated(error) from error

    def _translated(self, error: psycopg.Error) -> KbError:
        if isinstance(error, InsufficientPrivilege):
            return denied_reading(error, self._connections.place)
        return translated(error, self._connections.place)

    def _begin(self, connection: Connection) -> None:
        number, format_, token, moment_ms = _single_values(connection, self._begin_text)
        self._time.take(int(moment_ms))
        check_format(int(format_), self._connections.place)
        newest = Commit(int(number), token.decode())
        if self.seen in (_NONE, newest):
            self.seen = newest
            return
        self._check_overtaken(connection)

    def _check_overtaken(self, connection: Connection) -> None:
        """Raise StoreUnreachable, because a commit came in between."""
        roll_back(connection)
        detail = "the connection was lost, and somebody else has written since"
        raise StoreUnreachable(detail, place=self._connections.place)

    def _resumed(self, run: Callable[[Connection], T]) -> T:
        while True:
            if self._connection is None:
                raise ValueError("a transaction was used after its block had ended")
            try:
                return run(self._connection)
            except psycopg.Error as error:
                self._replace(error)

    def _replace(self, error: psycopg.Error) -> None:
        """Take another connection for one that is lost; raise the KbError of any other error."""
        self._losses += 1
        if not is_lost(error) or self._losses > _LOSSES_MAX:
            raise self._translated(error) from error
        self.end()
        self._connection = self._taken()


class WriteSession(Session):
    """The writer's transaction: it holds the writer's lock until it ends."""

    def __init__(
        self, connections: Connections, statements: Statements, server_time: ServerTime
    ) -> None:
        """As `Session`; waits for the current writer. Raises ReadOnlyHome, too."""
        self.changes: Changes = {}
        """All that is to be written; sent with the commit, and again if a connection is lost."""
        self._token = b""
        self._is_committed = False
        super().__init__(connections, statements, server_time)

    @property
    def _begin_text(self) -> bytes:
        return self._statements.begin_write

    @property
    def _patience_s(self) -> float:
        return WRITE_PATIENCE_S

    def _translated(self, error: psycopg.Error) -> KbError:
        return translated(error, self._connections.place)

    def _statements_of(
        self, table: str, changes: dict[bytes, bytes | None]
    ) -> Iterator[tuple[bytes, Sequence[object]]]:
        removed = [key for key, value in changes.items() if value is None]
        for start in range(0, len(removed), _SENT_ROWS_MAX):
            yield self._statements.delete_many, (table, removed[start : start + _SENT_ROWS_MAX])
        keys: list[bytes] = []
        values: list[bytes] = []
        size = 0
        # In the order of keys, as they lie in the database.
        for key in sorted(changes):
            value = changes[key]
            if value is None:
                continue
            keys.append(key)
            values.append(value)
            size += len(value)
            if size >= _SENT_BYTES_MAX or len(keys) >= _SENT_ROWS_MAX:
                yield self._statements.put_many, (table, keys, values)
                keys, values, size = [], [], 0
        if keys:
            yield self._statements.put_many, (table, keys, values)

    @property
    def made(self) -> Commit:
        """The commit that it has made, or the one before if there was nothing to write."""
        return Commit(self.seen.number + 1, self._token.hex()) if self._is_committed else self.seen

    def commit(self) -> None:
        """Make all changes durable; returns only when they are.

        If the answer is lost, the token says whether the commit was made. If it was not, all is
        sent again, unless somebody else has written: then StoreUnreachable says that nothing was.
        """
        if not self.changes:
            return
        self._token = os.urandom(TOKEN_BYTES)
        failpoint("store.before_commit")
        while not self._is_committed:
            assert self._connection is not None
            try:
                self._commit(self._connection)
                self._is_committed = True
            except psycopg.Error as error:
                self._replace(error)
        failpoint("store.after_commit")

    def _commit(self, connection: Connection) -> None:
        statements, number = self._statements, self.seen.number + 1
        with connection.pipeline():
            for table, changes in self.changes.items():
                for text, parameters in self._statements_of(table, changes):
                    connection.execute(text, parameters)
            connection.execute(statements.advance, (number,))
            connection.execute(statements.sign, (number, self._token))
            if number % COMMITS_KEPT == 0:
                connection.execute(statements.forget, (number - COMMITS_KEPT,))
            for table, notify in statements.notify.items():
                if any(value is not None for value in self.changes.get(table, {}).values()):
                    connection.execute(notify)
            connection.execute(b"COMMIT")

    def _check_overtaken(self, connection: Connection) -> None:
        # Whoever holds the lock sees every commit, so also this one's if it was made.
        row = connection.execute(
            self._statements.token_of, (self.seen.number + 1,), binary=True
        ).fetchone()
        if self._token and row is not None and row[0] == self._token:
            self._is_committed = True
            roll_back(connection)
            return
        super()._check_overtaken(connection)


def _single_values(connection: Connection, text: bytes) -> list[bytes]:
    """The values in the rows that several statements give, one row each, as text.

    Every transaction begins so. It is asked without a cursor, which takes longer to make than all
    else that the client does here.
    """
    pgconn = connection.pgconn
    try:
        pgconn.send_query(text)
        results = connection.wait(fetch_many(pgconn))
        for result in results:
            if result.status == ExecStatus.FATAL_ERROR:
                raise error_from_result(result, connection.info.encoding)
        return [
            result.get_value(0, column) or b""
            for result in results
            if result.ntuples
            for column in range(result.nfields)
        ]
    except psycopg.Error:
        roll_back(connection)
        raise
