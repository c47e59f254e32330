"""Pushes the notebook to its `origin` in the background; no other work waits for it."""

import contextlib
import logging
import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from itertools import islice
from pathlib import Path
from typing import Final

import msgspec

from kb.errors import KbError, NotPushed, StoreBusy
from kb.intake.git.child import end, kill
from kb.intake.git.remote import BadRemote, may_have_token, parsed, shown
from kb.knowledge.notebook.opening import whole
from kb.knowledge.notebook.push_state import Target, after, is_due, push_to
from kb.knowledge.notebook.repository import Repository
from kb.knowledge.notebook.sending import (
    TOKEN_NAME,
    USER_NAME,
    Outcome,
    PushFailed,
    PushRejected,
    SendRequest,
)
from kb.model.children import module_argv, module_env
from kb.model.decoding import decode_json
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
# None of git's own variables: they could name other commands, folders and settings.
_ENV_KEPT: Final = (
    *("PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "TMPDIR", "SSH_AUTH_SOCK"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", USER_NAME, TOKEN_NAME),
    *("KB_FAILPOINTS", "KB_FAILPOINTS_LOG"),
)
Send = Callable[[SendRequest], Outcome | None]
"""Makes one attempt; None if it was called off."""


class PushReport(Push, frozen=True, kw_only=True):
    """How the last try went, and how far the remote is behind now."""

    behind: int
    """How many of our commits it may lack; counted up to 10,000."""


class Pusher:
    """Pushes one notebook, one process at a time. `draw` returns numbers from 0 to 1."""

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
        """`token_host` is the only host that may get KB_NOTEBOOK_TOKEN; empty for none."""
        self._store = store
        self._root = root
        self._lock = lock
        self._draw = draw
        self._send = send
        self._token_host = token_host

    def push(self) -> PushReport:
        """Push now, whatever the last result; waits for another process that pushes.

        Raises NotPushed without a notebook or an `origin`, NotebookUnfit, StoreBusy.
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
        """Push once if it is due. Raises NotebookUnfit."""
        target = self._target()
        if target is None or not is_due(self._last_push(), target, self._store.clock.now_ms()):
            return
        with contextlib.suppress(StoreBusy):
            self._try(0.0, is_due)

    def new_remote(self) -> str | None:
        """The address of an `origin` to which nothing was pushed yet; None without one.

        Raises NotebookUnfit.
        """
        target = self._target()
        return None if target is None or push_to(self._last_push(), target) else target.shown

    def report(self) -> PushReport | None:
        """The state of the present remote; None before the first attempt.

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
            # Check again under the lock: another process may have pushed, with later commits.
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
        """The target of a push; None without a notebook, a commit, or an `origin`."""
        if not (self._root / ".git").exists():
            return None
        with whole(self._root), closing(Repository(self._root)) as repository:
            head = repository.head()
            address, remote, problem = "origin", None, ""
            try:
                address = repository.origin() or ""
                remote = parsed(address, TOKEN_NAME) if address else None
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
    """Makes push attempts, each in a process with a time limit; `call_off` ends a running one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._is_over = threading.Event()

    def __call__(self, request: SendRequest) -> Outcome | None:
        """One attempt; None if it was called off before it answered.

        Raises OSError if no process can be started.
        """
        with self._lock:
            if self._is_over.is_set():
                return None
            process = self._process = _started(request)
        output, seconds = b"", request.seconds_max
        detail = "its answer cannot be read"
        try:
            output, _ = process.communicate(
                msgspec.json.encode(request), timeout=seconds + _GRACE_S
            )
        except subprocess.TimeoutExpired:
            detail = f"it took longer than {seconds} s"
        finally:
            with self._lock:
                self._process = None
            end(process)
        try:
            # An attempt that has answered has happened, also if it was called off since.
            outcome: Outcome = decode_json(output, Outcome)
            return outcome
        except msgspec.DecodeError:
            return None if self._is_over.is_set() else PushFailed(detail=detail)

    def call_off(self) -> None:
        """End the running attempt, and begin no other; safe from any thread."""
        with self._lock:
            self._is_over.set()
            if self._process is not None:
                kill(self._process)


@contextmanager
def pushing(pusher: Pusher, sender: Sender) -> Iterator[None]:
    """Within the block, a thread pushes the notebook whenever it is due."""
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
        env.pop(TOKEN_NAME, None)
    return subprocess.Popen(
        module_argv("kb.knowledge.notebook.sending"),
        env=env,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
