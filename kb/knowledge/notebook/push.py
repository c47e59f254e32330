"""Push the notebook to its `origin`, in the background; no other work waits for it."""

import contextlib
import logging
import os
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path
from typing import Final

import msgspec

from kb.errors import KbError, NotPushed, StoreBusy
from kb.knowledge.notebook.opening import whole
from kb.knowledge.notebook.push_state import Target, after, is_due, push_to
from kb.knowledge.notebook.remote import BadRemote, may_have_token, parsed, shown
from kb.knowledge.notebook.repository import Repository
from kb.knowledge.notebook.sending import Outcome, PushFailed, PushRejected, SendRequest
from kb.model.children import module_argv, module_env
from kb.model.failpoints import failpoint
from kb.model.push import Push
from kb.store.content.lock import file_lock
from kb.store.records import PUSHES
from kb.store.store import Store

logger = logging.getLogger(__name__)

SECONDS_MAX: Final = 60
_GRACE_S: Final = 10
_LOOK_S: Final = 2.0
_TROUBLE_S: Final = 60.0
_JOIN_S: Final = 2.0
_BEHIND_MAX: Final = 10_000
_KEY: Final = b"origin"
# Nothing of git's own variables: they name commands, folders and settings that are not ours.
_ENV_KEPT: Final = (
    *("PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TMPDIR", "SSH_AUTH_SOCK"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "KB_NOTEBOOK_USER", "KB_NOTEBOOK_TOKEN"),
    *("KB_FAILPOINTS", "KB_FAILPOINTS_LOG"),
)
Send = Callable[[SendRequest], Outcome | None]
"""One try; None where it was called off."""


class PushReport(Push, frozen=True, kw_only=True):
    """How the last try went, and how far the remote is behind now."""

    behind: int
    """Commits of ours that it is not known to have; counted up to 10,000."""


class Pusher:
    """Pushes one notebook, one of us at a time. `draw` gives numbers from 0 to 1."""

    def __init__(
        self,
        store: Store,
        root: Path,
        lock: Path,
        draw: Callable[[], float],
        send: Send,
        *,
        token_host: str = "",
    ) -> None:
        """`token_host` is the one that may have KB_NOTEBOOK_TOKEN; empty is none."""
        self._store = store
        self._root = root
        self._lock = lock
        self._draw = draw
        self._send = send
        self._token_host = token_host

    def push(self) -> PushReport:
        """Try now, whatever was said before; waits for another of us that is at it.

        Raises NotPushed where there is no notebook or no `origin`, NotebookUnfit, StoreBusy.
        """
        if self._target() is None:
            detail = (
                "the notebook has no such remote; `git remote add origin ADDRESS` in its folder"
            )
            raise NotPushed(detail, place="origin")
        self._try(SECONDS_MAX + _GRACE_S, lambda *_: True)
        report = self.report()
        assert report is not None
        return report

    def push_if_due(self) -> None:
        """Try once if it is time to. Raises NotebookUnfit."""
        target = self._target()
        if target is None or not is_due(self._last_push(), target, self._store.clock.now_ms()):
            return
        with contextlib.suppress(StoreBusy):
            self._try(0.0, is_due)

    def new_remote(self) -> str | None:
        """The address of an `origin` that nothing was ever pushed to; None without one.

        Raises NotebookUnfit.
        """
        target = self._target()
        return None if target is None or push_to(self._last_push(), target) else target.shown

    def report(self) -> PushReport | None:
        """How it stands with the remote there is now; None where nothing was tried yet.

        Raises NotebookUnfit.
        """
        push = self._last_push()
        target = self._target() if push else None
        push = push_to(push, target) if target else None
        if push is None:
            return None
        return PushReport(**msgspec.structs.asdict(push), behind=self._behind(push))

    def _try(self, wait_s: float, should_push: Callable[[Push | None, Target, int], bool]) -> None:
        with file_lock(self._lock, wait_s):
            # Behind the lock: another of us may have just done it, with later commits.
            push, target = self._last_push(), self._target()
            if target is None or not should_push(push, target, self._store.clock.now_ms()):
                return
            outcome = self._outcome(target)
            if outcome is None:
                return
            failpoint("push.after_send")
            now_ms = self._store.clock.now_ms()
            with self._store.write() as txn:
                PUSHES.put(txn, _KEY, after(push, target, outcome, now_ms, self._draw()))

    def _outcome(self, target: Target) -> Outcome | None:
        if target.remote is None:
            return PushRejected(detail=target.problem)
        return self._send(
            SendRequest(
                root=os.fspath(self._root),
                remote=target.remote,
                branch=target.branch,
                commit=target.commit,
                seconds_max=SECONDS_MAX,
                token_host=self._token_host,
            )
        )

    def _last_push(self) -> Push | None:
        with self._store.read() as txn:
            return PUSHES.get(txn, _KEY)

    def _target(self) -> Target | None:
        """What is to be pushed; None without a notebook, a commit, or an `origin`."""
        if not (self._root / ".git").exists():
            return None
        with whole(self._root), closing(Repository(self._root)) as repository:
            head = repository.head()
            address, remote, problem = "origin", None, ""
            try:
                address = repository.origin() or ""
                remote = parsed(address) if address else None
            except BadRemote as error:
                problem = str(error)
        if head.commit is None or not address:
            return None
        return Target(
            shown=shown(address),
            remote=remote,
            problem=problem,
            branch=head.branch,
            commit=head.commit.decode("ascii"),
        )

    def _behind(self, push: Push) -> int:
        with whole(self._root), closing(Repository(self._root)) as repository:
            count = 0
            for logged in islice(repository.log(), _BEHIND_MAX):
                if logged.commit == push.pushed_commit:
                    break
                count += 1
            return count


