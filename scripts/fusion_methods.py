"""Ways to order the candidates of a question, for `explore_fusion.py`. Pure.

Each family has variants. A variant takes what is known of a question and returns a score for each
candidate.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np
from msgspec import Struct

Array = Any
_K: Final = 200
_SHOWN_K: Final = 60
_SPACING_MIN: Final = 200
_TOP_SHARE: Final = 0.3
_UNFAMILIAR_SHARE: Final = 0.2
_FEEDBACK: Final = (3, 0.2)
_NEIGHBOURS_MAX: Final = 20


class Pool(Struct, kw_only=True):
    """The n candidates of a question that both legs judge. Arrays have shape (n,)."""

    query: Array
    """The question's vector, shape (dim,)."""
    vectors: Array
    """Shape (n, dim)."""
    docs: Array
    places: Array
    """The positions of their passages in the set."""
    words: Array
    """The share of the best score by words, from 0 to 1."""
    first_cosines: Array
    """The cosines with the question as it was asked."""
    foreign: Array
    familiarity: float
    top_share: float
    """The best score by words, as a share of what a passage full of them could score."""
    coverage: Array
    """The share of the question's terms in each, weighted by rarity."""
    unit: float
    """What all terms once, weighted by rarity, are of the score that counts as 1."""
    meaning: Array = None
    """The share of the best cosine, from 0 to 1, with the question moved by feedback."""
    today: Array = None
    near: Array = None
    """The positions of the nearest other candidates, nearest first, shape (n, at most 20)."""


def prepare(pool: Pool) -> Pool:
    """The pool, with what is computed of it once."""
    cosines = pool.vectors @ pool.vectors.T
    np.fill_diagonal(cosines, -1.0)
    count = min(_NEIGHBOURS_MAX, len(cosines) - 1)
    near = np.argpartition(-cosines, count, axis=1)[:, :count]
    order = np.argsort(-np.take_along_axis(cosines, near, axis=1), axis=1, kind="stable")
    pool.near = np.take_along_axis(near, order, axis=1)
    pool.meaning = fed_back(pool, *_FEEDBACK)
    pool.today = fused(pool, pool.words, pool.meaning)
    return pool


def spread(values: Array) -> Array:
    """Values from 0 for the least to 1 for the most."""
    low, top = values.min(), values.max()
    return (values - low) / (top - low) if top > low else np.ones(len(values))


def fused(pool: Pool, words: Array, meaning: Array, *, weight: float = 0.5, k: int = _K) -> Array:
    """Reciprocal ranks over spaced ranks, as `kb.search.fuse` has them."""
    count = max(len(words), _SPACING_MIN)
    by_words, by_meaning = 1 + count * (1 - words), 1 + count * (1 - meaning)
    by_words = np.where(pool.foreign, np.minimum(by_words, by_meaning), by_words)
    share = (1 - weight) * (_UNFAMILIAR_SHARE + (1 - _UNFAMILIAR_SHARE) * pool.familiarity)
    return (1 - share) / (k + by_words) + share / (k + by_meaning)


def fed_back(pool: Pool, count: int, weight: float) -> Array:
    """Shares by meaning, with the question moved towards the best passages so far."""
    first = fused(pool, pool.words, spread(pool.first_cosines))
    mean = pool.vectors[np.argsort(-first, kind="stable")[:count]].mean(axis=0)
    moved = (1 - weight) * pool.query + weight * mean / np.linalg.norm(mean)
    return spread((pool.vectors @ (moved / np.linalg.norm(moved))).astype(np.float64))


def _feedback(count: int, weight: float) -> "Method":
    return lambda pool: fused(pool, pool.words, fed_back(pool, count, weight))


def _weighted(weight: float) -> "Method":
    return lambda pool: fused(pool, pool.words, pool.meaning, weight=weight)


def _words_near(count: int, share: float, *, only_up: bool = False) -> "Method":
    """Scores by words move towards those of the nearest passages (Diaz, 2005)."""

    def method(pool: Pool) -> Array:
        moved = (1 - share) * pool.words + share * pool.words[pool.near[:, :count]].mean(axis=1)
        words = np.maximum(pool.words, moved) if only_up else moved
        return fused(pool, words, pool.meaning)

    return method


def _both_near(among: int, count: int, share: float, scored: "Method | None" = None) -> "Method":
    """Fused scores of the best move towards those of the nearest among them."""

    def method(pool: Pool) -> Array:
        scores = spread(scored(pool) if scored else pool.today)
        best = np.argsort(-scores, kind="stable")[:among]
        cosines = pool.vectors[best] @ pool.vectors[best].T
        np.fill_diagonal(cosines, -1.0)
        most = min(count, len(best) - 1)
        near = np.argpartition(-cosines, most, axis=1)[:, :most]
        own = scores[best]
        moved = scores - 2
        moved[best] = (1 - share) * own + share * own[near].mean(axis=1)
        return np.asarray(moved)

    return method


def _shown(pool: Pool) -> Array:
    """Today's scores on the scale that the engine shows, which is steeper at the top."""
    return _as_shown(pool.today)


def _as_shown(fused_scores: Array) -> Array:
    share = (_K + 1) * fused_scores
    return (_SHOWN_K + 1) * share / (_K + 1 + (_SHOWN_K - _K) * share)


def _outstanding(strength: float) -> "Method":
    """The leg whose best stands farther out has more weight (Shtok and others, 2012)."""

    def gap(shares: Array) -> float:
        best = np.sort(shares)[::-1][:11]
        return float(best[0] - best[1:].mean())

    def method(pool: Pool) -> Array:
        words, meaning = gap(pool.words), gap(pool.meaning)
        weight = 0.5 + strength * (words - meaning) / (words + meaning + 1e-9)
        return fused(pool, pool.words, pool.meaning, weight=float(np.clip(weight, 0.1, 0.9)))

    return method


