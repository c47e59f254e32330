"""Diversity of hits: maximal marginal relevance (Carbonell and Goldstein, SIGIR 1998). Pure.

Only groups of near-duplicates are demoted, not every pair of similar chunks.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# A surplus near-duplicate keeps this share of its score.
_NEAR_DUPLICATE_FACTOR: Final = 0.5
_COMPARED_ROWS: Final = 64


def diversify(
    scores: Sequence[float],
    vectors: "NDArray[np.float32] | None",
    texts: Sequence[str],
    k: int,
    *,
    similarity_min: float,
    near_duplicates_max: int,
) -> list[tuple[int, float]]:
    """Select k of n candidates, given in order of score: their positions and scores, best first.

    Two candidates are near-duplicates if their cosine is at least `similarity_min` or their texts
    are equal. Once `near_duplicates_max` near-duplicates of a candidate are selected, its score is
    halved: two versions of a text may both be wanted, more of them hide other hits. Without such a
    group, order and scores stay. `vectors` has shape (n, dim), zero rows where there is no vector;
    None where there are none at all.
    """
    is_unlike = vectors is None or not _has_pairs(vectors, similarity_min)
    if is_unlike and len(set(texts)) == len(texts):
        # Mostly none is like another one.
        return list(enumerate(scores))[:k]
    copies: dict[str, set[int]] = {}
    for place, text in enumerate(texts):
        copies.setdefault(text, set()).add(place)
    selected_alike = [0] * len(scores)
    current = dict(enumerate(scores))
    selected: list[tuple[int, float]] = []
    while current and len(selected) < k:
        # The first of equals, since they came in order.
        best = max(current, key=current.__getitem__)
        selected.append((best, current.pop(best)))
        alike = copies[texts[best]]
        if vectors is not None:
            near = (vectors @ vectors[best] >= similarity_min).nonzero()[0]
            alike = alike.union(near.tolist())
        for place in alike:
            selected_alike[place] += 1
            if selected_alike[place] == near_duplicates_max and place in current:
                current[place] *= _NEAR_DUPLICATE_FACTOR
    return selected


def _has_pairs(vectors: "NDArray[np.float32]", similarity_min: float) -> bool:
    """Whether two of the vectors are similar."""
    for low in range(0, len(vectors), _COMPARED_ROWS):
        near = vectors[low : low + _COMPARED_ROWS] @ vectors.T >= similarity_min
        # Each is similar to itself, unless it is zero.
        if near.sum() > near.trace(low):
            return True
    return False
