"""Fusion: two lists of candidates become one order. Pure.

Reciprocal rank fusion is Cormack, Clarke and Buettcher's (SIGIR 2009). The spaced form takes a
candidate's place in a leg from its score rather than from how many stand before it, so that a
runaway first stands far ahead and near-ties stand together.
"""

from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Leg(Struct, frozen=True, kw_only=True):
    """One leg's view of the n candidates: scores, NaN where it has none; and its weight."""

    scores: "NDArray[np.float64]"
    weight: float
    floor: float | None = None
    """Score of a candidate that the leg knows nothing of; None takes its lowest."""


def ordinal_ranks(scores: "NDArray[np.float64]") -> "NDArray[np.float64]":
    """Ranks from 1, equal scores sharing the better one; NaN stays NaN. Shape (n,)."""
    import numpy as np

    known = scores[~np.isnan(scores)]
    better = np.sort(-known)
    ranks = np.searchsorted(better, -scores, side="left") + 1.0
    return np.where(np.isnan(scores), np.nan, ranks)


def spaced_ranks(
    scores: "NDArray[np.float64]", floor: float | None = None
) -> "NDArray[np.float64]":
    """1 + n x (1 - normalised score), n the number of candidates; NaN stays NaN. Shape (n,)."""
    import numpy as np

    known = scores[~np.isnan(scores)]
    if known.size == 0:
        return scores
    top = float(known.max())
    low = float(known.min()) if floor is None else min(floor, float(known.min()))
    spread = top - low
    share = (scores - low) / spread if spread > 0 else np.where(np.isnan(scores), np.nan, 1.0)
    return np.asarray(1.0 + len(scores) * (1.0 - share), dtype=np.float64)


def fuse(legs: "list[Leg]", *, k: int, spaced: bool) -> "NDArray[np.float64]":
    """The fused score of each candidate: sum of weight / (k + rank), scaled to at most 1.

    A candidate that a leg did not bring gets nothing from that leg. Shape (n,).
    """
    import numpy as np

    total = np.zeros(len(legs[0].scores), dtype=np.float64)
    best = sum(leg.weight for leg in legs) / (k + 1)
    for leg in legs:
        ranks = spaced_ranks(leg.scores, leg.floor) if spaced else ordinal_ranks(leg.scores)
        total += np.nan_to_num(leg.weight / (k + ranks), nan=0.0)
    return total / best if best else total
