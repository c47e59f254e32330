"""How much processor time may a document take? So much, and more for each page that was read.

The child that reads sets the bound with `bound`; a reader of pages asks `current` whether it may
go on. What a file claims to hold gives it no time, what was read of it does.
"""

import time
from collections.abc import Callable
from typing import Final

PAGES_FOR_AS_MUCH: Final = 100
"""After so many pages a document may take as much again as at its start."""
TIMES_MAX: Final = 20
"""No document may take more than so many times what it may take at its start."""
# A reader that goes by pages stops early enough to hand over what it has.
_STOP_SHARE: Final = 0.9
_ARMED_S_MIN: Final = 0.001


class PageTime:
    """The processor time of one document."""

    def __init__(self, cpu_s_max: float, arm: Callable[[float], None]) -> None:
        """Start it. `arm` is told how many seconds from now on the process has to be ended."""
        self._cpu_s_max = cpu_s_max
        self._arm = arm
        self._started_s = time.process_time()
        self._pages = 0
        arm(cpu_s_max)

    @property
    def limit_s(self) -> float:
        """What it may take, for the pages that were read so far."""
        return self._cpu_s_max * min(1 + self._pages / PAGES_FOR_AS_MUCH, TIMES_MAX)

    def page_read(self) -> None:
        """One more page was read."""
        self._pages += 1
        self._arm(max(self.limit_s - self._used_s(), _ARMED_S_MIN))

    def is_spent(self) -> bool:
        """Whether no further page should be begun."""
        return self._used_s() > _STOP_SHARE * self.limit_s

    def _used_s(self) -> float:
        return time.process_time() - self._started_s


_current: PageTime | None = None


def bound(page_time: PageTime | None) -> None:
    """From now on this bounds what is read in this process; None where nothing does."""
    global _current
    _current = page_time


def current() -> PageTime | None:
    """What bounds the document that is read now."""
    return _current
