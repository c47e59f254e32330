"""What time is it? Passed in wherever time matters, so that tests can move it."""

import functools
import time
from typing import Protocol


class Clock(Protocol):
    """Two clocks: one for people, one for leases."""

    def now_ms(self) -> int:
        """Wall-clock milliseconds since the epoch: for stamps that people read."""
        ...

    def lease_ms(self) -> int:
        """Milliseconds that never go back while the machine is up, whatever the wall clock does."""
        ...

    def boot_id(self) -> str:
        """Names the run of the machine within which lease_ms may be compared."""
        ...


class SystemClock:
    """The machine's own clocks."""

    def now_ms(self) -> int:
        """Wall-clock milliseconds since the epoch."""
        return time.time_ns() // 1_000_000

    def lease_ms(self) -> int:
        """CLOCK_BOOTTIME where there is one (it counts sleep), else the monotonic clock."""
        clock_id = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
        return time.clock_gettime_ns(clock_id) // 1_000_000

    def boot_id(self) -> str:
        """The kernel's boot id, or the boot time in whole minutes where there is none."""
        return _boot_id()


@functools.cache
def _boot_id() -> str:
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            return file.read().strip()
    except OSError:
        return str(round((time.time() - time.monotonic()) / 60))
