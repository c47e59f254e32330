"""What an administrator, another program or an outage does to the database of a home."""

import os
import threading
import time

import pytest
from kv_pairs import keys_of, put
from postgres_server import PostgresServer, running_server

from kb.errors import (
    ReadOnlyHome,
    StoreDenied,
    StoreUnreachable,
    UsageError,
)
from kb.store.content.database import DatabaseAddress, database_address
from kb.store.postgres import connections as connections_module
from kb.store.postgres import schema as schema_module
from kb.store.postgres.postgres_env import PostgresEnvironment

ENCODINGS = ("SQL_ASCII", "LATIN1", "EUC_JP")


@pytest.mark.parametrize("encoding", ENCODINGS)
def test_encodings_of_databases(postgres: PostgresServer, encoding: str) -> None:
    """Keys and values are bytes, and names are ASCII, so any encoding will do."""
    name = f"db_{encoding.lower()}_{os.getpid()}"
    postgres.run_sql(
        f"CREATE DATABASE {name} ENCODING '{encoding}' LC_COLLATE 'C' LC_CTYPE 'C'"
        " TEMPLATE template0"
    )
    home = postgres.home("team").replace("/postgres/", f"/{name}/")
    env = PostgresEnvironment(database_address(home))
    try:
        put(env, "ü\0日".encode(), b"\xff\0")
        assert (keys_of(env), type(env.home)) == (["ü\0日".encode()], str)
    finally:
        env.close()


@pytest.mark.parametrize("encoding", ["SQL_ASCII", "LATIN1", "UTF16"])
def test_an_encoding_of_the_environment(
    address: DatabaseAddress, monkeypatch: pytest.MonkeyPatch, encoding: str
) -> None:
    """What a user has set for other programs changes nothing."""
    monkeypatch.setenv("PGCLIENTENCODING", encoding)
    env = PostgresEnvironment(address)
    try:
        put(env, b"a")
        assert (keys_of(env), type(env.home)) == ([b"a"], str)
    finally:
        env.close()


def test_a_role_without_the_right_to_read(
    postgres: PostgresServer, env: PostgresEnvironment, address: DatabaseAddress
) -> None:
    """It is told that it may not read, and who gives the right; not that it cannot write."""
    put(env, b"a")
    role, schema = f"shut_{os.getpid()}", address.schema
    postgres.run_sql(f"CREATE ROLE {role} LOGIN")
    shut = database_address(postgres.home(schema, role))
    tables = ("counter", "commits")
    for granted in ("", f"USAGE ON SCHEMA {schema}", *(f"SELECT ON {schema}.{t}" for t in tables)):
        if granted:
            postgres.run_sql(f"GRANT {granted} TO {role}")
        with pytest.raises(StoreDenied, match=r"permission denied for.* by GRANT") as denied:
            opened_and_read(shut)
        assert "written" not in str(denied.value)
    postgres.run_sql(f"GRANT SELECT ON {schema}.records TO {role}")
    assert opened_and_read(shut) == [b"a"]


def opened_and_read(address: DatabaseAddress) -> list[bytes]:
    env = PostgresEnvironment(address)
    try:
        return keys_of(env)
    finally:
        env.close()


@pytest.mark.parametrize("missing", ["INSERT", "UPDATE", "DELETE"])
def test_each_right_to_write_is_needed(
    postgres: PostgresServer, env: PostgresEnvironment, address: DatabaseAddress, missing: str
) -> None:
    """Without one of them nothing of a write is there, and reading goes on."""
    put(env, b"a")
    put(env, b"b")
    role, schema = f"no_{missing.lower()}_{os.getpid()}", address.schema
    rights = ", ".join({"SELECT", "INSERT", "UPDATE", "DELETE"} - {missing})
    postgres.run_sql(f"CREATE ROLE {role} LOGIN")
    postgres.run_sql(f"GRANT USAGE ON SCHEMA {schema} TO {role}")
    postgres.run_sql(f"GRANT {rights} ON ALL TABLES IN SCHEMA {schema} TO {role}")
    half = PostgresEnvironment(database_address(postgres.home(schema, role)))

    def change() -> None:
        with half.write() as txn:
            txn.put("docs", b"c", b"v")
            txn.delete("docs", b"a")

    try:
        with pytest.raises(ReadOnlyHome, match="permission denied"):
            change()
        assert keys_of(half) == [b"a", b"b"]
        postgres.run_sql(f"GRANT {missing} ON ALL TABLES IN SCHEMA {schema} TO {role}")
        change()
        assert keys_of(half) == [b"b", b"c"]
    finally:
        half.close()


