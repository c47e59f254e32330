"""What does every reranker promise? A query and chunks in, checked scores out."""

import math
from collections.abc import Sequence
from typing import Final, Protocol

from kb.errors import RerankError

_DIGITS: Final = 6


class Reranker(Protocol):
    """Says how well chunks answer a query. It is loaded when it is made.

    The same query and chunks give the same scores. Safe to share by threads. Raises RerankError
    when it fails.
    """

    def score(self, query: str, passages: Sequence[str]) -> Sequence[float]:
        """A score from 0 to 1 for each chunk, in their order; the best chunk has the highest.

        A chunk is its title, its headings, and its text. Few are given at a time.
        """
        ...


def checked_scores(scores: object, n: int) -> list[float]:
    """The scores of n chunks, rounded. Raises RerankError on any other number of them or kind."""
    try:
        values = [float(score) for score in scores]  # type: ignore[attr-defined]
    except (TypeError, ValueError) as error:
        raise RerankError(f"the reranker returned what are no scores ({error})") from error
    if len(values) != n:
        raise RerankError(f"the reranker returned {len(values)} scores for {n} passages")
    for value in values:
        if not (math.isfinite(value) and 0.0 <= value <= 1.0):
            raise RerankError(f"the reranker returned {value}, which is no score from 0 to 1")
    return [round(value, _DIGITS) for value in values]


def logistic(logit: float) -> float:
    """A logit as a score from 0 to 1; of two logits their difference is a softmax."""
    return 0.5 * (1.0 + math.tanh(logit / 2.0))
