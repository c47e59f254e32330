"""Which version of a pack is the lower one, and what may take a registered pack's place."""

import pytest

from kb.knowledge.packs.succession import is_lower

RISING = (
    ("1.9", "1.10"),
    ("1", "1.0.1"),
    ("2.0-rc1", "2.0"),
    ("2.0-alpha", "2.0-beta"),
    ("v1.2", "1.3"),
    ("1.2", "v1.3"),
    ("2024-05-06", "2024-11-01"),
    ("1.0a", "1.0"),
    ("9" * 100, "1" + "0" * 100),
)
LEVEL = (("1", "1.0"), ("v2", "2"), ("1.0+a", "1.0+b"), ("", "3"), ("3", ""), ("RC1", "rc1"))


@pytest.mark.parametrize(("low", "high"), RISING)
def test_numbers_rise_by_value(low: str, high: str) -> None:
    """In both directions, so that no pair is lower both ways."""
    assert (is_lower(low, high), is_lower(high, low)) == (True, False)


@pytest.mark.parametrize(("one", "other"), LEVEL)
def test_what_says_the_same_is_not_lower(one: str, other: str) -> None:
    """A zero more, a build's name or nothing at all make no version lower."""
    assert (is_lower(one, other), is_lower(other, one)) == (False, False)
