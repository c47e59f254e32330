"""Stand-ins that the shipped code accepts in place of the real thing."""


class FakeClock:
    """A clock that moves only when told to; satisfies `kb.model.clock.Clock`."""

    def __init__(self, now_ms: int = 1_700_000_000_000, lease_ms: int = 1_000) -> None:
        self._now_ms = now_ms
        self._lease_ms = lease_ms
        self._boots = 1

    def now_ms(self) -> int:
        """Wall-clock milliseconds."""
        return self._now_ms

    def file_ms(self) -> int:
        """The same as the wall clock."""
        return self._now_ms

    def lease_ms(self) -> int:
        """Milliseconds on the clock that leases are kept by."""
        return self._lease_ms

    def boot_id(self) -> str:
        """Names the current run of the machine."""
        return f"boot-{self._boots}"

    def advance(self, ms: int) -> None:
        """Let time pass on both clocks."""
        self._now_ms += ms
        self._lease_ms += ms

    def jump(self, ms: int) -> None:
        """Set the wall clock by hand, forwards or back; the lease clock does not follow."""
        self._now_ms += ms

    def reboot(self, lease_ms: int = 0) -> None:
        """Start the machine anew: another boot id, and the lease clock from `lease_ms`."""
        self._boots += 1
        self._lease_ms = lease_ms
