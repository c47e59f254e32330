"""kb.intake.embed.hashing: near by shared words."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb.intake.embed.hashing import HashingEmbedder


def test_shared_words_and_parts_of_words_bring_near() -> None:
    """Whole words most, their parts some, nothing in common little."""
    embedder = HashingEmbedder()
    query = embedder.embed_query("brown fox")
    same, part, none = embedder.embed_documents(["a Brown FOX", "foxes browning", "tax"]) @ query
    assert same > part > none


@given(st.text(), st.integers(min_value=1, max_value=64))
def test_no_text_has_a_zero_vector(text: str, dim: int) -> None:
    """Even where features of opposite sign meet."""
    assert np.linalg.norm(HashingEmbedder(dim).embed_query(text)) == pytest.approx(1, abs=1e-4)


def test_vectors_are_pinned() -> None:
    """The hash does not change with the run or the machine."""
    vector = HashingEmbedder(8).embed_query("fox")
    expected = np.array([-1, 0, -1, -4, -1, 0, 0, 0]) / np.sqrt(19)
    np.testing.assert_allclose(vector, expected, atol=1e-6)
