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

from kb.intake.git.remote import Remote, host_of, may_have_token, shown

if TYPE_CHECKING:
    from dulwich.client import GitClient
    from dulwich.repo import Repo
    from urllib3 import BaseHTTPResponse, HTTPConnectionPool
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
    """The remote cannot be used as it is; `str()` says what to do."""


class RemoteNames(Struct, frozen=True, kw_only=True):
    """Where the login for a remote comes from, and what a person does about an address."""

    user: str
    """The environment variable of the user's name."""
    token: str
    """The environment variable of the token."""
    token_host: str
    """The setting that names the one host that may have the token."""
    if_moved: str
    """What to do with the address that a redirect names."""


def client_for(
    remote: Remote,
    root: Path,
    names: RemoteNames,
    token_host: str,
    addresses: tuple[str, ...] = (),
) -> "tuple[GitClient, bytes]":
    """The client for a remote, and the path of its repository. Nothing is connected yet.

    `token_host` is the one host that may have the token. Over https it connects to one of
    `addresses`; without any, to what the name stands for.
    """
    if remote.kind == "local":
        return _folder_client(), os.fsencode(root / remote.path)
    if remote.kind == "ssh":
        return _ssh_client(remote), os.fsencode(remote.path)
    token = os.environ.get(names.token, "") if may_have_token(remote, token_host) else ""
    user = os.environ.get(names.user) or remote.user or _USER
    return _http_client(remote, Login(user=user, token=token), names, addresses), b""


def _folder_client() -> "GitClient":
    from dulwich.client import LocalGitClient
    from dulwich.repo import Repo

    class FolderClient(LocalGitClient):
        """A bare repository on this machine; none of its hooks is run."""

        @classmethod
        def _open_repo(cls, path: str | bytes) -> "closing[Repo]":
            repo = Repo(os.fsdecode(path))
            if not repo.bare:
                repo.close()
                raise RemoteUnusable("it has files checked out; push to a bare repository")
            # The ref is synced, so the objects that it names must be synced before.
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
        """Write bytes without buffering."""
        count = self._stdin.write(data)
        self._stdin.flush()
        return count

    def can_read(self) -> bool:
        """Only fetches call this."""
        return False

    def readlines(self) -> list[bytes]:
        """The error output of ssh, read once nothing more comes from it."""
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


def _http_client(
    remote: Remote, login: Login, names: RemoteNames, addresses: tuple[str, ...]
) -> "GitClient":
    from dulwich.client import Urllib3HttpGitClient

    pools = [_pool(remote, address) for address in addresses or (remote.host,)]
    one_host = _OneHost(pools, remote, login, names)
    return Urllib3HttpGitClient(remote.path, pool_manager=cast("Any", one_host))


def _pool(remote: Remote, address: str) -> "HTTPConnectionPool":
    """Connections to an address of the remote's host; its certificate must be the host's."""
    import ssl

    import urllib3

    if remote.path.startswith("http:"):
        return urllib3.HTTPConnectionPool(address, remote.port or 80)
    return urllib3.HTTPSConnectionPool(
        address,
        remote.port or 443,
        ssl_context=ssl.create_default_context(),
        server_hostname=remote.host,
        assert_hostname=remote.host,
    )


class _OneHost:
    """HTTP requests to one host, without redirects, each with time limits.

    The login is sent once the host asks for it, and to no other host.
    """

    def __init__(
        self,
        pools: "list[HTTPConnectionPool]",
        remote: Remote,
        login: Login,
        names: RemoteNames,
    ) -> None:
        """`pools` are those of the host's addresses, of which the first that answers is used."""
        self._pools = pools
        self._origin = urlsplit(remote.path)[:2]
        self._host = host_of(remote)
        self._login = login
        self._if_moved = names.if_moved
        self._how = (
            f"set {names.user} and {names.token}, and in your own settings "
            f'{names.token_host} = "{self._host}"'
        )
        self._shown: str | None = None
        self.headers = {"user-agent": _AGENT}

    def request(self, method: str, url: str, **options: Any) -> "BaseHTTPResponse":
        """The response, a 200. Raises RemoteUnusable, or GitProtocolError for a passing trouble."""
        from dulwich.errors import GitProtocolError

        if urlsplit(url)[:2] != self._origin:
            raise RemoteUnusable("it redirects to another host")
        body = options.get("body")
        if self._login.token and not (self._shown or body is None or isinstance(body, bytes)):
            # A body that can be sent only once: ask first whether a login is needed, as git does.
            self._answer(method, url, {**options, "body": b"0000"}).close()
        answer = self._answer(method, url, options)
        if answer.status == 200:
            return answer
        answer.close()
        if 300 <= answer.status < 400:
            location = shown(answer.headers.get("location", "nowhere"))
            raise RemoteUnusable(f"it redirects to {location}; if that is right, {self._if_moved}")
        if answer.status in (401, 403):
            raise RemoteUnusable(f"it needs a login ({answer.status}); {self._how}")
        if answer.status == 404:
            detail = f"it has no such repository (404), or needs a login for it; {self._how}"
            raise RemoteUnusable(detail)
        raise GitProtocolError(f"it answers with status {answer.status}")

    def _answer(self, method: str, url: str, options: dict[str, Any]) -> "BaseHTTPResponse":
        """The response; if the host asks for a login, the response to that."""
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
        headers = {**self.headers, "Host": self._host, **options.get("headers", {})}
        if self._shown:
            headers["authorization"] = self._shown
        if isinstance(body := options.get("body"), bytes):
            headers["Content-Length"] = str(len(body))
        target = url.removeprefix("://".join(self._origin)) or "/"
        try:
            return self._of_first(
                method,
                target,
                redirect=False,
                retries=False,
                timeout=timeout,
                **{**options, "headers": headers},
            )
        except urllib3.exceptions.HTTPError as error:
            raise GitProtocolError(_trouble(error)) from error

    def _of_first(self, method: str, target: str, **options: Any) -> "BaseHTTPResponse":
        """The response of the first address that can be connected to; the others are dropped."""
        from urllib3 import exceptions

        while True:
            try:
                return self._pools[0].request(method, target, **options)
            except (exceptions.NewConnectionError, exceptions.ConnectTimeoutError):
                if len(self._pools) == 1:
                    raise
                self._pools.pop(0).close()

    def clear(self) -> None:
        """Close its connections."""
        for pool in self._pools:
            pool.close()


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
