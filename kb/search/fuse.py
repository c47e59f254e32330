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
    """Score that counts for nothing; None takes the lowest there is."""
    top_min: float = 0.0
    """Score that a full hit has at least: a leg whose best is weak says so."""


def ordinal_ranks(scores: "NDArray[np.float64]") -> "NDArray[np.float64]":
    """Ranks from 1, equal scores sharing the better one; NaN stays NaN. Shape (n,)."""
    import numpy as np

    known = scores[~np.isnan(scores)]
    better = np.sort(-known)
    ranks = np.searchsorted(better, -scores, side="left") + 1.0
    return np.where(np.isnan(scores), np.nan, ranks)


def spaced_ranks(leg: Leg, spacing_min: int = 0) -> "NDArray[np.float64]":
    """1 + n x (1 - normalised score); 1 + n where the leg has no score. Shape (n,).

    n is the number of candidates, or `spacing_min` where they are fewer: among a handful, too, the
    last must stand well behind the first.
    """
    import numpy as np

    scores = leg.scores
    n = max(len(scores), spacing_min)
    known = scores[~np.isnan(scores)]
    if known.size == 0:
        return np.full(len(scores), 1.0 + n)
    top = max(float(known.max()), leg.top_min)
    low = float(known.min()) if leg.floor is None else min(leg.floor, float(known.min()))
    share = (scores - low) / (top - low) if top > low else np.ones(len(scores))
    return np.asarray(1.0 + n * (1.0 - np.where(np.isnan(scores), 0.0, share)), dtype=np.float64)


def fuse(legs: "list[Leg]", *, k: int, spaced: bool, spacing_min: int = 0) -> "NDArray[np.float64]":
    """The fused score of each candidate: sum of weight / (k + rank), scaled to at most 1.

    By plain ranks a candidate that a leg did not bring gets nothing from it. Shape (n,).
    """
    import numpy as np

    total = np.zeros(len(legs[0].scores), dtype=np.float64)
    best = sum(leg.weight for leg in legs) / (k + 1)
    for leg in legs:
        ranks = spaced_ranks(leg, spacing_min) if spaced else ordinal_ranks(leg.scores)
        total += np.nan_to_num(leg.weight / (k + ranks), nan=0.0)
    return total / best if best else total
