"""Clock, sleep and random source of retries, passed in so that tests can control them."""

import random
import time
from collections.abc import Callable

from msgspec import Struct, field

from kb.model.clock import Clock, SystemClock


class Timing(Struct, frozen=True, kw_only=True):
    """The parts of a wait between two tries; by default the machine's own."""

    clock: Clock = field(default_factory=SystemClock)
    sleep: Callable[[float], None] = time.sleep
    """Seconds."""
    random: Callable[[], float] = random.random
    """At least 0, below 1."""
