"""What goes wrong between kb and the server of its database, and what is left of the store then."""

# Long because it is a list of what can go wrong, each a test of its own.

import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from cutting_proxy import CuttingProxy, proxy_before
from kv_pairs import keys_of, put
from postgres_server import PostgresServer, running_server

from kb.errors import (
    KbError,
    NotFound,
    ReadOnlyHome,
    StoreDamaged,
    StoreDenied,
    StoreFull,
    StoreTooNew,
    StoreUnreachable,
    UsageError,
    WrongProcess,
)
from kb.store.content.database import DatabaseAddress, database_address
from kb.store.postgres import schema as schema_module
from kb.store.postgres.connections import SETTINGS
from kb.store.postgres.postgres_env import PostgresEnvironment


@pytest.fixture(scope="module")
def own_server() -> Iterator[PostgresServer]:
    """A server that nobody else uses, to be stopped."""
    with running_server() as server:
        yield server


@pytest.fixture
def proxy(postgres: PostgresServer) -> Iterator[CuttingProxy]:
    with proxy_before(str(postgres.folder / f".s.PGSQL.{postgres.port}")) as made:
        yield made


@pytest.fixture
def cut_env(proxy: CuttingProxy, address: DatabaseAddress) -> Iterator[PostgresEnvironment]:
    through = database_address(
        f"postgresql://kb@127.0.0.1:{proxy.port}/postgres/{address.schema}?sslmode=disable"
    )
    made = PostgresEnvironment(through)
    yield made
    made.close()


def test_a_lost_answer_to_a_commit_is_found_out(
    proxy: CuttingProxy, cut_env: PostgresEnvironment
) -> None:
    """The commit was made and its answer lost: it is not made again, and no error is raised."""
    put(cut_env, b"a")
    before = cut_env.last_txn()
    with cut_env.write() as txn:
        txn.put("docs", b"n", b"%d" % (int(txn.get("docs", b"n") or b"0") + 1))
        proxy.cut = "answer"
    assert (proxy.cuts, cut_env.last_txn()) == (1, before + 1)
    assert keys_of(cut_env) == [b"a", b"n"]


def test_a_lost_commit_is_made_again(proxy: CuttingProxy, cut_env: PostgresEnvironment) -> None:
    """The commit never arrived, and nobody has written since: it is sent once more."""
    put(cut_env, b"a")
    before = cut_env.last_txn()
    with cut_env.write() as txn:
        txn.put("docs", b"b", b"v")
        txn.delete("docs", b"a")
        proxy.cut = "request"
    assert (proxy.cuts, cut_env.last_txn()) == (1, before + 1)
    assert keys_of(cut_env) == [b"b"]


def test_a_commit_that_others_overtook_is_given_up(
    proxy: CuttingProxy, cut_env: PostgresEnvironment, env: PostgresEnvironment
) -> None:
    """Somebody wrote before the lost one could be sent again: nothing of it is there."""

    def write_while_cut() -> None:
        with cut_env.write() as txn:
            txn.put("docs", b"mine", b"v")
            proxy.cut = "request"
            # The next statement loses the connection and its lock; the other writer goes first.
            thread = threading.Thread(target=put, args=(env, b"other"))
            thread.start()
            drop_writers(env)
            thread.join(10)
            txn.get("docs", b"x")

    with pytest.raises(StoreUnreachable, match="somebody else has written since"):
        write_while_cut()
    assert keys_of(env) == [b"other"]


def drop_writers(env: PostgresEnvironment) -> None:
    """End every connection that is in a transaction, as a server does that is shut down."""
    with env._lent() as connection:
        connection.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE state = 'idle in transaction' AND application_name = 'kb'"
        )


def test_a_transaction_goes_on_over_another_connection(env: PostgresEnvironment) -> None:
    """Reader and writer go on where nobody has written meanwhile, with what was sent before."""
    put(env, b"a")
    with env.write() as txn:
        txn.put("docs", b"b", b"v")
        assert [key for key, _ in txn.scan("docs")] == [b"a", b"b"]
        txn.put("docs", b"c", b"v")
        drop_writers(env)
        assert [key for key, _ in txn.scan("docs")] == [b"a", b"b", b"c"]
    with env.read() as txn:
        drop_writers(env)
        assert txn.count("docs") == 3


def test_a_view_that_is_lost_after_a_commit_is_not_mixed(env: PostgresEnvironment) -> None:
    """A reader never sees two moments: it is told that the connection was lost."""

    def read_twice() -> None:
        with env.read() as txn:
            put(env, b"b")
            drop_writers(env)
            txn.count("docs")

    with pytest.raises(StoreUnreachable):
        read_twice()


