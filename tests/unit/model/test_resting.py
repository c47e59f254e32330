"""How long a place that failed is left in peace."""

import pytest

from kb.model.resting import rest_s


@pytest.mark.parametrize(("took_s", "expected"), [(0.0, 1.0), (0.05, 1.0), (2.0, 20.0), (30, 60.0)])
def test_a_rest_is_ten_times_the_try(took_s: float, expected: float) -> None:
    """A second at least, and a minute at most."""
    assert rest_s(took_s) == expected
