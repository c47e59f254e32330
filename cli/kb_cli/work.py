"""Waiting for what was taken in to be found: the workers, their bar, and Ctrl-C."""

import contextlib
import os
import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from kb_cli.output import many, warn

if TYPE_CHECKING:
    from kb.operations.work import Workers
    from kb_cli.progress import AddProgress


def drain(workers: "Workers", progress: "AddProgress | None") -> None:
    """Wait until all of it is done, and bring the caches level."""
    if progress is not None:
        progress.follow(workers.left)
    try:
        workers.drain(progress.working if progress else None)
    except KeyboardInterrupt:
        warn("every source is in; `kb worker --drain` makes the rest findable")
        raise
    done = workers.catch_up()
    for problem in done.problems:
        warn(problem)
    if done.retrying:
        jobs = many(done.retrying, "job")
        warn(f"{jobs} failed and will be tried again by `kb worker`; see kb stats")


@contextlib.contextmanager
def progress_bar(*, reads: bool = True) -> "Iterator[AddProgress | None]":
    """Bars on standard error where that is a terminal that can erase lines; None elsewhere.

    Without `reads` nothing is read, and only the work of workers is shown.
    """
    if not sys.stderr.isatty() or os.environ.get("TERM") == "dumb":
        yield None
        return
    from kb_cli.progress import AddProgress

    with AddProgress(reads=reads) as progress:
        yield progress
