"""Maximal marginal relevance (Carbonell and Goldstein, SIGIR 1998), on crowds alone. Pure."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# What is left of the score of a passage that comes too late into a crowd.
_CROWDED: Final = 0.5


def spread(
    scores: Sequence[float],
    vectors: "NDArray[np.float32]",
    texts: Sequence[str],
    k: int,
    *,
    similarity_min: float,
    crowd: int,
) -> list[tuple[int, float]]:
    """Choose k of n candidates, given in order of score: their places and scores, best first.

    Once `crowd` passages as alike as `similarity_min` are chosen, the next of them counts for half:
    a pair of near-duplicates may both be what was sought, a row of them hides the rest. A list
    without crowds keeps its order and scores. `vectors` has shape (n, dim), zero rows where there
    is no vector; equal texts are wholly alike.
    """
    import numpy as np

    alike = np.zeros(len(scores), dtype=np.int64)
    kinds = {text: number for number, text in enumerate(dict.fromkeys(texts))}
    kind = np.array([kinds[text] for text in texts], dtype=np.int64)
    current = np.array(scores, dtype=np.float64)
    free = np.ones(len(scores), dtype=bool)
    chosen: list[tuple[int, float]] = []
    while len(chosen) < min(k, len(scores)):
        # argmax takes the first of equals, and they came in order.
        best = int(np.where(free, current, -np.inf).argmax())
        free[best] = False
        chosen.append((best, float(current[best])))
        near = (vectors @ vectors[best] >= similarity_min) | (kind == kind[best])
        alike += near
        late = free & near & (alike == crowd)
        current[late] *= _CROWDED
    return chosen
