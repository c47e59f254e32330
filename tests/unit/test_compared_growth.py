"""The measure of growth that other tests rely on."""

import pytest
from growth import assert_linear


def test_linear_work_passes() -> None:
    """Also where each time is too short to be measured."""
    assert_linear(sorted, [0] * 200, [0] * 400)


def test_quadratic_work_is_found() -> None:
    """Four times the work for twice the text is too much."""

    def pairs(size: int) -> int:
        return sum(1 for _ in range(size) for _ in range(size))

    with pytest.raises(AssertionError, match="for twice of it"):
        assert_linear(pairs, 200, 400)
