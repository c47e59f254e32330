"""How is one thing done beside another, where a pool would cost more to import than to use?"""

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")


class InBackground(Generic[T]):
    """Work in a thread of its own from now on, whose result is asked for once."""

    def __init__(self, work: Callable[[], T]) -> None:
        self._work = work
        self._results: list[T] = []
        self._error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._results.append(self._work())
        except BaseException as error:  # noqa: BLE001  raised again to whoever asks for the result
            self._error = error

    def result(self) -> T:
        """Wait for the result. Raises what the work raised."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._results[0]
