"""The ways to a remote: a folder, ssh, https; each by the library, which is let do no more.

No setting of git's but the address of `origin` is followed: no command of a person's is started
instead of ssh, no proxy is asked, no certificate is passed over, no redirect is followed.
"""

import contextlib
import os
import subprocess
import tempfile
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast

from kb.notebook.remote import Remote, shown

if TYPE_CHECKING:
    from dulwich.client import GitClient
    from dulwich.repo import Repo
    from urllib3 import BaseHTTPResponse, PoolManager
    from urllib3.exceptions import HTTPError

_CONNECT_S: Final = 15
_READ_S: Final = 30
_SAID_BYTES_MAX: Final = 1 << 16
_END_S: Final = 1.0
_SSH: Final = (
    *("ssh", "-T", "-a", "-x"),
    *("-o", "BatchMode=yes"),
    *("-o", f"ConnectTimeout={_CONNECT_S}"),
    *("-o", "ServerAliveInterval=15"),
    *("-o", "ServerAliveCountMax=2"),
)
_LOGIN: Final = "set KB_NOTEBOOK_USER and KB_NOTEBOOK_TOKEN"
_USER: Final = "git"
_AGENT: Final = "git/kb"


class Unwilling(Exception):
    """The remote is none that can be pushed to as it is; `str()` says what to do."""


def client_for(remote: Remote, root: Path) -> "tuple[GitClient, bytes]":
    """Who speaks to a remote, and the path that it is asked for. Nothing is connected yet."""
    if remote.kind == "local":
        return _folder_client(), os.fsencode(root / remote.path)
    if remote.kind == "ssh":
        return _ssh_client(remote), os.fsencode(remote.path)
    return _http_client(remote, os.environ), b""


def _folder_client() -> "GitClient":
    from dulwich.client import LocalGitClient
    from dulwich.repo import Repo

    class FolderClient(LocalGitClient):
        """A bare repository on this machine; no hook of it is run."""

        @classmethod
        def _open_repo(cls, path: str | bytes) -> "closing[Repo]":
            repo = Repo(os.fsdecode(path))
            if not repo.bare:
                repo.close()
                raise Unwilling("it has files checked out; push to a bare repository")
            # The ref is synced, so what it names has to be, before it.
            repo.object_store.fsync_object_files = True
            return closing(repo)

    return FolderClient()


def _ssh_client(remote: Remote) -> "GitClient":
    from dulwich.client import SSHGitClient

    vendor = cast("Any", _Ssh())
    return SSHGitClient(remote.host, port=remote.port, username=remote.user, vendor=vendor)


class _Ssh:
    """Starts the system's `ssh`, as the person's own settings for it say, and nothing else."""

    def run_command(
        self,
        host: str,
        command: bytes,
        username: str | None = None,
        port: int | None = None,
        **_: object,
    ) -> "_SshProcess":
        """Start it. Raises OSError where there is no ssh."""
        target = f"{username}@{host}" if username else host
        where = ("-p", str(port)) if port else ()
        return _SshProcess([*_SSH, *where, "--", target, os.fsdecode(command)])


class _SshProcess:
    """The pipes of a running ssh; what it says besides goes to a file, so that it never waits."""

    def __init__(self, argv: list[str]) -> None:
        self._said = tempfile.TemporaryFile()  # noqa: SIM115  open as long as the process
        self._process = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._said
        )
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._stdin, self._stdout = self._process.stdin, self._process.stdout
        self.read = self._stdout.read
        self.stderr = self

    def write(self, data: bytes) -> int:
        """Hand bytes over at once."""
        count = self._stdin.write(data)
        self._stdin.flush()
        return count

    def can_read(self) -> bool:
        """Nobody asks but fetches."""
        return False

    def readlines(self) -> list[bytes]:
        """What it has said of its trouble; asked for when nothing more comes from it."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_END_S)
        return os.pread(self._said.fileno(), _SAID_BYTES_MAX, 0).splitlines(keepends=True)

    def close(self) -> None:
        """End it; takes no longer than a few seconds."""
        for pipe in (self._stdin, self._stdout):
            with contextlib.suppress(OSError):
                pipe.close()
        try:
            self._process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._said.close()


def _http_client(remote: Remote, env: Mapping[str, str]) -> "GitClient":
    import ssl

    import urllib3
    from dulwich.client import Urllib3HttpGitClient

    token = env.get("KB_NOTEBOOK_TOKEN") or None
    user = env.get("KB_NOTEBOOK_USER") or remote.user or _USER
    tls = ssl.create_default_context()
    pool = urllib3.PoolManager(headers={"user-agent": _AGENT}, ssl_context=tls)
    return Urllib3HttpGitClient(
        remote.path,
        pool_manager=cast("Any", _OneHost(pool)),
        username=user if token else None,
        password=token,
    )


class _OneHost:
    """Requests that go where they are sent and nowhere else, each with time limits."""

    def __init__(self, pool: "PoolManager") -> None:
        self._pool = pool
        self.headers = pool.headers

    def request(self, method: str, url: str, **said: Any) -> "BaseHTTPResponse":
        """The answer, which is a 200. Raises Unwilling, and GitProtocolError for what may pass."""
        import urllib3
        from dulwich.errors import GitProtocolError

        timeout = urllib3.Timeout(connect=_CONNECT_S, read=_READ_S)
        try:
            answer = self._pool.request(
                method, url, redirect=False, retries=False, timeout=timeout, **said
            )
        except urllib3.exceptions.HTTPError as error:
            raise GitProtocolError(_trouble(error)) from error
        if answer.status == 200:
            return answer
        answer.close()
        if 300 <= answer.status < 400:
            there = shown(answer.headers.get("location", "nowhere"))
            raise Unwilling(f"it redirects to {there}; if that is right, make it origin's address")
        if answer.status in (401, 403):
            raise Unwilling(f"it wants a login ({answer.status}); {_LOGIN}")
        if answer.status == 404:
            raise Unwilling(f"it knows no such repository (404), or not without a login; {_LOGIN}")
        raise GitProtocolError(f"it answers with status {answer.status}")

    def clear(self) -> None:
        """Close its connections."""
        self._pool.clear()


def _trouble(error: "HTTPError") -> str:
    from urllib3 import exceptions

    match error:
        case exceptions.SSLError():
            return f"no secure connection: {error}"
        case exceptions.NewConnectionError() | exceptions.NameResolutionError():
            return "it cannot be reached"
        case exceptions.TimeoutError():
            return "it does not answer in time"
        case _:
            return f"the connection failed ({type(error).__name__})"
