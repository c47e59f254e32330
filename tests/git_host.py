"""Remotes for a notebook: bare repositories, git's own HTTP server on loopback, ssh's stand-in."""

import base64
import os
import subprocess
import sys
from pathlib import Path
from typing import Final

from loopback import Answer, Handler, LoopbackServer, Route, reply
from notebooks import git

_READ: Final = "/notes.git/info/refs?service=git-receive-pack"
_SEND: Final = "/notes.git/git-receive-pack"


_FETCH_REFS: Final = "/info/refs?service=git-upload-pack"
_FETCH_PACK: Final = "/git-upload-pack"


def bare(folder: Path) -> Path:
    """An empty repository without files."""
    git(folder, "init", "-q", "--bare", "-b", "main", "notes.git")
    return folder / "notes.git"


def tip(repo: Path, branch: str = "main") -> str:
    """The newest commit of a branch."""
    return git(repo, "rev-parse", f"refs/heads/{branch}").strip()


def host(server: LoopbackServer, repo: Path, login: str | None = None) -> str:
    """Have a server serve a repository, to who shows `user:token`; its address."""
    route = _guarded(_by_git(repo), login)
    server.routes |= {_READ: route, _SEND: route}
    return server.url("/notes.git")


def serves(server: LoopbackServer, repo: Path, login: str | None = None) -> str:
    """Have a server let a repository be fetched, by who shows `user:token`; its address for kb."""
    route = _guarded(_by_git(repo), login)
    server.routes |= {f"/{repo.name}{_FETCH_REFS}": route, f"/{repo.name}{_FETCH_PACK}": route}
    return f"git+{server.url(f'/{repo.name}')}"


def packs_sent(server: LoopbackServer) -> int:
    """How often commits were fetched, and not only refs listed."""
    return sum(b"want " in request.body for request in server.requests)


def breaks_off(server: LoopbackServer) -> None:
    """Have the server take a push, and hang up in the middle of saying so."""
    inner = server.routes[_SEND]
    assert not isinstance(inner, Answer)
    take = inner

    def answer(handler: Handler) -> None:
        whole, handler.wfile = handler.wfile, Cut()
        take(handler)
        data, handler.wfile = handler.wfile.data, whole
        handler.wfile.write(data[:-20])

    server.routes[_SEND] = answer


class Cut:
    """What a route writes, kept."""

    def __init__(self) -> None:
        self.data = b""

    def write(self, data: bytes) -> int:
        self.data += data
        return len(data)

    def flush(self) -> None:
        pass

    closed = False


def _guarded(inner: Route, login: str | None) -> Route:
    def answer(handler: Handler) -> None:
        shown = handler.headers.get("Authorization", "")
        wanted = login and f"Basic {base64.b64encode(login.encode()).decode()}"
        if wanted and shown != wanted:
            headers = {"WWW-Authenticate": 'Basic realm="notes"'}
            reply(handler, Answer(b"no", 401, headers))
        else:
            assert not isinstance(inner, Answer)
            inner(handler)

    return answer


def _by_git(repo: Path) -> Route:
    """What `git http-backend` answers."""

    def answer(handler: Handler) -> None:
        asked = handler.server.requests[-1]
        path, _, query = asked.path.partition("?")
        env = {
            **os.environ,
            "GIT_PROJECT_ROOT": str(repo.parent),
            "GIT_HTTP_EXPORT_ALL": "1",
            "GIT_CONFIG_NOSYSTEM": "1",
            "HOME": str(repo.parent),
            "REMOTE_USER": "ada",
            "REQUEST_METHOD": handler.command,
            "PATH_INFO": path,
            "QUERY_STRING": query,
            "CONTENT_TYPE": asked.headers.get("Content-Type", ""),
            "GIT_PROTOCOL": asked.headers.get("Git-Protocol", ""),
            "CONTENT_LENGTH": str(len(asked.body)),
        }
        done = subprocess.run(
            ["git", "http-backend"], input=asked.body, env=env, capture_output=True
        )
        head, _, body = done.stdout.partition(b"\r\n\r\n")
        headers = dict(line.decode().split(": ", 1) for line in head.split(b"\r\n"))
        status = int(headers.pop("Status", "200 OK").split()[0])
        reply(handler, Answer(body, status, headers))

    return answer


def ssh_stand_in(folder: Path, body: str) -> Path:
    """A folder with a program `ssh` in it, which writes down how it was called and runs `body`.

    `body` is Python, in which `argv` is what it was called with; the call is in `ssh.argv` beside.
    """
    folder.mkdir()
    program = folder / "ssh"
    program.write_text(
        f"#!{sys.executable}\n"
        "import json, os, pathlib, sys\n"
        "argv = sys.argv[1:]\n"
        f"pathlib.Path({str(folder / 'ssh.argv')!r}).write_text(json.dumps(argv))\n"
        f"{body}\n"
    )
    program.chmod(0o755)
    return folder