class Sender:
    """Tries pushes, each in a process that ends in time; `call_off` ends the one at work."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._is_over = threading.Event()

    def __call__(self, request: SendRequest) -> Outcome | None:
        """One try; None where it was called off. Raises OSError where no process can be started."""
        with self._lock:
            if self._is_over.is_set():
                return None
            process = self._process = _started(request)
        output, seconds = b"", request.seconds_max
        detail = "what it sent cannot be read"
        try:
            output, _ = process.communicate(
                msgspec.json.encode(request), timeout=seconds + _GRACE_S
            )
        except subprocess.TimeoutExpired:
            detail = f"it took longer than {seconds} s"
        finally:
            with self._lock:
                self._process = None
            _end(process)
        if self._is_over.is_set():
            return None
        try:
            outcome: Outcome = msgspec.json.decode(output, type=Outcome)
            return outcome
        except msgspec.DecodeError:
            return PushFailed(detail=detail)

    def call_off(self) -> None:
        """End the try at work, and begin no other; safe from any thread."""
        with self._lock:
            self._is_over.set()
            if self._process is not None:
                _kill(self._process)


@contextmanager
def pushing(pusher: Pusher, sender: Sender) -> Iterator[None]:
    """Have the notebook pushed whenever it is due, by a thread of its own, inside the block."""
    stop = threading.Event()
    thread = threading.Thread(target=_keep_level, args=(pusher, stop), name="kb-push", daemon=True)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        sender.call_off()
        thread.join(_JOIN_S)


def _keep_level(pusher: Pusher, stop: threading.Event) -> None:
    pause_s = _LOOK_S
    while not stop.wait(pause_s):
        try:
            pusher.push_if_due()
            pause_s = _LOOK_S
        except (KbError, OSError) as error:
            logger.warning("the notebook was not pushed: %s", type(error).__name__)
            pause_s = _TROUBLE_S


def _started(request: SendRequest) -> "subprocess.Popen[bytes]":
    env = module_env(_ENV_KEPT)
    if not may_have_token(request.remote, request.token_host):
        env.pop("KB_NOTEBOOK_TOKEN", None)
    return subprocess.Popen(
        module_argv("kb.knowledge.notebook.sending"),
        env=env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def _kill(process: "subprocess.Popen[bytes]") -> None:
    """End it with what it has started, ssh above all."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def _end(process: "subprocess.Popen[bytes]") -> None:
    if process.poll() is None:
        _kill(process)
    process.communicate()
