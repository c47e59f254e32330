"""Runs work in background threads."""

from collections.abc import Callable
from threading import Thread
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Future

T = TypeVar("T")


def run_async(work: Callable[[], T]) -> "Future[T]":
    """Run `work` in a daemon thread, which does not delay an exit; returns its future."""
    from concurrent.futures import Future

    future = Future[T]()

    def run() -> None:
        try:
            future.set_result(work())
        except BaseException as error:  # noqa: BLE001  handed to whoever asks for the result
            future.set_exception(error)

    Thread(target=run, daemon=True).start()
    return future
