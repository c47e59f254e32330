"""The tables of a home in a database: made on first use, migrated when older, refused when newer.

    records (tab, k, v)         every table of the store, in one
    counter (n, format, home)   one row: the newest commit, the schema's version, the home's id
    commits (n, token)          who made the newest commits, so that a lost answer can be found out,
                                and that a number stands for another commit after a failover

Whoever writes holds the row of `counter` from its first statement to its commit. So there is one
writer at a time, and commits have the order of their numbers.
"""

from typing import Final

from msgspec import Struct
from psycopg import Connection, sql
from psycopg.errors import (
    DuplicateObject,
    DuplicateSchema,
    DuplicateTable,
    InvalidSchemaName,
    UndefinedTable,
    UniqueViolation,
)

from kb.errors import StoreDamaged, StoreTooNew
from kb.store.kv import ToldTable

SCHEMA_FORMAT: Final = 1
TOKEN_BYTES: Final = 16


class Commit(Struct, frozen=True):
    """A commit. After a failover that lost some, its number alone may mean another one."""

    number: int
    token: str
    """Whoever made it drew it at random; in hex. Empty before the first commit."""


COMMITS_KEPT: Final = 1_000
"""How many commits back a lost answer can be found out."""
_TRIES_MAX: Final = 10
_CLOCK_MS: Final = sql.SQL("(extract(epoch FROM clock_timestamp()) * 1000)::bigint")

_MAKE: Final = (
    "CREATE SCHEMA IF NOT EXISTS {schema}",
    # Values are compressed or random already, or small: the server need not try.
    (
        'CREATE TABLE IF NOT EXISTS {schema}.records (tab text COLLATE "C" NOT NULL,'
        " k bytea NOT NULL, v bytea NOT NULL, PRIMARY KEY (tab, k))"
    ),
    "ALTER TABLE {schema}.records ALTER COLUMN v SET STORAGE EXTERNAL",
    "CREATE TABLE IF NOT EXISTS {schema}.commits (n bigint PRIMARY KEY, token bytea NOT NULL)",
    (
        "CREATE TABLE IF NOT EXISTS {schema}.counter (one smallint PRIMARY KEY CHECK (one = 1),"
        " n bigint NOT NULL, format int NOT NULL, home text NOT NULL)"
    ),
)
# In hex, so that a user's settings do not change its form.
_MADE_BY: Final = "(SELECT encode(token, 'hex') FROM {schema}.commits WHERE commits.n = counter.n)"
# (with a stop, backwards) -> one batch of a scan.
_SCANS: Final = {
    (False, False): (
        "SELECT k, v FROM {schema}.records WHERE tab = %s AND k >= %s ORDER BY k LIMIT %s"
    ),
    (False, True): (
        "SELECT k, v FROM {schema}.records WHERE tab = %s AND k >= %s ORDER BY k DESC LIMIT %s"
    ),
    (True, False): (
        "SELECT k, v FROM {schema}.records WHERE tab = %s AND k >= %s AND k < %s"
        " ORDER BY k LIMIT %s"
    ),
    (True, True): (
        "SELECT k, v FROM {schema}.records WHERE tab = %s AND k >= %s AND k < %s"
        " ORDER BY k DESC LIMIT %s"
    ),
}
# version -> the statements that bring a schema of that version to the next one.
_MIGRATIONS: Final[dict[int, tuple[str, ...]]] = {}
# What two processes that make one schema at the same moment run into.
_RACES: Final = (DuplicateObject, DuplicateSchema, DuplicateTable, UniqueViolation)


class SchemaState(Struct, frozen=True, kw_only=True):
    """The version of a schema, the id of the home in it, and as whom this process is connected."""

    format: int
    home: str
    role: str
    is_owner: bool
    """Whether the role owns the tables, is a member of the role that does, or a superuser."""


