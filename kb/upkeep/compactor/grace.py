"""How long ago is it? By the clock, and by how many compactions have run since."""

from typing import Final

from msgspec import Struct

from kb.store.meta import compactions
from kb.store.store import Store

# A clock may be wrong by years. Compactions that ended since cannot be.
RUNS_MIN: Final = 2


class Now(Struct, frozen=True, kw_only=True):
    """When a compaction runs."""

    ms: int
    runs: int
    """How many compactions came to their end before it."""

    def is_past(self, since_ms: int, since_run: int, wait_ms: int) -> bool:
        """Whether a wait is over; nobody who asks for none waits for compactions either."""
        if self.ms - since_ms < wait_ms:
            return False
        return wait_ms <= 0 or self.runs - since_run >= RUNS_MIN


def now_of(store: Store) -> Now:
    """When a compaction that begins now runs."""
    with store.read() as txn:
        return Now(ms=store.clock.now_ms(), runs=compactions(txn))
