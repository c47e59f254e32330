"""Connections to one database, each lent to one transaction at a time."""

import logging
import threading
import time
from collections.abc import Callable, Generator
from typing import Any, Final, TypeVar, cast

import psycopg
from psycopg import Connection
from psycopg.generators import fetch_many
from psycopg.pq import TransactionStatus

from kb.errors import StoreUnreachable
from kb.model.resting import rest_s
from kb.store.content.database import DatabaseAddress
from kb.store.postgres.translate import translated_errors

T = TypeVar("T")

# The driver logs what it also raises.
logging.getLogger("psycopg").addHandler(logging.NullHandler())

# Longer than any statement may take.
ANSWER_S = 150.0
SETTINGS: Final[dict[str, Any]] = {
    "application_name": "kb",
    "connect_timeout": 10,
    # Whatever the database's encoding is, and the environment says.
    "client_encoding": "utf-8",
    # A network that hangs is noticed within a minute.
    "keepalives_idle": 30,
    "keepalives_interval": 10,
    "keepalives_count": 3,
    "tcp_user_timeout": 60_000,
}
_CONNECTIONS_MAX: Final = 96
_IDLE_KEPT: Final = 16
# How long somebody who has reached the server before waits while it starts again: what reads is
# told soon that it is down, and what writes has work in hand.
READ_PATIENCE_S: Final = 5.0
WRITE_PATIENCE_S: Final = 30.0
# A home that is asked beside another keeps nobody waiting.
_BESIDE_CONNECT_S: Final = 2
_BESIDE_ANSWER_S: Final = 5.0
_PAUSE_FIRST_S: Final = 0.05
_PAUSE_MAX_S: Final = 1.0
# A statement of kb reads or writes at most a few megabytes. A reader may compute for long between
# two statements; a writer does not, and keeps all others waiting.
_SESSION: Final = (
    b"SET statement_timeout = '120s'; SET lock_timeout = '60s';"
    b" SET idle_in_transaction_session_timeout = '30min'; SELECT pg_backend_pid()"
)


class BoundedConnection(psycopg.Connection[Any]):
    """One whose server has to answer within a time: a network that hangs tells nobody."""

    answer_s: float | None = None
    """None is ANSWER_S."""

    def wait(self, gen: Any, *args: Any, **kwargs: Any) -> Any:
        """As psycopg's. Raises OperationalError, after which it is in no state to be used."""
        answer_s = ANSWER_S if self.answer_s is None else self.answer_s
        return super().wait(_bounded(gen, time.monotonic() + answer_s), *args, **kwargs)


def connect(address: DatabaseAddress, *, beside: bool = False) -> BoundedConnection:
    """A new connection without a transaction. Raises errors of psycopg."""
    settings = SETTINGS | ({"connect_timeout": _BESIDE_CONNECT_S} if beside else {})
    connection = BoundedConnection.connect(address.dsn, autocommit=True, **settings)
    if beside:
        connection.answer_s = _BESIDE_ANSWER_S
    return connection


def _bounded(asked: Generator[Any, Any, T], deadline: float) -> Generator[Any, Any, T]:
    """The same exchange with the server, ended if nothing comes until the deadline."""
    try:
        wanted = next(asked)
        while True:
            ready = yield wanted
            if not ready and time.monotonic() > deadline:
                raise psycopg.OperationalError("the database does not answer")
            wanted = asked.send(ready)
    except StopIteration as end:
        return cast("T", end.value)