def test_a_server_that_starts_again_is_waited_for(own_server: PostgresServer) -> None:
    """In the middle of a transaction and between two of them; what was committed is there."""
    env = PostgresEnvironment(own_server.new_address())
    try:
        put(env, b"a")
        own_server.stop()
        starter = threading.Timer(0.5, own_server.start)
        starter.start()
        put(env, b"b")
        starter.join()
        with env.write() as txn:
            txn.put("docs", b"c", b"v")
            own_server.restart()
        assert keys_of(env) == [b"a", b"b", b"c"]
    finally:
        env.close()


def test_one_who_was_never_there_is_told_at_once(own_server: PostgresServer) -> None:
    """No server, no database, no user: one line, without a stack of the driver."""
    address = own_server.new_address()
    PostgresEnvironment(address).close()
    own_server.stop()
    with pytest.raises(StoreUnreachable, match="connection") as told:
        PostgresEnvironment(address)
    own_server.start()
    assert "\n" not in str(told.value)
    nowhere = address.dsn.replace("/postgres?", "/nowhere?")
    with pytest.raises(StoreDenied, match='database "nowhere" does not exist'):
        PostgresEnvironment(DatabaseAddress(dsn=nowhere))
    with pytest.raises(StoreDenied, match='role "nobody" does not exist'):
        PostgresEnvironment(database_address(own_server.home(user="nobody")))