class Statements:
    """The statements of one schema, as bytes; made once, because composing them takes time."""

    def __init__(self, schema: str) -> None:
        self._schema = sql.Identifier(schema)
        self._table = sql.Literal(f"{schema}.counter")
        self.begin_read = self._bytes(
            "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY;"
            " SELECT n, format, {made_by}, {clock} FROM {schema}.counter"
        )
        # The clock is read by a statement of its own, after the wait for the lock. A writer that
        # says nothing for long keeps all others waiting, so it loses its lock.
        self.begin_write = self._bytes(
            "BEGIN ISOLATION LEVEL READ COMMITTED;"
            " SET LOCAL idle_in_transaction_session_timeout = '60s';"
            " SELECT n, format FROM {schema}.counter FOR UPDATE;"
            " SELECT {made_by}, {clock} FROM {schema}.counter"
        )
        self.newest = self._bytes("SELECT n FROM {schema}.counter")
        # The privilege is that of membership, whether or not the role inherits rights by it.
        self.state = self._bytes(
            "SELECT format, home, current_user::text, pg_has_role(current_user, relowner, 'MEMBER')"
            " FROM {schema}.counter, pg_catalog.pg_class WHERE pg_class.oid = {table}::regclass"
        )
        self.get = self._bytes("SELECT v FROM {schema}.records WHERE tab = %s AND k = %s")
        self.get_many = self._bytes(
            "SELECT k, v FROM {schema}.records WHERE tab = %s AND k = ANY(%b)"
        )
        self.count = self._bytes("SELECT count(*) FROM {schema}.records WHERE tab = %s")
        self.put_many = self._bytes(
            "INSERT INTO {schema}.records (tab, k, v)"
            " SELECT %s, k, v FROM unnest(%b::bytea[], %b::bytea[]) AS new (k, v)"
            " ON CONFLICT (tab, k) DO UPDATE SET v = excluded.v"
        )
        self.delete_many = self._bytes(
            "DELETE FROM {schema}.records WHERE tab = %s AND k = ANY(%b)"
        )
        channels: dict[ToldTable, sql.Identifier] = {
            "jobs_ready": sql.Identifier(f"kb_{schema}"),
            "log": sql.Identifier(f"kblog_{schema}"),
        }
        self.listen, self.notify = (
            {table: sql.SQL(text).format(name).as_bytes() for table, name in channels.items()}
            for text in ("LISTEN {}", "NOTIFY {}")
        )
        self.advance = self._bytes("UPDATE {schema}.counter SET n = %s")
        self.sign = self._bytes("INSERT INTO {schema}.commits (n, token) VALUES (%s, %s)")
        self.forget = self._bytes("DELETE FROM {schema}.commits WHERE n <= %s")
        self.token_of = self._bytes("SELECT token FROM {schema}.commits WHERE n = %s")
        self.size = (
            sql.SQL("SELECT pg_total_relation_size({name})")
            .format(name=sql.Literal(f"{schema}.records"))
            .as_bytes()
        )
        self._scans = {shape: self._bytes(text) for shape, text in _SCANS.items()}

    def scan(self, *, has_stop: bool, reverse: bool) -> bytes:
        """One batch of a scan, by table, start, stop if it `has_stop`, and the number of rows."""
        return self._scans[has_stop, reverse]

    def _bytes(self, text: str) -> bytes:
        made_by = sql.SQL(_MADE_BY).format(schema=self._schema)
        parts = {"schema": self._schema, "clock": _CLOCK_MS, "table": self._table}
        return sql.SQL(text).format(made_by=made_by, **parts).as_bytes()


def schema_state(connection: Connection, statements: Statements) -> SchemaState | None:
    """The state of a schema; None where there is none."""
    try:
        row = connection.execute(statements.state).fetchone()
    except (InvalidSchemaName, UndefinedTable):
        return None
    if row is None:
        return None
    return SchemaState(format=row[0], home=row[1], role=row[2], is_owner=row[3])


def check_format(found: int, place: str) -> None:
    """Raise StoreTooNew for a schema of a later kb, StoreDamaged for one that is to be migrated."""
    if found > SCHEMA_FORMAT:
        detail = f"schema {found}; this one reads schema {SCHEMA_FORMAT}"
        raise StoreTooNew(detail, place=place)
    if found < SCHEMA_FORMAT:
        raise StoreDamaged(f"its schema {found} was not migrated", place=place)


def make_schema(
    connection: Connection, schema: str, statements: Statements, home: str
) -> SchemaState:
    """Make the tables that are missing; `home` is the id of a new home.

    Several processes may do so at once.
    """
    for attempt in range(_TRIES_MAX):
        try:
            with connection.transaction():
                for text in _MAKE:
                    _run(connection, schema, text)
                connection.execute(
                    sql.SQL(
                        "INSERT INTO {}.counter (one, n, format, home) VALUES (1, 0, %s, %s)"
                        " ON CONFLICT (one) DO NOTHING"
                    ).format(sql.Identifier(schema)),
                    (SCHEMA_FORMAT, home),
                )
            break
        except _RACES:
            if attempt == _TRIES_MAX - 1:
                raise
    state = schema_state(connection, statements)
    assert state is not None
    return state


def migrate(connection: Connection, schema: str, statements: Statements) -> SchemaState:
    """Bring an older schema to this version, under the writer's lock, in one transaction."""
    with connection.transaction():
        row = connection.execute(
            sql.SQL("SELECT format, home FROM {}.counter FOR UPDATE").format(sql.Identifier(schema))
        ).fetchone()
        assert row is not None
        for version in range(row[0], SCHEMA_FORMAT):
            for text in _MIGRATIONS.get(version, ()):
                _run(connection, schema, text)
        if row[0] < SCHEMA_FORMAT:
            connection.execute(
                sql.SQL("UPDATE {}.counter SET format = %s").format(sql.Identifier(schema)),
                (SCHEMA_FORMAT,),
            )
    state = schema_state(connection, statements)
    assert state is not None
    return state


def _run(connection: Connection, schema: str, text: str) -> None:
    connection.execute(sql.SQL(text).format(schema=sql.Identifier(schema)))
