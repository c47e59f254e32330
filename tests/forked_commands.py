"""The real command in a process of its own, without the quarter second that each start costs.

A server with everything imported and nothing opened forks for each command. The fork has the
streams, arguments, environment, folder and end that a new process has; only what importing does
has been done. What a test says of starting itself is no matter for this: it starts the program.
"""

import atexit
import contextlib
import gc
import importlib
import json
import os
import pkgutil
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, Final, TextIO, cast

# What the interpreter itself reads when it starts.
_AT_START: Final = ("PYTHON", "LC_", "LANG", "MALLOC", "LD_", "OPENBLAS", "OMP")
_LIBRARIES: Final = (
    *("click", "lmdb", "msgspec", "numpy", "tantivy", "yaml", "platformdirs", "tomllib"),
    *("concurrent.futures", "chardet", "Stemmer", "snowballstemmer", "tokenizers"),
    *("nacl.signing", "httpx2", "h11", "anyio"),
    *("uvicorn", "uvicorn.protocols.http.h11_impl", "uvicorn.lifespan.on", "starlette.routing"),
    *("uvicorn.loops.asyncio", "mcp", "dulwich.repo", "dulwich.porcelain", "watchfiles"),
)
_CLOSED: Final = b""
_FORK_S: Final = 120.0
"""A fork takes milliseconds; the first waits until everything is imported."""


class Server:
    """A process that forks; made when it is first needed, and once for each process that asks."""

    forks = 0
    _pid = 0
    _lock = threading.Lock()
    _socket: socket.socket
    _process: "subprocess.Popen[bytes]"

    @classmethod
    def socket_of(cls) -> socket.socket:
        # Several threads may need it first.
        with cls._lock:
            if cls._pid != os.getpid():
                ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
                with theirs:
                    cls._process = subprocess.Popen(
                        [sys.executable, __file__, str(theirs.fileno())],
                        pass_fds=[theirs.fileno()],
                        stdin=subprocess.DEVNULL,
                        env={**_plain(os.environ), "OPENBLAS_NUM_THREADS": "1"},
                    )
                cls._pid, cls._socket = os.getpid(), ours
        return cls._socket


def can_fork(env: Mapping[str, str]) -> bool:
    """Whether a process with this environment starts as the server did."""
    said = {key: env[key] for key in env if key.startswith(_AT_START)}
    ours = {key: os.environ[key] for key in os.environ if key.startswith(_AT_START)}
    is_like = said == ours and sys.getfilesystemencoding() == "utf-8"
    return sys.platform == "linux" and is_like


class Process:
    """A fork at work, with what `subprocess.Popen` has of it in text; its input is empty."""

    def __init__(self, argv: list[str], *, env: Mapping[str, str], cwd: Path | None = None) -> None:
        self.args = argv
        self.returncode: int | None = None
        read_out, out = os.pipe()
        read_err, err = os.pipe()
        self.stdout = os.fdopen(read_out, encoding="utf-8")
        self.stderr = os.fdopen(read_err, encoding="utf-8")
        with open(os.devnull, "rb") as nothing:
            self.pid, self._answer = _forked(argv, env, cwd, (nothing.fileno(), out, err))
        os.close(out)
        os.close(err)

    def poll(self) -> int | None:
        """Its exit status, None while it runs."""
        with contextlib.suppress(TimeoutError, subprocess.TimeoutExpired):
            return self.wait(0.001)
        return None

    def wait(self, timeout: float | None = None) -> int:
        """Its exit status, once it has ended."""
        if self.returncode is None:
            self.returncode = _end_of(self._answer, self.args, timeout)
            self._answer.close()
        return self.returncode

    def send_signal(self, number: int) -> None:
        """Send a signal, unless it is known to have ended."""
        if self.poll() is None:
            os.kill(self.pid, number)

    def kill(self) -> None:
        self.send_signal(signal.SIGKILL)

    def communicate(self, timeout: float | None = None) -> tuple[str, str]:
        """What is left of its output, once it has ended."""
        said = ["", ""]
        streams = (self.stdout, self.stderr)

        def listen(at: int) -> None:
            if not streams[at].closed:
                said[at] = streams[at].read()

        readers = [threading.Thread(target=listen, args=(at,), daemon=True) for at in (0, 1)]
        for reader in readers:
            reader.start()
        self.wait(timeout)
        for reader, stream in zip(readers, streams, strict=True):
            reader.join(timeout)
            stream.close()
        return said[0], said[1]


def run(
    argv: list[str],
    *,
    env: Mapping[str, str],
    timeout_s: float,
    stdin: bytes = b"",
    cwd: Path | None = None,
) -> "subprocess.CompletedProcess[bytes]":
    """Run `kb` to its end. Raises TimeoutExpired, having killed it."""
    with (
        tempfile.TemporaryFile() as given,
        tempfile.TemporaryFile() as out,
        tempfile.TemporaryFile() as err,
    ):
        given.write(stdin)
        given.seek(0)
        pid, answer = _forked(argv, env, cwd, (given.fileno(), out.fileno(), err.fileno()))
        with answer:
            try:
                code = _end_of(answer, argv, timeout_s)
            except subprocess.TimeoutExpired:
                os.kill(pid, signal.SIGKILL)
                raise
        return subprocess.CompletedProcess(argv, code, _read(out), _read(err))


