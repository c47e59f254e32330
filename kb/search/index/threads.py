"""Runs work in background threads."""

from collections.abc import Callable
from concurrent.futures import Future
from threading import Thread
from typing import TypeVar

T = TypeVar("T")


def run_async(work: Callable[[], T]) -> Future[T]:
    """Run `work` in a daemon thread, which does not delay an exit; returns its future."""
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001  handed to whoever asks for the result
            future.set_exception(error)

    Thread(target=run, daemon=True).start()
    return future
