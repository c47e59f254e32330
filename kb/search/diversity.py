"""Maximal marginal relevance (Carbonell and Goldstein, SIGIR 1998), on crowds alone. Pure."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# What a perfect copy of a chosen passage loses of its score.
_PENALTY: Final = 0.5


def spread(
    scores: Sequence[float],
    vectors: "NDArray[np.float32]",
    texts: Sequence[str],
    k: int,
    similarity_min: float,
) -> list[int]:
    """Choose k of n candidates, given in order of score; returns their places, in order chosen.

    A candidate loses score as its likeness to one already chosen rises above `similarity_min`;
    below that, nothing changes, so a list without near-duplicates keeps its order. `vectors` has
    shape (n, dim), zero rows where there is no vector; equal texts are wholly alike.
    """
    import numpy as np

    n = len(scores)
    crowding = np.zeros(n)
    chosen: list[int] = []
    left = list(range(n))
    while left and len(chosen) < k:
        best = max(left, key=lambda i: (scores[i] * (1.0 - _PENALTY * crowding[i]), -i))
        left.remove(best)
        chosen.append(best)
        likeness = (vectors @ vectors[best]).astype(np.float64)
        for i in left:
            if texts[i] == texts[best]:
                likeness[i] = 1.0
        over = (likeness - similarity_min) / max(1e-9, 1.0 - similarity_min)
        crowding = np.maximum(crowding, np.clip(over, 0.0, 1.0))
    return chosen
