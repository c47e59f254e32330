"""The pool: threads that claim jobs under a lease until the pool stops."""

import logging
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import MappingProxyType
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from kb.errors import KbError, StaleToken, StoreUnreachable
from kb.intake.embed.protocol import Embedder
from kb.intake.worker.embedders import switch_if_complete
from kb.intake.worker.settings import WorkerSettings
from kb.model.failpoints import failpoint
from kb.model.ids import JobId
from kb.model.job import Claim, JobKind
from kb.store.content.files import ContentStore
from kb.store.jobs import queue
from kb.store.jobs.holder import holder_name, is_gone
from kb.store.store import Store

if TYPE_CHECKING:
    from kb.intake.worker.embedding import EmbedHandler

logger = logging.getLogger(__name__)

CLAIMS_MAX: Final = 64
_PAUSE_FIRST_S: Final = 1.0
_PAUSE_MAX_S: Final = 60.0
# A notice may be lost with its connection, or not come through a pooler.
_LISTENING_REST_MS: Final = 5_000

Trouble = KbError | OSError
"""What stops the workers: a failure of the store or the disk, not of a job."""


class PoolModels(Struct, frozen=True, kw_only=True):
    """The models of the pool; called for each batch, because the home's model may change."""

    active: Callable[[], Embedder]
    next: Callable[[], Embedder | None] = lambda: None
    """None if no change of the model is under way."""


