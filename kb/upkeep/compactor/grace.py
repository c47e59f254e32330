"""Grace periods, measured by the clock and by the number of compactions since."""

from typing import Final

from msgspec import Struct

from kb.store.meta import compactions
from kb.store.store import Store

# The clock may be wrong by years; the number of finished compactions is not.
RUNS_MIN: Final = 2


class CompactionTime(Struct, frozen=True, kw_only=True):
    """When a compaction runs: wall-clock milliseconds, and its number."""

    ms: int
    runs: int
    """How many compactions finished before it."""

    def is_past(self, since_ms: int, since_run: int, wait_ms: int) -> bool:
        """Whether `wait_ms` has passed; a wait of 0 does not wait for compactions either."""
        if self.ms - since_ms < wait_ms:
            return False
        return wait_ms <= 0 or self.runs - since_run >= RUNS_MIN


def compaction_time(store: Store) -> CompactionTime:
    """The time of a compaction that begins now."""
    with store.read() as txn:
        return CompactionTime(ms=store.clock.now_ms(), runs=compactions(txn))
