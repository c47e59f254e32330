"""Keeps the caches of a home that machines share level with its log, in the background.

So a search after somebody else's change does not pay for taking it up.
"""

import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final

from kb.errors import EmbedError, KbError, ModelMissing
from kb.search.index.cache_contents import dense_contents, lexical_contents
from kb.store import log
from kb.store.jobs import queue
from kb.store.nodes import tell_contents
from kb.store.store import Store

if TYPE_CHECKING:
    from kb.search.index.dense import DenseIndex
    from kb.search.index.lexical_indexes import LexicalIndexes

logger = logging.getLogger(__name__)

# A notice may be lost with its connection, and a standby tells of nothing.
_LOOK_S: Final = 5.0
_PAUSE_S: Final = 0.5
_SHARE: Final = 4
"""It rests so many times as long as it worked: while much comes in, searches come first."""
_QUIET_S: Final = 60.0
_TOLD_S: Final = 600.0


class CacheFollower:
    """Follows the log of one home in a thread. Does nothing where no other machine writes."""

    def __init__(
        self,
        store: Store,
        lexical: "Callable[[], LexicalIndexes]",
        dense: "Callable[[], DenseIndex]",
        lock_wait_s: float,
        quiet_s: float = _QUIET_S,
    ) -> None:
        """After `quiet_s` in which nothing has changed it says what the caches hold."""
        self._store = store
        self._lexical = lexical
        self._dense = dense
        self._lock_wait_s = lock_wait_s
        self._quiet_s = quiet_s
        self._woken = threading.Event()
        self._stop = threading.Event()
        self._commit = -1
        """The newest commit that was looked at."""
        self._end = -1
        """The end of the log that the caches have come to, and since when."""
        self._since_s = 0.0
        self._told: tuple[int, float] | None = None
        """Where the log ended when it last said what the caches hold, and when that was."""

    @contextmanager
    def following(self) -> Iterator[None]:
        """Follow inside the block."""
        if not self._store.is_shared:
            yield
            return
        stop_listening = self._store.tell_of("log", self._woken.set)
        thread = threading.Thread(target=self._run, name="kb-follower", daemon=True)
        thread.start()
        try:
            yield
        finally:
            self._stop.set()
            self._woken.set()
            if stop_listening is not None:
                stop_listening()
            thread.join(self._lock_wait_s + 1)

    def _run(self) -> None:
        failed: type[Exception] | None = None
        while not self._stop.is_set():
            began_s = time.monotonic()
            self._woken.clear()
            try:
                self.follow()
            except (KbError, OSError) as error:
                # A search says what is wrong; here it is tried again.
                if type(error) is not failed:
                    failed = type(error)
                    logger.warning("the caches cannot follow the log (%s)", type(error).__name__)
            else:
                failed = None
            self._stop.wait(_PAUSE_S + _SHARE * (time.monotonic() - began_s))
            self._woken.wait(_LOOK_S)

    def follow(self) -> None:
        """Bring the caches level, if anything was committed; say what they hold once it is quiet.

        Raises what the store raises.
        """
        now_s = time.monotonic()
        commit = self._store.last_txn()
        if commit != self._commit:
            with self._store.read() as txn:
                end = log.last_seq(txn)
            if end != self._end:
                self._lexical().catch_up(self._store, wait_s=self._lock_wait_s)
                # Without a model there is no cache of vectors to follow.
                with suppress(ModelMissing, EmbedError):
                    self._dense().catch_up(self._store, wait_s=self._lock_wait_s)
                self._end, self._since_s = end, now_s
            self._commit = commit
        is_quiet = now_s - self._since_s >= self._quiet_s
        if is_quiet and (self._told is None or self._is_to_be_told(*self._told, now_s)):
            self._tell()
            self._told = (self._end, now_s)

    def _is_to_be_told(self, end: int, told_s: float, now_s: float) -> bool:
        return end != self._end and now_s - told_s >= min(_TOLD_S, 10 * self._quiet_s)

    def _tell(self) -> None:
        with self._store.read() as txn:
            counts = queue.counts(txn)
        # What a machine can keep in memory alone is not followed for long.
        parts = [part for part in self._lexical().in_use(self._store) if not part.in_memory]
        for part in parts:
            tell_contents(self._store, os.fspath(part.folder), lexical_contents(self._store, part))
        # While vectors are still to be taken up, equal caches need not hold the same.
        if not any((counts.ready, counts.running, counts.failed)):
            with suppress(ModelMissing, EmbedError):
                dense = self._dense()
                tell_contents(self._store, os.fspath(dense.folder), dense_contents(dense))
