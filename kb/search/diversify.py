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


def diversify(
    scores: Sequence[float],
    vectors: "NDArray[np.float32]",
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
    group, order and scores stay. `vectors` has shape (n, dim), zero rows where there is no vector.
    """
    import numpy as np

    selected_alike = np.zeros(len(scores), dtype=np.int64)
    text_ids = {text: number for number, text in enumerate(dict.fromkeys(texts))}
    text_id = np.array([text_ids[text] for text in texts], dtype=np.int64)
    current = np.array(scores, dtype=np.float64)
    free = np.ones(len(scores), dtype=bool)
    selected: list[tuple[int, float]] = []
    while len(selected) < min(k, len(scores)):
        # argmax takes the first of equals, and they came in order.
        best = int(np.where(free, current, -np.inf).argmax())
        free[best] = False
        selected.append((best, float(current[best])))
        alike = (vectors @ vectors[best] >= similarity_min) | (text_id == text_id[best])
        selected_alike += alike
        surplus = free & alike & (selected_alike == near_duplicates_max)
        current[surplus] *= _NEAR_DUPLICATE_FACTOR
    return selected