def _by_ceiling(strength: float, middle: float) -> "Method":
    """Words have more weight where the best has a large share of what it could have."""

    def method(pool: Pool) -> Array:
        weight = float(np.clip(0.5 + strength * (pool.top_share - middle), 0.2, 0.8))
        return fused(pool, pool.words, pool.meaning, weight=weight)

    return method


def _convex(power_words: float, power_meaning: float) -> "Method":
    """A weighted sum of both shares to a power, without ranks."""

    def method(pool: Pool) -> Array:
        words = np.where(pool.foreign, np.maximum(pool.words, pool.meaning), pool.words)
        share = 0.5 * (_UNFAMILIAR_SHARE + (1 - _UNFAMILIAR_SHARE) * pool.familiarity)
        return (1 - share) * words**power_words + share * pool.meaning**power_meaning

    return method


def _covering(share: float) -> "Method":
    """Scores by words count for less where a passage lacks some of the rarer words."""
    return lambda pool: fused(pool, pool.words * (1 - share + share * pool.coverage), pool.meaning)


def _plus(delta: float) -> "Method":
    """Each term that a passage has counts `delta` of its rarity besides (Lv and Zhai, 2011)."""

    def method(pool: Pool) -> Array:
        words = pool.words + delta * pool.unit * pool.coverage
        most = max(1.0 + delta * pool.unit * _TOP_SHARE, float(words.max()))
        return fused(pool, words / most, pool.meaning)

    return method


def _second(share: float) -> "Method":
    """A passage has a share of its doc's second-best passage besides."""

    def method(pool: Pool) -> Array:
        scores = spread(pool.today)
        moved = scores.copy()
        _, doc_of, counts = np.unique(pool.docs, return_inverse=True, return_counts=True)
        for doc in np.flatnonzero(counts > 1):
            own = np.flatnonzero(doc_of == doc)
            moved[own] += share * np.sort(scores[own])[-2]
        return moved

    return method


Method = Callable[[Pool], Array]

FAMILIES: Final[Mapping[str, Mapping[str, Method]]] = {
    "k": {
        str(k): lambda pool, k=k: fused(pool, pool.words, pool.meaning, k=k) for k in (60, 100, 400)
    },
    "weight of words": {str(weight): _weighted(weight) for weight in (0.4, 0.45, 0.55)},
    "feedback": {
        f"{count}, {weight}": _feedback(count, weight)
        for count, weight in ((3, 0.0), (3, 0.3), (3, 0.4), (5, 0.3), (10, 0.3))
    },
    "words of the nearest": {
        f"{count}, {share}": _words_near(count, share)
        for count, share in ((5, 0.2), (10, 0.2), (10, 0.3), (20, 0.3))
    },
    "words of the nearest, only up": {
        f"{count}, {share}": _words_near(count, share, only_up=True)
        for count, share in ((10, 0.3), (10, 0.5))
    },
    "scores of the nearest": {
        f"{among}, {count}, {share}": _both_near(among, count, share)
        for among, count, share in ((50, 5, 0.2), (100, 10, 0.2), (50, 10, 0.3), (100, 5, 0.3))
    },
    "outstanding leg": {str(strength): _outstanding(strength) for strength in (0.1, 0.2, 0.3)},
    "share of the ceiling": {
        f"{strength}, {middle}": _by_ceiling(strength, middle)
        for strength, middle in ((0.5, 0.4), (0.5, 0.5), (1.0, 0.45))
    },
    "convex": {
        f"{words}, {meaning}": _convex(words, meaning)
        for words, meaning in ((1.0, 1.0), (1.5, 1.5), (2.0, 2.0), (2.0, 1.0), (1.0, 2.0))
    },
    "coverage": {str(share): _covering(share) for share in (0.2, 0.4)},
    "delta": {str(delta): _plus(delta) for delta in (0.25, 0.5, 1.0)},
    "shown scores of the nearest": {
        f"{among}, {count}, {share}": _both_near(among, count, share, _shown)
        for among, count, share in ((50, 5, 0.2), (100, 10, 0.2), (100, 10, 0.3), (50, 10, 0.2))
    },
    "scores of the nearest, and coverage": {
        f"{among}, {count}, {share}; {covering}": _both_near(
            among, count, share, _covering(covering)
        )
        for among, count, share in ((50, 5, 0.2), (100, 10, 0.2), (100, 10, 0.3))
        for covering in (0.3, 0.5)
    },
    "shown scores of the nearest, and coverage": {
        f"{among}, {count}, {share}; {covering}": _both_near(
            among,
            count,
            share,
            lambda pool, covering=covering: _as_shown(_covering(covering)(pool)),
        )
        for among, count, share in (
            *((50, 5, 0.2), (100, 5, 0.2), (100, 10, 0.3), (100, 10, 0.4)),
            *((150, 10, 0.3), (200, 10, 0.3), (100, 15, 0.4), (200, 15, 0.4)),
        )
        for covering in (0.0, 0.1, 0.2, 0.3, 0.4)
    },
    "scores of the nearest, and delta": {
        f"{among}, {count}, {share}; {delta}": _both_near(among, count, share, _plus(delta))
        for among, count, share in ((50, 5, 0.2), (100, 10, 0.2), (100, 10, 0.3))
        for delta in (0.5, 1.0)
    },
    "second passage": {str(share): _second(share) for share in (0.05, 0.1, 0.2)},
}
