"""`kb serve` in a process of its own, and requests to it over plain sockets."""

import contextlib
import gzip
import http.client
import json
import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

import forked_commands
from commands import KB, TIMEOUT_S, Home, surroundings
from msgspec import Struct

HOST: Final = "127.0.0.1"
END_S: Final = 60.0


class Got(Struct, frozen=True, kw_only=True):
    """What came back."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        """The body as JSON, unpacked where it is packed."""
        packed = self.headers.get("content-encoding") == "gzip"
        return json.loads(gzip.decompress(self.body) if packed else self.body)


class Running:
    """One server; its process stays when a test has ended it itself."""

    def __init__(
        self, process: "subprocess.Popen[str] | forked_commands.Process", port: int
    ) -> None:
        self.process = process
        self.port = port

    def get(self, path: str, token: str | None = None, **headers: str) -> Got:
        return self.ask("GET", path, token=token, **headers)

    def post(self, path: str, body: object, token: str | None = None, **headers: str) -> Got:
        """Send JSON; bytes as they are."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        headers = {"content_type": "application/json", **headers}
        return self.ask("POST", path, data, token=token, **headers)

    def ask(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        *,
        token: str | None = None,
        **headers: str,
    ) -> Got:
        """One request on a connection of its own; _ in the name of a header is -."""
        said = {name.replace("_", "-"): value for name, value in headers.items()}
        if token is not None:
            said["authorization"] = f"Bearer {token}"
        connection = http.client.HTTPConnection(HOST, self.port, timeout=TIMEOUT_S)
        with contextlib.closing(connection):
            connection.request(method, path, body, said)
            answer = connection.getresponse()
            names = {name.lower(): value for name, value in answer.getheaders()}
            return Got(status=answer.status, headers=names, body=answer.read())

    def stop(self) -> tuple[int, str]:
        """Ask it to end; its exit code, and what it said on standard error."""
        self.process.send_signal(signal.SIGTERM)
        _, err = self.process.communicate(timeout=END_S)
        return self.process.returncode, err


class Caller(Protocol):
    """Knows how the command is called."""

    def argv(self, *args: object) -> list[str]:
        """The whole command line."""
        ...


def start(
    home: Caller,
    *args: str,
    before: Sequence[str] = (),
    env: dict[str, str] | None = None,
    cwd: Path | None = None,
    forks: bool = True,
    wants_token: bool = False,
) -> Running:
    """A server on a free port, once it takes requests; `before` are options of `kb` itself.

    One that does not fork has loaded nothing but what it needs. Unless it `wants_token`, whoever
    asks is the operator.
    """
    open_door = () if wants_token else ("--no-token",)
    argv = home.argv(*before, "serve", "--port", "0", *open_door, *args)
    process = _started(argv, env or surroundings(), cwd, forks=forks)
    assert process.stdout is not None
    line = process.stdout.readline()
    found = re.fullmatch(rf"kb answers at http://{HOST}:(\d+)\n", line)
    if found is None:
        process.kill()
        _, err = process.communicate()
        raise AssertionError(line + err)
    return Running(process, int(found[1]))


def _started(
    argv: list[str], env: dict[str, str], cwd: Path | None, *, forks: bool
) -> "subprocess.Popen[str] | forked_commands.Process":
    if forks and argv[0] == KB and forked_commands.can_fork(env):
        return forked_commands.Process(argv, env=env, cwd=cwd)
    return subprocess.Popen(
        argv,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=env,
        cwd=cwd,
    )


@contextlib.contextmanager
def serving(home: Caller, *args: str, **options: Any) -> Iterator[Running]:
    """A server for the length of the block."""
    server = start(home, *args, **options)
    try:
        yield server
    finally:
        if server.process.poll() is None:
            server.process.kill()
        server.process.communicate()


def settings(**said: object) -> tuple[str, ...]:
    """`--cfg` for a home's argv: settings of `serve`."""
    return tuple(
        part for name, value in said.items() for part in ("--cfg", f"serve.{name}={value}")
    )


class ConfiguredHome(Home):
    """A home whose every command has these options in front."""

    def __init__(self, root: Path, options: tuple[str, ...]) -> None:
        super().__init__(root)
        self._options = options

    def argv(self, *args: object) -> list[str]:
        first, *rest = super().argv(*args)
        return [first, *self._options, *rest]


def until(holds: Callable[[], Any], wait_s: float = 120.0) -> Any:
    """What `holds` says, once it is true."""
    end_s = time.monotonic() + wait_s
    while not (found := holds()):
        assert time.monotonic() < end_s, "it did not come about"
        time.sleep(0.02)
    return found
