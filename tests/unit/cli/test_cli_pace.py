"""How fast work goes on, and what is left of it, by what was done of late."""

import pytest
from kb_cli.pace import Pace, time_left


def paced(rate_of: dict[int, int]) -> Pace:
    """A pace that heard every second; from each second on so much is done in one."""
    pace, done, rate = Pace(), 0, 0
    for second in range(max(rate_of) + 1):
        pace.note(float(second), done)
        rate = rate_of.get(second, rate)
        done += rate
    return pace


def test_nothing_is_told_too_early() -> None:
    """One sample has no rate, a second has no end, and what stands still has neither."""
    pace = paced({0: 10})
    assert (pace.rate(), pace.left_s(100)) == (None, None)
    pace = paced({0: 10, 2: 0})
    assert (pace.rate(), pace.left_s(100)) == (10.0, None)
    assert paced({0: 0, 60: 0}).rate() is None


def test_the_last_half_minute_counts() -> None:
    """Of work that began fast and goes on slowly the slow rate is told, and the end by it."""
    pace = paced({0: 1_000, 20: 5, 80: 0})
    assert pace.rate() == 5.0
    assert pace.left_s(600) == 120.0


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.2, "1 s left"),
        (89, "89 s left"),
        (90, "2 min left"),
        (3_000, "50 min left"),
        (9_000, "2.5 h left"),
    ],
)
def test_time_is_said_as_people_do(seconds: float, words: str) -> None:
    """In the largest unit that is not too coarse."""
    assert time_left(seconds) == words
