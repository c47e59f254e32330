"""Calls of several threads, and the end that waits for them."""

import contextlib
import threading
from collections.abc import Iterator

from kb.errors import HomeClosed, UsageError


class HomeCalls:
    """Lets calls in until it is closed; safe to share by threads."""

    def __init__(self, place: str) -> None:
        """`place` names what is called, for errors."""
        self._place = place
        self._changed = threading.Condition()
        self._running = 0
        self._inside = threading.local()
        self.is_closed = False

    @contextlib.contextmanager
    def call(self) -> Iterator[None]:
        """One call, which the end waits for. Raises HomeClosed after the end."""
        depth = getattr(self._inside, "depth", 0)
        with self._changed:
            if self.is_closed and not depth:
                raise HomeClosed(place=self._place)
            self._running += 1
        self._inside.depth = depth + 1
        try:
            yield
        finally:
            self._inside.depth = depth
            with self._changed:
                self._running -= 1
                self._changed.notify_all()

    def wait(self, seconds: float) -> None:
        """Wait, outside of any call; less where the end comes."""
        with self._changed:
            self._changed.wait_for(lambda: self.is_closed, seconds)

    def close(self) -> bool:
        """Let no other call in, and wait for those that run; False where it is closed already.

        Raises UsageError inside a call, which cannot wait for itself.
        """
        if getattr(self._inside, "depth", 0):
            raise UsageError("a home cannot be closed inside one of its own calls")
        with self._changed:
            was_open, self.is_closed = not self.is_closed, True
            self._changed.notify_all()
            self._changed.wait_for(lambda: not self._running)
        return was_open
