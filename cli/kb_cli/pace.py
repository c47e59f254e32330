"""How fast work goes on, and when it ends, by what was done of late."""

from collections import deque
from typing import Final

_WINDOW_S: Final = 30.0
_RATE_SPAN_MIN_S: Final = 1.0
# Before that a rate says more of how work begins than of how it goes on.
_LEFT_SPAN_MIN_S: Final = 5.0


class Pace:
    """The rate of the last half minute."""

    def __init__(self) -> None:
        self._samples: deque[tuple[float, int]] = deque()

    def note(self, now_s: float, done: int) -> None:
        """So much is done now."""
        samples = self._samples
        samples.append((now_s, done))
        while len(samples) > 2 and samples[1][0] <= now_s - _WINDOW_S:
            samples.popleft()

    def rate(self) -> float | None:
        """What is done a second; None while that cannot be told."""
        return self._rate_over(_RATE_SPAN_MIN_S)

    def left_s(self, left: int) -> float | None:
        """Seconds until so much is done as well; None while that cannot be told."""
        rate = self._rate_over(_LEFT_SPAN_MIN_S)
        return left / rate if rate else None

    def _rate_over(self, span_min_s: float) -> float | None:
        if not self._samples:
            return None
        (first_s, first), (last_s, last) = self._samples[0], self._samples[-1]
        span_s = last_s - first_s
        return (last - first) / span_s if span_s >= span_min_s and last > first else None


def time_left(seconds: float) -> str:
    """`40 s left`, `3 min left`, `1.5 h left`."""
    if seconds < 90:
        return f"{max(1, round(seconds))} s left"
    if seconds < 90 * 60:
        return f"{round(seconds / 60)} min left"
    return f"{seconds / 3600:.1f} h left"
