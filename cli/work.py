"""Waiting for what was taken in to be found: the pool, its bar, and Ctrl-C."""

import contextlib
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from cli.output import many, warn
from kb.home.app import App
from kb.store.jobs import queue

if TYPE_CHECKING:
    from cli.progress import Progress
    from kb.intake.worker.pool import WorkerPool

# How long Ctrl-C waits for a worker: what it has in hand is otherwise done again.
HURRY_S: Final = 1.0


@contextlib.contextmanager
def working(app: App, *, wait: bool) -> "Iterator[WorkerPool | None]":
    """The pool at work inside the block, where `wait` says so; shut down in bounded time."""
    if not wait:
        yield None
        return
    pool = app.pool()
    pool.start()
    try:
        yield pool
    except BaseException:
        pool.shutdown(wait_s=HURRY_S)
        raise
    pool.shutdown()


def drain(app: App, pool: "WorkerPool", progress: "Progress | None") -> None:
    """Wait until all of it is done, and bring the caches level."""

    def tick() -> None:
        if progress:
            with app.store.read() as txn:
                counts = queue.counts(txn)
            progress.working(counts.ready + counts.running)

    try:
        pool.drain(on_tick=tick)
    except KeyboardInterrupt:
        warn("every source is in; `kb worker --drain` makes the rest findable")
        raise
    for problem in app.catch_up():
        warn(problem)
    with app.store.read() as txn:
        waiting = queue.retrying(txn)
    if waiting:
        warn(f"{many(waiting, 'job')} failed and will be tried again by `kb worker`; see kb stats")


@contextlib.contextmanager
def progress_bar() -> "Iterator[Progress | None]":
    """A bar on standard error where that is a terminal; None elsewhere."""
    if not sys.stderr.isatty():
        yield None
        return
    from cli.progress import Progress

    with Progress() as progress:
        yield progress