def _forked(
    argv: list[str], env: Mapping[str, str], cwd: Path | None, streams: tuple[int, int, int]
) -> tuple[int, socket.socket]:
    """The process, and where its exit status will be said."""
    asked = {"argv": argv, "env": dict(env), "cwd": os.fspath(cwd or Path.cwd())}
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs, tempfile.TemporaryFile() as request:
        request.write(json.dumps(asked).encode())
        request.flush()
        fds = [request.fileno(), *streams, theirs.fileno()]
        Server.forks += 1
        socket.send_fds(Server.socket_of(), [b"run"], fds)
    # With the other end closed here, nothing comes where the server has died.
    ours.settimeout(_FORK_S)
    said = ours.recv(100)
    if not said:
        ours.close()
        raise RuntimeError("the process that forks has ended")
    return int(said), ours


def _end_of(answer: socket.socket, argv: list[str], timeout_s: float | None) -> int:
    answer.settimeout(timeout_s)
    try:
        return int(answer.recv(100))
    except TimeoutError:
        raise subprocess.TimeoutExpired(argv, timeout_s or 0) from None


def _read(file: IO[bytes]) -> bytes:
    file.seek(0)
    return file.read()


def _plain(env: Mapping[str, str]) -> dict[str, str]:
    return {key: value for key, value in env.items() if not key.startswith("KB_")}


def _serve(requests: socket.socket) -> dict[str, Any]:
    """Fork for each request; returns in each fork what it is to run, and never in the server."""
    woken, waker = socket.socketpair()
    waker.setblocking(False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    signal.set_wakeup_fd(waker.fileno(), warn_on_full_buffer=False)
    waiting: dict[int, socket.socket] = {}
    with selectors.DefaultSelector() as ready:
        for one in (requests, woken):
            ready.register(one, selectors.EVENT_READ)
        while True:
            for key, _ in ready.select():
                if key.fileobj is woken:
                    woken.recv(4096)
                    _tell_ends(waiting)
                    continue
                said, fds, _flags, _address = socket.recv_fds(requests, 16, 5)
                if said == _CLOSED:
                    _leave(waiting)
                answer = socket.socket(fileno=fds[4])
                pid = os.fork()
                if pid == 0:
                    for one in (requests, woken, waker, answer, *waiting.values()):
                        one.close()
                    signal.set_wakeup_fd(-1)
                    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                    ready.close()
                    return _become(fds[:4])
                for fd in fds[:4]:
                    os.close(fd)
                waiting[pid] = answer
                answer.send(str(pid).encode())


def _tell_ends(waiting: dict[int, socket.socket]) -> None:
    while waiting:
        pid, status = os.waitpid(-1, os.WNOHANG)
        if pid == 0:
            return
        with contextlib.suppress(OSError), waiting.pop(pid) as answer:
            answer.send(str(os.waitstatus_to_exitcode(status)).encode())


def _leave(waiting: dict[int, socket.socket]) -> None:
    for pid in waiting:
        os.kill(pid, signal.SIGKILL)
    os._exit(0)


def _become(fds: list[int]) -> dict[str, Any]:
    """Take the streams, the environment and the folder of a request."""
    request, *streams = fds
    with open(request, "rb") as file:
        file.seek(0)
        asked: dict[str, Any] = json.load(file)
    for number, fd in enumerate(streams):
        os.dup2(fd, number)
        os.close(fd)
    sys.stdin = _text(0, "r", sys.stdin)
    sys.stdout = _text(1, "w", sys.stdout)
    sys.stderr = _text(2, "w", sys.stderr)
    os.chdir(asked["cwd"])
    os.environ.clear()
    os.environ.update(asked["env"])
    sys.argv = asked["argv"]
    time.tzset()
    tempfile.tempdir = None
    importlib.reload(sys.modules["kb.model.failpoints"])
    return asked


def _text(fd: int, mode: str, before: TextIO) -> TextIO:
    """A standard stream as the interpreter makes it, on what the descriptor is now."""
    lines = 1 if before is sys.stderr else -1
    file = open(fd, mode, lines, before.encoding, before.errors, closefd=False)  # noqa: SIM115
    return cast("TextIO", file)


def _run() -> None:
    """The command, and what the interpreter does at its end but for taking all modules apart."""
    from kb_cli.main import main

    code: object = 0
    try:
        main()
    except SystemExit as ended:
        code = ended.code
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    with contextlib.suppress(BrokenPipeError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code if isinstance(code, int) else 0)


def _import_all() -> None:
    import kb_cli

    import kb

    for package in (kb, kb_cli):
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            with contextlib.suppress(ImportError):
                if not found.name.endswith("__main__"):
                    importlib.import_module(found.name)
    for name in _LIBRARIES:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)


if __name__ == "__main__":
    sys.path[0] = str(Path(__file__).resolve().parents[1])
    _import_all()
    gc.freeze()
    _serve(socket.socket(fileno=int(sys.argv[1])))
    _run()
