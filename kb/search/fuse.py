"""Fuses the rankings of the legs (lexical, dense) into one ranking. Pure.

Reciprocal rank fusion is by Cormack, Clarke and Buettcher (SIGIR 2009). The "spaced" form derives
a candidate's rank from its score instead of from the number of better candidates, so that a clear
winner ranks far ahead and near-ties rank close together.
"""

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final

from msgspec import Struct

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

# How fast a score falls with the rank, whatever `k` is.
_SCORE_K: Final = 60
_DIGITS: Final = 6
# Of so many of the best, each takes a share of its score from so many that are nearest to it.
_SUPPORTED: Final = 50
_NEAREST: Final = 5
_SUPPORT_SHARE: Final = 0.2
_MULTIPLIED: Final = 10


class LegScores(Struct, frozen=True, kw_only=True):
    """One leg's scores of the n candidates, shape (n,), NaN where it has none; and its weight."""

    scores: "NDArray[np.float64]"
    weight: float
    floor: float | None = None
    """The score that counts for nothing; None for the lowest score."""
    top_min: float = 0.0
    """The least score that counts in full, so that a leg whose best is weak does not."""
    silent: "NDArray[np.bool_] | None" = None
    """The candidates that the leg cannot judge, which have their rank of another leg if it is
    better; shape (n,), None for none."""


def ordinal_ranks(scores: "NDArray[np.float64]") -> "NDArray[np.float64]":
    """Ranks from 1, equal scores sharing the better one; NaN stays NaN. Shape (n,)."""
    import numpy as np

    present = scores[~np.isnan(scores)]
    better = np.sort(-present)
    ranks = np.searchsorted(better, -scores, side="left") + 1.0
    return np.where(np.isnan(scores), np.nan, ranks)


def spaced_ranks(leg: LegScores, spacing_min: int = 0) -> "NDArray[np.float64]":
    """1 + n x (1 - normalised score); 1 + n where the leg has no score. Shape (n,).

    n is the number of candidates, or `spacing_min` where they are fewer, so that the
    last of a handful also ranks well behind the first.
    """
    import numpy as np

    scores = leg.scores
    n = max(len(scores), spacing_min)
    missing = np.isnan(scores)
    present = scores[~missing]
    if present.size == 0:
        return np.full(len(scores), 1.0 + n)
    top = max(float(present.max()), leg.top_min)
    low = float(present.min()) if leg.floor is None else min(leg.floor, float(present.min()))
    share = (scores - low) / (top - low) if top > low else np.ones(len(scores))
    share[missing] = 0.0
    return np.asarray(1.0 + n * (1.0 - share), dtype=np.float64)


def fuse_words(
    scores: Sequence[float], weight: float, *, spaced: bool, spacing_min: int = 0
) -> list[float]:
    """`fuse` of the lexical leg alone, which has a score for every candidate; without numpy."""
    if not weight or not scores:
        return [0.0] * len(scores)
    if spaced:
        n = max(len(scores), spacing_min)
        top, low = max(scores), min(0.0, *scores)
        shares = [(score - low) / (top - low) if top > low else 1.0 for score in scores]
        ranks = [1.0 + n * (1.0 - share) for share in shares]
    else:
        first: dict[float, int] = {}
        for rank, score in enumerate(sorted(scores, reverse=True), 1):
            first.setdefault(score, rank)
        ranks = [float(first[score]) for score in scores]
    return [(_SCORE_K + 1) / (_SCORE_K + rank) for rank in ranks]


def fuse(
    legs: "list[LegScores]", *, k: int, spaced: bool, spacing_min: int = 0
) -> "NDArray[np.float64]":
    """The fused score of each candidate, at most 1. Shape (n,).

    The order is that of the sum of weight / (k + rank). The score is 61 / (60 + r), where r is the
    rank that gives the same sum if the candidate has it in every leg. So what a factor on a score
    is worth in ranks does not depend on `k`.
    By plain ranks a candidate gets nothing from a leg that has no score for it.
    """
    import numpy as np

    total = np.zeros(len(legs[0].scores), dtype=np.float64)
    best = sum(leg.weight for leg in legs) / (k + 1)
    ranks = [
        spaced_ranks(leg, spacing_min) if spaced else ordinal_ranks(leg.scores) for leg in legs
    ]
    for leg, own in zip(legs, ranks, strict=True):
        taken = own
        if leg.silent is not None and leg.silent.any():
            taken = np.where(leg.silent, functools.reduce(np.fmin, ranks), own)
        given = leg.weight / (k + taken)
        if not spaced:
            given[np.isnan(given)] = 0.0
        total += given
    share = total / best if best else total
    return np.asarray((_SCORE_K + 1) * share / (k + 1 + (_SCORE_K - k) * share), dtype=np.float64)


def supported(
    fused: "NDArray[np.float64]", vectors: "NDArray[np.float32]", has_vector: "NDArray[np.bool_]"
) -> "NDArray[np.float64]":
    """The fused scores, those of the best moved towards those of the nearest among them.

    Chunks that say the same answer the same questions, so that one among good ones is better than
    its own words and its own vector tell (Diaz, Regularizing ad hoc retrieval scores, 2005). What
    has no vector, and what is not among the best, keeps its score and comes no farther forward.
    `vectors` has shape (n, dim).
    """
    import numpy as np

    # They ascend by number.
    best = np.argsort(-fused.round(_DIGITS), kind="stable")[:_SUPPORTED]
    best = best[has_vector[best]]
    count = min(_NEAREST, len(best) - 1)
    if count < 1:
        return fused
    among = vectors[best].astype(np.float64)
    # In parts for which the algebra starts no threads, which cost tens of times more than the
    # product on a busy machine.
    parts = [among[low : low + _MULTIPLIED] @ among.T for low in range(0, len(best), _MULTIPLIED)]
    likeness = np.concatenate(parts)
    np.fill_diagonal(likeness, -np.inf)
    # Of equally near ones the better come first, whatever their numbers are.
    nearest = np.argsort(-likeness.round(_DIGITS), axis=1, kind="stable")[:, :count]
    moved = fused.copy()
    moved[best] += _SUPPORT_SHARE * (fused[best][nearest].mean(axis=1) - fused[best])
    return moved