def test_an_older_schema_and_a_role_that_does_not_own_it(
    postgres: PostgresServer,
    env: PostgresEnvironment,
    address: DatabaseAddress,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It is told who has to use this kb first."""
    reader = postgres.home_as(f"late_{os.getpid()}", postgres.home(address.schema), "read")
    monkeypatch.setattr(schema_module, "SCHEMA_FORMAT", 2)
    monkeypatch.setattr("kb.store.postgres.postgres_env.SCHEMA_FORMAT", 2)
    with pytest.raises(ReadOnlyHome, match="their owner has to use this kb first"):
        PostgresEnvironment(database_address(reader))


@pytest.mark.parametrize(
    "made",
    [
        "CREATE TABLE {}.counter (id int)",
        "CREATE TABLE {}.records (id int)",
        "CREATE VIEW {}.records AS SELECT 1",
    ],
)
def test_a_schema_of_another_program(postgres: PostgresServer, made: str) -> None:
    """Its tables stay as they are, and nobody is sent to a backup."""
    address = postgres.new_address()
    postgres.run_sql(f"CREATE SCHEMA {address.schema}")
    postgres.run_sql(made.format(address.schema))
    with pytest.raises(UsageError, match="tables that kb did not make"):
        PostgresEnvironment(address)
    tables = "SELECT count(*) FROM information_schema.tables WHERE table_schema = %s"
    assert postgres.run_sql(tables, address.schema) == [(1,)]


@pytest.mark.parametrize("setting", ["idle_in_transaction_session_timeout", "transaction_timeout"])
def test_a_transaction_that_the_server_ended(env: PostgresEnvironment, setting: str) -> None:
    """A process that was stopped for long goes on, if nobody has written; and is told otherwise."""
    put(env, b"a")
    begin = env._statements.begin_write
    assert b"idle_in_transaction_session_timeout = '60s'" in begin
    limit = b"SET LOCAL %s = '50ms'" % setting.encode()
    env._statements.begin_write = begin.replace(
        b"SET LOCAL idle_in_transaction_session_timeout = '60s'", limit
    )
    with env.write() as txn:
        txn.put("docs", b"b", b"v")
        time.sleep(0.3)
        env._statements.begin_write = begin
        assert txn.get("docs", b"a") == b"v"
    assert keys_of(env) == [b"a", b"b"]
    env._statements.begin_write = begin.replace(
        b"SET LOCAL idle_in_transaction_session_timeout = '60s'", limit
    )

    def overtaken() -> None:
        with env.write() as txn:
            txn.put("docs", b"c", b"v")
            time.sleep(0.3)
            env._statements.begin_write = begin
            put(env, b"other")
            txn.get("docs", b"x")

    with pytest.raises(StoreUnreachable, match="somebody else has written since"):
        overtaken()
    assert keys_of(env) == [b"a", b"b", b"other"]


def test_all_wait_for_one_end_of_an_outage(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who comes while the server is away does not wait for it anew, so a queue is short."""
    monkeypatch.setattr("kb.store.postgres.session.READ_PATIENCE_S", 1.0)
    with running_server() as server:
        env = PostgresEnvironment(server.new_address())
        try:
            put(env, b"a")
            server.stop()
            began = time.monotonic()
            for _ in range(8):
                with pytest.raises(StoreUnreachable):
                    keys_of(env)
            assert time.monotonic() - began < 2.5
            server.start()
            assert keys_of(env) == [b"a"]
            # The next outage is waited for again.
            server.stop()
            starter = threading.Timer(0.1, server.start)
            starter.start()
            assert keys_of(env) == [b"a"]
            starter.join()
        finally:
            env.close()


def test_an_outage_long_ago_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody who met one, and asks again much later, waits as at first."""
    monkeypatch.setattr(connections_module, "WRITE_PATIENCE_S", 0.2)
    pool = connections_module.Connections(database_address("postgresql://h/d"))
    first = pool._away_s()
    time.sleep(0.1)
    assert 0.1 <= pool._away_s() < 0.2
    time.sleep(0.3)
    assert (first, pool._away_s()) == (0.0, 0.0)


def lose_the_last_commit(postgres: PostgresServer, address: DatabaseAddress, key: bytes) -> None:
    """Have the database be as a replica that lacks the newest commit, which put one key."""
    name = address.schema
    postgres.run_sql(f"DELETE FROM {name}.records WHERE tab = 'docs' AND k = %s", key)
    postgres.run_sql(f"DELETE FROM {name}.commits WHERE n = (SELECT n FROM {name}.counter)")
    postgres.run_sql(f"UPDATE {name}.counter SET n = n - 1")


def test_a_number_that_stands_for_another_commit(
    postgres: PostgresServer, env: PostgresEnvironment, address: DatabaseAddress
) -> None:
    """After a failover that lost a commit its number comes again: what was read is not kept."""
    put(env, b"a")
    put(env, b"lost")
    with env.read() as txn:
        assert txn.get("docs", b"lost") == b"v"
        assert txn.get("docs", b"new") is None
        number = txn.last_txn()
    lose_the_last_commit(postgres, address, b"lost")
    other = PostgresEnvironment(address)
    put(other, b"new")
    other.close()
    with env.read() as txn:
        assert txn.last_txn() == number
        assert (txn.get("docs", b"lost"), txn.get("docs", b"new")) == (None, b"v")


def test_a_writer_does_not_go_on_in_another_history(
    postgres: PostgresServer, env: PostgresEnvironment, address: DatabaseAddress
) -> None:
    """Its connection is lost with the newest commit, and another one has taken that's number."""
    put(env, b"a")
    put(env, b"lost")

    def write_meanwhile() -> None:
        with env.write() as txn:
            txn.put("docs", b"after lost", txn.get("docs", b"lost") or b"")
            postgres.run_sql(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                " WHERE state = 'idle in transaction' AND application_name = 'kb'"
            )
            lose_the_last_commit(postgres, address, b"lost")
            other = PostgresEnvironment(address)
            put(other, b"new")
            other.close()

    with pytest.raises(StoreUnreachable, match="somebody else has written since"):
        write_meanwhile()
    assert keys_of(env) == [b"a", b"new"]