class Connections:
    """A pool for one process. One that nobody uses is kept for the next transaction.

    A thread may hold several at once, because reads nest; so they are made as they are needed, and
    nobody waits for one while fewer than 96 are in use.
    """

    def __init__(self, address: DatabaseAddress, *, beside: bool = False) -> None:
        """Of a home that is asked `beside` another nobody waits for the server to start again."""
        self._address = address
        self._beside = beside
        self._rests_until = 0.0
        self._failure: StoreUnreachable | None = None
        self._idle: list[Connection] = []
        self._lock = threading.Lock()
        self._free = threading.BoundedSemaphore(_CONNECTIONS_MAX)
        self._closed = False
        self._was_reached = False
        self._away_since_s: float | None = None
        self._away_until_s = 0.0

    @property
    def place(self) -> str:
        """The address as errors name it."""
        return self._address.shown

    def take(
        self, begin: Callable[[Connection], None], *, patience_s: float = READ_PATIENCE_S
    ) -> Connection:
        """Take a connection on which `begin` has succeeded; another is tried for one that was lost.

        Raises StoreUnreachable or StoreDenied.
        """
        if not self._free.acquire(timeout=WRITE_PATIENCE_S):
            raise StoreUnreachable("this process uses all its connections", place=self.place)
        try:
            while (kept := self._kept()) is not None:
                try:
                    _finish_rollback(kept)
                    begin(kept)
                    return kept
                except psycopg.Error:
                    was_lost = kept.closed
                    kept.close()
                    if not was_lost:
                        raise
                    if self._beside:
                        # The others hang as this one did, each for as long.
                        self._close_idle()
                except BaseException:
                    kept.close()
                    raise
            return self._connected(begin, patience_s)
        except BaseException:
            self._free.release()
            raise

    def _kept(self) -> Connection | None:
        with self._lock:
            return self._idle.pop() if self._idle else None

    def _connected(self, begin: Callable[[Connection], None], patience_s: float) -> Connection:
        """A new connection; somebody who has reached the server before waits while it starts."""
        if self._beside:
            return self._connected_beside(begin)
        pause_s = _PAUSE_FIRST_S
        while True:
            try:
                return self._connect(begin)
            except StoreUnreachable as error:
                # Without a cause it is not the server that cannot be reached.
                is_away = error.__cause__ is not None and self._was_reached
                if not is_away or self._away_s() + pause_s > patience_s:
                    raise
            time.sleep(pause_s)
            pause_s = min(2 * pause_s, _PAUSE_MAX_S)

    def _connected_beside(self, begin: Callable[[Connection], None]) -> Connection:
        """A new connection; the last failure again as long as the server is left in peace."""
        start = time.monotonic()
        if self._failure is not None and start < self._rests_until:
            raise self._failure.with_traceback(None)
        try:
            return self._connect(begin)
        except StoreUnreachable as error:
            end = time.monotonic()
            self._rests_until = end + rest_s(end - start)
            self._failure = error
            raise

    def _away_s(self) -> float:
        """How long the server has been away, now that it was not reached again.

        All threads wait for the same end of it, so who comes late waits no longer for that.
        """
        now_s = time.monotonic()
        with self._lock:
            if self._away_since_s is None or now_s > self._away_until_s:
                self._away_since_s = now_s
            # Who asks again much later may find another outage.
            self._away_until_s = now_s + WRITE_PATIENCE_S
            return now_s - self._away_since_s

    def _connect(self, begin: Callable[[Connection], None]) -> Connection:
        with translated_errors(self.place):
            connection = connect(self._address, beside=self._beside)
            try:
                _begin_session(connection)
                begin(connection)
            except BaseException:
                connection.close()
                raise
        self._was_reached = True
        self._away_since_s = None
        return connection

    def give_back(self, connection: Connection) -> None:
        """Give a connection back, and end its transaction; one that cannot be is closed instead."""
        is_fit = _is_ending(connection)
        with self._lock:
            is_kept = is_fit and not self._closed and len(self._idle) < _IDLE_KEPT
            if is_kept:
                self._idle.append(connection)
        if not is_kept:
            connection.close()
        self._free.release()

    def close(self) -> None:
        """Close those that nobody uses now, and each other one when it is given back."""
        self._closed = True
        self._close_idle()

    def _close_idle(self) -> None:
        with self._lock:
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()


def _begin_session(connection: Connection) -> None:
    """Set the timeouts, and prepare no statements on what a pooler may lend to others.

    There a name of a prepared statement is another one's, or none. A pooler gives a number of its
    own for the server's process, by which it is known.
    """
    cursor = connection.execute(_SESSION)
    while cursor.nextset():
        pass
    if cursor.fetchone() != (connection.pgconn.backend_pid,):
        connection.prepare_threshold = None


def roll_back(connection: Connection) -> None:
    """End the transaction, and the connection if that cannot be done."""
    if connection.closed or connection.pgconn.transaction_status == TransactionStatus.IDLE:
        return
    try:
        connection.execute(b"ROLLBACK")
    except psycopg.Error:
        connection.close()


def _is_ending(connection: Connection) -> bool:
    """Whether it is in no transaction, or has sent the end of one, whose answer nobody awaits."""
    match connection.pgconn.transaction_status:
        case TransactionStatus.IDLE:
            return True
        case TransactionStatus.INTRANS | TransactionStatus.INERROR:
            try:
                connection.pgconn.send_query(b"ROLLBACK")
                return connection.pgconn.flush() == 0
            except psycopg.Error:
                return False
        case _:
            return False


def _finish_rollback(connection: Connection) -> None:
    """Take the answer to the end of the last transaction, if nobody has yet."""
    if connection.pgconn.transaction_status == TransactionStatus.ACTIVE:
        # Other threads run meanwhile, as they would not while libpq itself waits.
        connection.wait(fetch_many(connection.pgconn))
