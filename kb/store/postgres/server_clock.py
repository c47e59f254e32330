"""The server's clock, by which all that share a home measure leases and ages."""

import time
from collections.abc import Callable
from typing import Final

# Lease times in this store are the server's, so no boot of any machine ends them.
_BOOT: Final = "postgresql"


def _monotonic_ms() -> int:
    return time.monotonic_ns() // 1_000_000


class ServerTime:
    """How far the server's clock is ahead of this machine's; each transaction measures it anew."""

    def __init__(self, monotonic_ms: Callable[[], int] = _monotonic_ms) -> None:
        self._monotonic_ms = monotonic_ms
        self._ahead_ms = time.time_ns() // 1_000_000 - monotonic_ms()

    def take(self, moment_ms: int) -> None:
        """Take over the time that the server has just said."""
        self._ahead_ms = moment_ms - self._monotonic_ms()

    def ms(self) -> int:
        """Milliseconds since the epoch by the server's clock."""
        return self._monotonic_ms() + self._ahead_ms


class ServerClock:
    """A clock that agrees with those of all others that use the database."""

    def __init__(self, server_time: ServerTime) -> None:
        self._time = server_time

    def now_ms(self) -> int:
        """Milliseconds since the epoch."""
        return self._time.ms()

    def file_ms(self) -> int:
        """Milliseconds since the epoch by this machine's own clock."""
        return time.time_ns() // 1_000_000

    def lease_ms(self) -> int:
        """As `now_ms`: in a store of many machines a lease needs a clock that all of them have."""
        return self._time.ms()

    def boot_id(self) -> str:
        """One name for all machines and boots."""
        return _BOOT
