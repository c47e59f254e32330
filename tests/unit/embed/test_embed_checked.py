"""kb.intake.embed.protocol: no array leaves an embedder that is not unit vectors."""

import numpy as np
import pytest

from kb.errors import EmbedError
from kb.intake.embed.protocol import checked, without_surrogates

UNIT = np.eye(3, 4, dtype=np.float32)


def test_unit_rows_pass_as_float32() -> None:
    """Whatever float type the model uses."""
    result = checked(UNIT.astype(np.float64), 3, 4)
    assert result.dtype == np.float32
    np.testing.assert_array_equal(result, UNIT)
    assert checked(np.empty((0, 4)), 0, 4).shape == (0, 4)


@pytest.mark.parametrize("shape", [(3, 5), (2, 4), (12,), (1, 3, 4)])
def test_another_shape_is_refused(shape: tuple[int, ...]) -> None:
    """And the message names both shapes."""
    with pytest.raises(EmbedError, match=r"\(3, 4\)"):
        checked(np.ones(shape, np.float32), 3, 4)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_what_is_not_finite_is_refused(value: float) -> None:
    """And the message names the text."""
    broken = UNIT.copy()
    broken[1, 0] = value
    with pytest.raises(EmbedError, match="text 1 of 3"):
        checked(broken, 3, 4)


@pytest.mark.parametrize("length", [0, 0.9, 1.1, 40])
def test_another_length_is_refused(length: float) -> None:
    """Zero above all: it has no direction."""
    broken = UNIT.copy()
    broken[2] *= length
    with pytest.raises(EmbedError, match="text 2 of 3 has length"):
        checked(broken, 3, 4)


def test_surrogates_are_replaced_one_for_one() -> None:
    """So that offsets into the clean text are offsets into the text."""
    assert without_surrogates("a\ud83db\udcff") == "a\ufffdb\ufffd"
    assert without_surrogates("a😀") == "a😀"
