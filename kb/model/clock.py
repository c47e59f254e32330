"""Clocks, passed to whatever depends on time, so that tests can control it."""

import functools
import time
from typing import Protocol


class Clock(Protocol):
    """Two clocks: one for people, one for leases; and that of files, where it is another."""

    def now_ms(self) -> int:
        """Wall-clock milliseconds since the epoch, for timestamps that people read."""
        ...

    def file_ms(self) -> int:
        """The same by the clock of this machine, which gives files their times."""
        ...

    def lease_ms(self) -> int:
        """Milliseconds of a clock that nobody sets, valid for one `boot_id`."""
        ...

    def boot_id(self) -> str:
        """Identifies the boot, or the server, within which lease_ms values are comparable."""
        ...


class SystemClock:
    """The machine's own clocks."""

    def now_ms(self) -> int:
        """Wall-clock milliseconds since the epoch."""
        return time.time_ns() // 1_000_000

    def file_ms(self) -> int:
        """The same."""
        return self.now_ms()

    def lease_ms(self) -> int:
        """CLOCK_BOOTTIME if available (it includes sleep), else the monotonic clock."""
        clock_id = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
        return time.clock_gettime_ns(clock_id) // 1_000_000

    def boot_id(self) -> str:
        """The kernel's boot id, or else the boot time in whole minutes."""
        return _boot_id()


@functools.cache
def _boot_id() -> str:
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return str(round((time.time() - time.monotonic()) / 60))
