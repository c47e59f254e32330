"""The transports to a remote: a folder, ssh, https.

Of git's settings only the address of `origin` is followed: no other command is started instead of
ssh, no proxy is used, no certificate check is skipped, no redirect is followed.
"""

import base64
import contextlib
import os
import re
import subprocess
import tempfile
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import urlsplit

from msgspec import Struct

from kb.knowledge.notebook.remote import Remote, host_of, may_have_token, shown

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
_BASIC: Final = re.compile(r"(?:^|,)\s*basic\b", re.IGNORECASE)
_BEARER: Final = re.compile(r"(?:^|,)\s*bearer\b", re.IGNORECASE)
_USER: Final = "git"
_AGENT: Final = "git/kb"


class RemoteUnusable(Exception):
    """The remote cannot be pushed to as it is; `str()` says what to do."""


def client_for(remote: Remote, root: Path, token_host: str) -> "tuple[GitClient, bytes]":
    """The client for a remote, and the path that it pushes to. Nothing is connected yet.

    `token_host` is the one host that may have KB_NOTEBOOK_TOKEN.
    """
    if remote.kind == "local":
        return _folder_client(), os.fsencode(root / remote.path)
    if remote.kind == "ssh":
        return _ssh_client(remote), os.fsencode(remote.path)
    token = os.environ.get("KB_NOTEBOOK_TOKEN", "") if may_have_token(remote, token_host) else ""
    user = os.environ.get("KB_NOTEBOOK_USER") or remote.user or _USER
    return _http_client(remote, Login(user=user, token=token)), b""


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
                raise RemoteUnusable("it has files checked out; push to a bare repository")
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
    """The pipes of a running ssh; its standard error goes to a file, so that it never blocks."""

    def __init__(self, argv: list[str]) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115  open as long as the process
        self._process = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._errors
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
        return os.pread(self._errors.fileno(), _SAID_BYTES_MAX, 0).splitlines(keepends=True)

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
        self._errors.close()


class Login(Struct, frozen=True, kw_only=True):
    """The credentials for a host, sent once it asks for them; without a token, none."""

    user: str
    token: str

    def answer_to(self, challenge: str) -> str | None:
        """The header that answers a challenge; None for one that it cannot answer."""
        if not self.token:
            return None
        if _BASIC.search(challenge):
            credentials = f"{self.user}:{self.token}".encode()
            return f"Basic {base64.b64encode(credentials).decode()}"
        return f"Bearer {self.token}" if _BEARER.search(challenge) else None


def _http_client(remote: Remote, login: Login) -> "GitClient":
    import ssl

    import urllib3
    from dulwich.client import Urllib3HttpGitClient

    tls = ssl.create_default_context()
    pool = urllib3.PoolManager(headers={"user-agent": _AGENT}, ssl_context=tls)
    one_host = _OneHost(pool, remote, login)
    return Urllib3HttpGitClient(remote.path, pool_manager=cast("Any", one_host))


class _OneHost:
    """HTTP requests to one host, without redirects, each with time limits.

    The login is sent once the host asks for it, and to no other host.
    """

    def __init__(self, pool: "PoolManager", remote: Remote, login: Login) -> None:
        self._pool = pool
        self._origin = urlsplit(remote.path)[:2]
        self._login = login
        self._how = (
            f"set KB_NOTEBOOK_USER and KB_NOTEBOOK_TOKEN, and in your own settings "
            f'notebook.token_host = "{host_of(remote)}"'
        )
        self._shown: str | None = None
        self.headers = pool.headers

    def request(self, method: str, url: str, **options: Any) -> "BaseHTTPResponse":
        """The response, a 200. Raises RemoteUnusable, or GitProtocolError for a passing trouble."""
        from dulwich.errors import GitProtocolError

        if urlsplit(url)[:2] != self._origin:
            raise RemoteUnusable("it leads to another host")
        body = options.get("body")
        if self._login.token and not (self._shown or body is None or isinstance(body, bytes)):
            # What can be sent once only: ask first whether a login is wanted, as git does.
            self._answer(method, url, {**options, "body": b"0000"}).close()
        answer = self._answer(method, url, options)
        if answer.status == 200:
            return answer
        answer.close()
        if 300 <= answer.status < 400:
            location = shown(answer.headers.get("location", "nowhere"))
            raise RemoteUnusable(
                f"it redirects to {location}; if that is right, make it origin's address"
            )
        if answer.status in (401, 403):
            raise RemoteUnusable(f"it wants a login ({answer.status}); {self._how}")
        if answer.status == 404:
            detail = f"it knows no such repository (404), or not without a login; {self._how}"
            raise RemoteUnusable(detail)
        raise GitProtocolError(f"it answers with status {answer.status}")

    def _answer(self, method: str, url: str, options: dict[str, Any]) -> "BaseHTTPResponse":
        """The response; after a request for the login, the response to that."""
        answer = self._send(method, url, options)
        if answer.status != 401 or self._shown:
            return answer
        self._shown = self._login.answer_to(answer.headers.get("www-authenticate", ""))
        if self._shown is None:
            return answer
        answer.close()
        return self._send(method, url, options)

    def _send(self, method: str, url: str, options: dict[str, Any]) -> "BaseHTTPResponse":
        import urllib3
        from dulwich.errors import GitProtocolError

        timeout = urllib3.Timeout(connect=_CONNECT_S, read=_READ_S)
        headers = dict(options.get("headers", {}))
        if self._shown:
            headers["authorization"] = self._shown
        if isinstance(body := options.get("body"), bytes):
            headers["Content-Length"] = str(len(body))
        try:
            return self._pool.request(
                method,
                url,
                redirect=False,
                retries=False,
                timeout=timeout,
                **{**options, "headers": headers},
            )
        except urllib3.exceptions.HTTPError as error:
            raise GitProtocolError(_trouble(error)) from error

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