def test_settings_that_libpq_cannot_read(
    address: DatabaseAddress, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are a wrong call, whoever set them: nothing is damaged, and trying again is no help."""
    for dsn, detail in (
        (f"{address.dsn}&bogus=1", 'invalid URI query parameter: "bogus"'),
        (f"{address.dsn}&sslmode=bogus", 'invalid sslmode value: "bogus"'),
        (address.dsn.replace(f":{postgres.port}", ":many"), 'invalid integer value "many"'),
        ("postgresql:///?service=nowhere", 'definition of service "nowhere" not found'),
    ):
        with pytest.raises(UsageError, match=detail) as refused:
            PostgresEnvironment(DatabaseAddress(dsn=dsn))
        assert "try again" not in str(refused.value)
    monkeypatch.setenv("PGSSLMODE", "bogus")
    with pytest.raises(UsageError, match="invalid sslmode value"):
        PostgresEnvironment(address)


def test_who_is_never_let_in(postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Trying again changes nothing, and the error does not speak of a password that was right."""
    name = f"shut_out_{os.getpid()}"
    postgres.run_sql(f"CREATE ROLE {name} NOLOGIN PASSWORD 'right-secret'")
    monkeypatch.setenv("PGPASSWORD", "right-secret")
    by_port = database_address(postgres.home_by_port("kb", name)).dsn
    for dsn, detail in (
        (by_port, "is not permitted to log in"),
        (f"{by_port}?sslmode=require", "does not support SSL"),
    ):
        with pytest.raises(StoreDenied, match=detail) as denied:
            PostgresEnvironment(DatabaseAddress(dsn=dsn))
        assert "PGPASSWORD" not in str(denied.value)


def test_a_wrong_password_is_not_told(
    postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error says what to do, and no password; one in the address is refused, and not told."""
    name = f"let_in_{os.getpid()}"
    postgres.run_sql(f"CREATE ROLE {name} LOGIN PASSWORD 'right-secret'")
    postgres.run_sql(f"GRANT CREATE ON DATABASE postgres TO {name}")
    address = database_address(postgres.home_by_port(name, name))
    monkeypatch.setenv("PGPASSWORD", "wrong-secret")
    with pytest.raises(StoreDenied, match="PGPASSWORD") as told:
        PostgresEnvironment(address)
    assert "secret" not in str(told.value)
    monkeypatch.delenv("PGPASSWORD")
    with pytest.raises(StoreDenied, match="no password supplied"):
        PostgresEnvironment(address)
    monkeypatch.setenv("PGPASSWORD", "right-secret")
    PostgresEnvironment(address).close()
    for bad in (f"postgresql://{name}:right-secret@h/d", "postgres://h/d?password=right-secret"):
        with pytest.raises(UsageError, match="has a password") as refused:
            database_address(bad)
        assert "secret" not in str(refused.value)


def test_a_user_who_may_only_read(
    postgres: PostgresServer, env: PostgresEnvironment, address: DatabaseAddress
) -> None:
    """Reads; whatever they write is refused in one line, and a new home they cannot make."""
    put(env, b"a")
    reader = f"reader_{os.getpid()}"
    name = address.schema
    postgres.run_sql(f"CREATE ROLE {reader} LOGIN")
    postgres.run_sql(f"GRANT USAGE ON SCHEMA {name} TO {reader}")
    postgres.run_sql(f"GRANT SELECT ON ALL TABLES IN SCHEMA {name} TO {reader}")
    reading = PostgresEnvironment(database_address(postgres.home(name, reader)))
    try:
        assert keys_of(reading) == [b"a"]
        with pytest.raises(ReadOnlyHome, match="permission denied"):
            put(reading, b"b")
    finally:
        reading.close()
    with pytest.raises(ReadOnlyHome, match="permission denied"):
        PostgresEnvironment(database_address(postgres.home(user=reader)))
    assert keys_of(env) == [b"a"]


def test_schemas_of_other_versions(
    env: PostgresEnvironment, address: DatabaseAddress, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A later one is refused, also by who has it open; an older one is migrated, once."""
    put(env, b"a")
    monkeypatch.setattr(schema_module, "SCHEMA_FORMAT", 2)
    monkeypatch.setattr("kb.store.postgres.postgres_env.SCHEMA_FORMAT", 2)
    added = "CREATE TABLE {schema}.added (n int)"
    monkeypatch.setattr(schema_module, "_MIGRATIONS", {1: (added,)})
    for _ in range(2):
        newer = PostgresEnvironment(address)
        assert keys_of(newer) == [b"a"]
        newer.close()
    monkeypatch.undo()
    for use in (lambda: PostgresEnvironment(address), lambda: put(env, b"b")):
        with pytest.raises(StoreTooNew, match="update kb"):
            use()


def test_a_home_that_was_removed(
    postgres: PostgresServer, env: PostgresEnvironment, address: DatabaseAddress
) -> None:
    """It is not made again by somebody who has it open, nor by somebody who only reads."""
    postgres.drop(address.schema)
    with pytest.raises(StoreDamaged, match="missing"):
        put(env, b"a")
    with pytest.raises(NotFound):
        PostgresEnvironment(address, create=False)


def test_many_make_one_home_at_once(address: DatabaseAddress) -> None:
    """Eight that come first at the same moment all get the one home."""
    homes: list[str] = []

    def make() -> None:
        made = PostgresEnvironment(address)
        homes.append(made.home)
        made.close()

    threads = [threading.Thread(target=make) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert len(homes) == 8
    assert len(set(homes)) == 1


def test_reads_nest_on_every_thread(address: DatabaseAddress) -> None:
    """As many threads as a server has, each with three views open, do not wait for one another."""
    env = PostgresEnvironment(address)
    put(env, b"a")
    met = threading.Barrier(20)
    seen: list[int] = []

    def nest() -> None:
        with env.read() as one, env.read() as two:
            met.wait(30)
            with env.read() as three:
                seen.append(one.count("docs") + two.count("docs") + three.count("docs"))

    threads = [threading.Thread(target=nest) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    env.close()
    assert seen == [3] * 20


def test_no_connection_left(own_server: PostgresServer) -> None:
    """The server says that it has no room for another: one line, and it works again later."""
    held: list[psycopg.Connection] = []
    address = own_server.new_address()
    PostgresEnvironment(address).close()
    own_server.run_sql(f"CREATE ROLE few_{os.getpid()} LOGIN CONNECTION LIMIT 1")
    own_server.run_sql(f"GRANT USAGE ON SCHEMA {address.schema} TO few_{os.getpid()}")
    own_server.run_sql(
        f"GRANT SELECT ON ALL TABLES IN SCHEMA {address.schema} TO few_{os.getpid()}"
    )
    few = database_address(own_server.home(address.schema, f"few_{os.getpid()}"))
    held.append(psycopg.connect(few.dsn))
    try:
        with pytest.raises(StoreUnreachable, match="too many connections"):
            PostgresEnvironment(few)
    finally:
        held[0].close()
    asked = "SELECT 1 FROM pg_stat_activity WHERE usename = %s"
    deadline = time.monotonic() + 30
    while own_server.run_sql(asked, few.dsn.split("//")[1].partition("@")[0]):
        assert time.monotonic() < deadline
    PostgresEnvironment(few).close()


WRITER = """
import os, sys
from kb.store.content.database import database_address
from kb.store.postgres.connections import SETTINGS
from kb.store.postgres.postgres_env import PostgresEnvironment
env = PostgresEnvironment(database_address(sys.argv[1]))
with env.write() as txn:
    txn.put("docs", b"half", b"v")
    list(txn.scan("docs"))
    print("in", flush=True)
    sys.stdin.read()
"""


def test_a_killed_writer_frees_the_lock(
    postgres: PostgresServer, env: PostgresEnvironment, address: DatabaseAddress
) -> None:
    """The next writer does not wait, and nothing of the killed one is there."""
    child = subprocess.Popen(
        [sys.executable, "-c", WRITER, address.shown],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        cwd=Path(__file__).parents[2],
    )
    assert child.stdin is not None
    assert child.stdout is not None
    assert child.stdout.readline() == b"in\n"
    child.send_signal(signal.SIGKILL)
    child.wait(10)
    put(env, b"a")
    child.stdin.close()
    child.stdout.close()
    assert keys_of(env) == [b"a"]


def test_a_fork_does_not_use_the_connections(env: PostgresEnvironment) -> None:
    """Two processes on one connection would mix their answers; the parent's goes on."""
    put(env, b"a")
    child = os.fork()
    if child == 0:
        code = 1
        try:
            env.read().__enter__()
        except WrongProcess:
            code = 0
        except KbError:
            code = 2
        os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert keys_of(env) == [b"a"]


def test_a_network_that_hangs(
    proxy: CuttingProxy,
    cut_env: PostgresEnvironment,
    env: PostgresEnvironment,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Who reads, who writes and who comes is told in one line, and nothing is half written."""
    put(cut_env, b"a")
    monkeypatch.setattr("kb.store.postgres.connections.ANSWER_S", 0.3)
    monkeypatch.setitem(SETTINGS, "connect_timeout", 2)
    for patience in ("READ_PATIENCE_S", "WRITE_PATIENCE_S"):
        monkeypatch.setattr(f"kb.store.postgres.session.{patience}", 0.1)

    def write_while_it_begins_to_hang() -> None:
        with cut_env.write() as txn:
            txn.put("docs", b"b", b"v")
            proxy.hangs = True

    with pytest.raises(StoreUnreachable) as told:
        write_while_it_begins_to_hang()
    assert "\n" not in str(told.value)
    with pytest.raises(StoreUnreachable):
        keys_of(cut_env)
    drop_writers(env)
    assert keys_of(env) == [b"a"]
    proxy.hangs = False
    put(cut_env, b"c")
    assert keys_of(env) == [b"a", b"c"]


def test_a_full_disk_of_the_server(
    postgres: PostgresServer, env: PostgresEnvironment, address: DatabaseAddress
) -> None:
    """The server says that it has no room: nothing of the write is there, and it works later."""
    put(env, b"a")
    name = address.schema
    postgres.run_sql(
        f"CREATE FUNCTION {name}.full_disk() RETURNS trigger LANGUAGE plpgsql AS "
        "$$ BEGIN RAISE EXCEPTION 'could not extend file' USING ERRCODE = 'disk_full'; END $$"
    )
    postgres.run_sql(
        f"CREATE TRIGGER full_disk BEFORE INSERT ON {name}.commits"
        f" EXECUTE FUNCTION {name}.full_disk()"
    )
    with pytest.raises(StoreFull, match="could not extend file"):
        put(env, b"b")
    assert keys_of(env) == [b"a"]
    postgres.run_sql(f"DROP TRIGGER full_disk ON {name}.commits")
    put(env, b"b")
    assert keys_of(env) == [b"a", b"b"]


def test_notices_of_jobs(env: PostgresEnvironment, address: DatabaseAddress) -> None:
    """Another process that makes a job ready wakes who listens; other writes do not."""
    other = PostgresEnvironment(address)
    woken = threading.Semaphore(0)
    stop = env.tell_of("jobs_ready", woken.release)
    try:
        assert woken.acquire(timeout=30)
        put(other, b"a")
        with other.write() as txn:
            txn.put("jobs_ready", b"\2", b"v")
        assert woken.acquire(timeout=30)
        with other.write() as txn:
            txn.delete("jobs_ready", b"\2")
            txn.put("log", b"\1", b"v")
        assert not woken.acquire(timeout=0.2)
        stop()
        stop = env.tell_of("log", woken.release)
        assert woken.acquire(timeout=30)
        with other.write() as txn:
            txn.put("log", b"\2", b"v")
        assert woken.acquire(timeout=30)
    finally:
        stop()
        other.close()
