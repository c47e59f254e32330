"""How long a place that could not be reached is left in peace."""

from typing import Final

_SHARE: Final = 10
_MIN_S: Final = 1.0
_MAX_S: Final = 60.0


def rest_s(took_s: float) -> float:
    """Seconds until the next try: ten times as long as the last one took, from 1 to 60."""
    return min(max(_SHARE * took_s, _MIN_S), _MAX_S)