class WorkerPool:
    """Does the jobs of one home; start it, drain it, shut it down."""

    def __init__(
        self,
        store: Store,
        content: ContentStore,
        models: PoolModels,
        settings: WorkerSettings,
        handlers: Mapping[JobKind, Callable[[list[Claim]], None]] = MappingProxyType({}),
    ) -> None:
        """Take `handlers` for the kinds of jobs that other rooms define."""
        self._store = store
        self._settings = settings
        self._stop = threading.Event()
        self._content = content
        self._models = models
        self._other_handlers = handlers
        own: tuple[JobKind, ...] = ("chunk", "embed", "reembed")
        self._kinds = (*own, *(kind for kind in handlers if kind not in own))
        self._handlers: dict[JobKind, Callable[[list[Claim]], None]] = {}
        """Made for the first job: most folders that are added again have not changed."""
        self._making = threading.Lock()
        self._embedding: tuple[EmbedHandler, ...] = ()
        self._held: dict[JobId, Claim] = {}
        self._held_lock = threading.Lock()
        self._claiming = threading.Lock()
        self._threads: list[threading.Thread] = []
        self._woken = threading.Condition()
        self._stop_listening: Callable[[], None] | None = None
        """Not None where the store tells of jobs, so that those who rest need not look often."""
        self._due_ms: int | None = None
        """When the next job was due, at the last look."""
        self._wakes = 0
        self._fatal: Trouble | None = None
        self._passing: tuple[type[Exception], ...] = ()
        """Failures that are taken to pass."""
        self._trouble: Trouble | None = None
        self._left: list[Claim] = []
        """Claims that trouble left unfinished; they are released once the store can be written."""

    @property
    def trouble(self) -> Trouble | None:
        """What stops the workers, for good or until the next try; None if they work."""
        return self._fatal or self._trouble

    @property
    def texts_in_hand(self) -> int:
        """How many texts are embedded whose jobs are not done yet."""
        return sum(handler.texts_in_hand for handler in self._embedding)

    def start(self, *, recovers: bool = False, waits: bool = False) -> None:
        """Start the threads, and the thread that renews their leases.

        With `recovers` a failure of the store or the disk ends no thread: the thread tries again,
        after a pause that grows to a minute. With `waits` it does so while a database is away.
        """
        if recovers:
            self._passing = (KbError, OSError)
        elif waits:
            self._passing = (StoreUnreachable,)
        self._stop_listening = self._store.tell_of("jobs_ready", self._wake)
        names = [f"kb-worker-{i}" for i in range(self._settings.threads)]
        targets: list[tuple[str, Callable[[], None]]] = [(name, self._run) for name in names]
        targets.append(("kb-lease-keeper", self._keep_leases))
        for name, target in targets:
            thread = threading.Thread(target=target, name=name, daemon=True)
            self._threads.append(thread)
            thread.start()

    @property
    def has_ended(self) -> bool:
        """Whether it was shut down, and no thread is at work any more."""
        return self._stop.is_set() and not any(thread.is_alive() for thread in self._threads)

    def shutdown(self, wait_s: float = 30.0) -> bool:
        """Stop: claim no more jobs, and commit or release those in hand.

        Returns within `wait_s` and the time of one embedding batch; False if a thread was still
        busy then. Its job becomes free when its lease ends.
        """
        self._stop.set()
        self._wake()
        if self._stop_listening is not None:
            self._stop_listening()
        deadline = time.monotonic() + wait_s
        for thread in self._threads:
            thread.join(max(0.0, deadline - time.monotonic()))
        return not any(thread.is_alive() for thread in self._threads)

    def drain(self, on_tick: Callable[[], None] | None = None) -> None:
        """Return when no job of the pool's kinds is ready and no process works on one.

        Jobs that wait for another try stay. Raises the error that stopped a worker for good: a full
        disk, a damaged store.
        """
        self._wake()
        while not self._stop.is_set():
            if self._fatal is not None:
                raise self._fatal
            with self._store.read() as txn:
                busy = any(job.kind in self._kinds for job in queue.running(txn))
                due_ms = queue.due_in_ms(txn, self._store.clock, self._kinds)
            if not busy and not self._held and due_ms != 0:
                switch_if_complete(self._store)
                with self._store.read() as txn:
                    if queue.due_in_ms(txn, self._store.clock, self._kinds) != 0:
                        return
            if on_tick:
                on_tick()
            self._stop.wait(self._settings.idle_ms / 4000)

    def serve(self, stop: threading.Event) -> None:
        """Work until `stop` is set. Raises the error that stopped a worker for good."""
        while not stop.wait(self._settings.idle_ms / 1000):
            if self._fatal is not None:
                raise self._fatal

    def _run(self) -> None:
        last_sweep_ms = -self._settings.lease_ms
        pause_s = _PAUSE_FIRST_S
        while not self._stop.is_set():
            wakes = self._wakes
            try:
                self._give_back_left()
                now_ms = self._store.clock.lease_ms()
                if now_ms - last_sweep_ms >= self._settings.lease_ms // 4:
                    last_sweep_ms = now_ms
                    self._sweep()
                has_worked = self._work_once() or switch_if_complete(self._store)
                self._tell_end(is_sure=has_worked)
            except (KbError, OSError) as error:
                # The store or the disk failed, not a job, so no worker can work.
                if not isinstance(error, self._passing):
                    self._fatal = error
                    return
                self._tell(error)
                self._stop.wait(pause_s)
                pause_s = min(2 * pause_s, _PAUSE_MAX_S)
                continue
            pause_s = _PAUSE_FIRST_S
            if not has_worked:
                self._rest(wakes)

    def _wake(self) -> None:
        """Have those who rest look for jobs now: some were just added, or the pool is to stop."""
        with self._woken:
            self._wakes += 1
            self._woken.notify_all()

    def _rest(self, wakes: int) -> None:
        """Wait for the next look; not at all if there was a wake since `wakes` was read."""
        with self._woken:
            self._woken.wait_for(lambda: self._wakes != wakes, self._rest_ms() / 1000)

    def _rest_ms(self) -> int:
        """How long to wait for the next look, at most."""
        if self._stop_listening is None:
            return self._settings.idle_ms
        due_ms = _LISTENING_REST_MS if self._due_ms is None else self._due_ms
        return max(self._settings.idle_ms, min(due_ms, _LISTENING_REST_MS))

    def _tell(self, error: Trouble) -> None:
        """Log when trouble begins or changes; log nothing while it lasts."""
        before, self._trouble = self._trouble, error
        if type(before) is not type(error):
            logger.warning(
                "a worker failed (%s); it tries again within a minute",
                type(error).__name__,
            )

    def _tell_end(self, *, is_sure: bool) -> None:
        """Log that trouble is over: the work that met it is done, or there is nothing to do."""
        if self._trouble is None:
            return
        if not is_sure:
            with self._store.read() as txn:
                counts = queue.counts(txn)
            if counts.ready or counts.running:
                return
        self._trouble = None
        logger.warning("the workers work again")

    def _give_back_left(self) -> None:
        """Release the claims that trouble left unfinished, before their leases end."""
        if not self._left:
            return
        with self._held_lock:
            left, self._left = self._left, []
        try:
            with self._store.write() as txn:
                for claim in left:
                    with suppress(StaleToken):
                        queue.release(txn, claim)
        except (KbError, OSError):
            with self._held_lock:
                self._left += left
            raise

    def _sweep(self) -> None:
        with self._store.read() as txn:
            if not any(True for _ in queue.running(txn)):
                return
        with self._store.write() as txn:
            queue.reclaim(txn, self._store.clock, is_gone)

    def _work_once(self) -> bool:
        with self._claiming:
            claims = [] if self._stop.is_set() else self._claim()
            if claims and queue.is_suspect(claims[0].job):
                # This job may have killed its worker before. No other thread takes a job meanwhile,
                # so that no other job is killed with it again and again.
                self._work(claims)
                return True
        if claims:
            self._work(claims)
        return bool(claims)

    def _work(self, claims: list[Claim]) -> None:
        with self._held_lock:
            self._held.update({claim.job.job_id: claim for claim in claims})
        try:
            failpoint("jobs.after_claim")
            self._handler_of(claims[0].job.kind)(claims)
        except (KbError, OSError):
            with self._held_lock:
                self._left += claims
            raise
        except Exception as error:  # noqa: BLE001  one job's surprise must not end the pool
            logger.warning("a job failed with an unexpected error: %s", type(error).__name__)
            self._fail(claims, f"{type(error).__name__}: {error}")
        finally:
            with self._held_lock:
                for claim in claims:
                    self._held.pop(claim.job.job_id, None)

    def _claim(self) -> list[Claim]:
        with self._store.read() as txn:
            self._due_ms = queue.due_in_ms(txn, self._store.clock, self._kinds)
            if self._due_ms != 0:
                return []
        lease_ms = self._settings.lease_ms
        with self._store.write() as txn:
            clock = self._store.clock
            return queue.claim(
                txn,
                clock,
                self._kinds,
                limit=CLAIMS_MAX,
                lease_ms=lease_ms,
                holder=holder_name(),
            )

    def _handler_of(self, kind: JobKind) -> Callable[[list[Claim]], None]:
        with self._making:
            if not self._handlers:
                self._make_handlers()
            return self._handlers[kind]

    def _make_handlers(self) -> None:
        from kb.intake.worker.chunking import ChunkHandler
        from kb.intake.worker.embedding import EmbedHandler

        models, settings = self._models, self._settings
        chunking = ChunkHandler(
            self._store,
            self._content,
            models.active,
            settings.tokens_max,
            settings.overlap_tokens,
            entry_tokens_max=settings.entry_tokens_max,
            entry_overlap_tokens=settings.entry_overlap_tokens,
        )
        embedding = EmbedHandler(self._store, models.active, self._stop)
        reembedding = EmbedHandler(self._store, models.next, self._stop, is_next=True)
        self._embedding = (embedding, reembedding)
        self._handlers = {
            "chunk": chunking.work,
            "embed": embedding.work,
            "reembed": reembedding.work,
            **self._other_handlers,
        }

    def _fail(self, claims: list[Claim], reason: str) -> None:
        with self._store.write() as txn:
            for claim in claims:
                try:
                    queue.fail(txn, self._store.clock, claim, reason)
                except StaleToken:
                    continue

    def _keep_leases(self) -> None:
        while not self._stop.wait(self._settings.lease_ms / 3000):
            with self._held_lock:
                held = list(self._held.values())
            if held:
                self._renew(held)

    def _renew(self, held: list[Claim]) -> None:
        try:
            with self._store.write() as txn:
                for claim in held:
                    try:
                        queue.renew(txn, self._store.clock, claim)
                    except StaleToken:
                        logger.info("a lease was lost to another worker")
            failpoint("jobs.after_renew")
        except (KbError, OSError) as error:
            if not isinstance(error, self._passing):
                self._fatal = error
