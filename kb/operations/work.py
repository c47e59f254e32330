"""The workers of an open home: started for one call, drained, and stopped in bounded time."""

import contextlib
import threading
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, Self

from msgspec import Struct

if TYPE_CHECKING:
    from kb.home.app import App
    from kb.intake.worker.pool import WorkerPool

HURRY_S: Final = 1.0
"""How long an interrupted call waits for a worker: what it has in hand is otherwise done again."""


class CaughtUp(Struct, frozen=True, kw_only=True):
    """What is left to tell after a drain."""

    problems: tuple[str, ...]
    """What kept the caches from coming level with the store, in words."""
    retrying: int
    """Jobs that failed and wait for another try."""


class WorkLeft(Struct, frozen=True, kw_only=True):
    """What is still to do in a home, whoever does it."""

    jobs: int
    is_cut: bool
    """Whether every doc is cut into chunks, so that their number is known."""
    chunks: int
    """Chunks that wait for vectors, as far as they are cut."""
    chunks_kept: int
    """All that the home has, those that wait among them."""


def use_device(app: "App", device: str) -> None:
    """Embed on a device, `cpu` or a GPU such as `cuda`, from now on in this process.

    Raises UsageError where the runtime of the home's model has none of that name here.
    """
    from kb.intake.embed import device as devices

    devices.use_device(device, app.models.in_use().settings.kind)


class Workers:
    """Workers of one home, at work inside a `with` block.

    Leaving the block stops them: what is in hand is committed or given back. An error or an
    interrupt waits HURRY_S for that, a normal end longer.
    """

    def __init__(
        self,
        app: "App",
        *,
        reads_files: bool = False,
        at_need: bool = False,
        stay: bool = False,
    ) -> None:
        """Make them. Without `reads_files` others read files again, and pictures.

        With `at_need` they begin once there is work: where nothing changed there is none, and a
        pool takes 20 ms to import and to start. If they `stay`, they wait for a database that is
        away, for as long as it takes.
        """
        self._stay = stay
        self._app = app
        self._reads_files = reads_files
        self._at_need = at_need
        self._pool: WorkerPool | None = None
        self._starting = threading.Lock()
        self.are_idle = True
        """After the block: False where one was still busy; its job comes back with its lease."""

    def __enter__(self) -> Self:
        if self._at_need:
            self._app.follow_stages()
            self._app.ingestor.on_commit.append(self._begin)
        if not self._at_need or self._has_work():
            self._begin()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._at_need:
            self._app.ingestor.on_commit.remove(self._begin)
        if self._pool is None:
            return
        if kind is not None:
            self._pool.shutdown(wait_s=HURRY_S)
        else:
            self.are_idle = self._pool.shutdown()

    @property
    def have_begun(self) -> bool:
        """Whether they are at work, or were."""
        return self._pool is not None

    def _begin(self) -> None:
        self._started()

    def _started(self) -> "WorkerPool":
        with self._starting:
            if self._pool is None:
                self._pool = self._app.pool(reads_files=self._reads_files)
                self._pool.start(waits=self._stay)
            return self._pool

    def _has_work(self) -> bool:
        """Whether a job is not done, or the change to another model."""
        from kb.store import embedders
        from kb.store.jobs import queue

        with self._app.store.read() as txn:
            counts, models = queue.counts(txn), embedders.in_use(txn)
        return counts.ready + counts.running > 0 or (models is not None and models.next is not None)

    def drain(self, on_tick: Callable[[], None] | None = None) -> None:
        """Return when nothing is ready and nobody is at work; `on_tick` is called all the while.

        Jobs that wait for another try are left for later. Raises what stopped a worker for good:
        a full disk, a damaged store.
        """
        if self._pool is not None or self._has_work():
            self._started().drain(on_tick)

    def left(self) -> WorkLeft:
        """What is left now; what these workers have embedded and not yet committed is not."""
        from kb.store import chunks, docs
        from kb.store.jobs import queue

        with self._app.store.read() as txn:
            counts = queue.counts(txn)
            chunks_kept = txn.count("chunks")
            is_cut = next(queue.pending(txn, "chunk"), None) is None
            waiting = (*queue.pending(txn, "embed"), *queue.pending(txn, "reembed"))
            sources = (docs.get(txn, job.doc_id) for job in waiting)
            waiting_chunks = sum(
                chunks.count_of_source(txn, doc.source_no) for doc in sources if doc is not None
            )
        in_hand = self._pool.texts_in_hand if self._pool is not None else 0
        return WorkLeft(
            jobs=counts.ready + counts.running,
            is_cut=is_cut,
            chunks=max(0, waiting_chunks - in_hand),
            chunks_kept=chunks_kept,
        )

    def serve(self, stop: threading.Event) -> None:
        """Work until `stop` is set, and push the notebook when that is due, if settings say so.

        Raises what stopped a worker for good, and NotebookUnfit.
        """
        with self._app.notebook.pushing():
            self._started().serve(stop)

    def catch_up(self) -> CaughtUp:
        """Bring the caches level with the store, for searches to find what was drained."""
        from kb.operations.jobs import jobs_retrying

        problems = tuple(self._app.catch_up())
        return CaughtUp(problems=problems, retrying=jobs_retrying(self._app))


@contextlib.contextmanager
def workers_if(app: "App", *, wanted: bool) -> "Iterator[Workers | None]":
    """Workers inside the block where they are wanted, from when there is work; else None."""
    if not wanted:
        yield None
        return
    with Workers(app, at_need=True) as workers:
        yield workers
