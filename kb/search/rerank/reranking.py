"""Orders the best candidates of one query anew, as far as a budget of time reaches.

Candidates that were scored are ordered by their scores within the places that they held. All
others keep their places.
"""

from collections.abc import Callable, Sequence
from typing import Final

from msgspec import Struct

from kb.errors import KbError
from kb.model.clock import Clock
from kb.model.config import RerankSettings
from kb.search.rerank.scores import Reranker, checked_scores

BATCH: Final = 8
"""How many chunks are scored between two looks at the clock."""


_FAILED: Final = "not reranked: "
_PARTLY: Final = "reranked "


def is_of_reranking(warning: str) -> bool:
    """Whether a warning says that an answer was not reranked, or only in part."""
    return warning.startswith((_FAILED, _PARTLY))


class Candidate(Struct, frozen=True, kw_only=True):
    """A chunk that may be scored."""

    key: str
    """Tells it from the others."""
    text: str
    boost: float = 1.0
    """Factor of its score: what boosts a chunk in the fusion does so here, too."""


class Reranking:
    """Scores the candidates of one query; for one thread.

    Asked again for a candidate, it gives the score of before. The reranker is loaded by the first
    question, and that time is not of the budget: else a process that answers one query would never
    rerank. A batch that ends after the budget counts.
    """

    def __init__(
        self,
        settings: RerankSettings,
        made: Callable[[RerankSettings], Reranker],
        query: str,
        clock: Clock,
    ) -> None:
        """`made` loads the reranker."""
        self.count = settings.candidates
        self._settings = settings
        self._made = made
        self._query = query
        self._clock = clock
        self._left_ms = settings.budget_ms
        self._scores: dict[str, float] = {}
        self._failure = ""
        self._warning = ""

    @property
    def warnings(self) -> tuple[str, ...]:
        """What the order lacks: nothing, or one line."""
        return (self._warning,) if self._warning else ()

    def order(self, candidates: Sequence[Candidate]) -> list[tuple[int, float | None]]:
        """For each place the position of the candidate that is there now, and its score, if any.

        The candidates are given best first, and at most the first `count` are scored.
        """
        scores = self._scored(candidates[: self.count])
        places = [n for n, candidate in enumerate(candidates) if candidate.key in scores]

        def preference(position: int) -> float:
            candidate = candidates[position]
            return scores[candidate.key] * candidate.boost

        order: list[tuple[int, float | None]] = [(n, None) for n in range(len(candidates))]
        best_first = sorted(places, key=lambda position: -preference(position))
        for place, position in zip(places, best_first, strict=True):
            order[place] = position, scores[candidates[position].key]
        return order

    def _scored(self, candidates: Sequence[Candidate]) -> dict[str, float]:
        """Scores by key, of the first candidates; none where the reranker fails."""
        if self._failure or not candidates:
            return {}
        try:
            self._score(candidates)
        except KbError as error:
            self._failure = str(error)
            self._warning = f"{_FAILED}{error}"
            return {}
        scores = {
            candidate.key: self._scores[candidate.key]
            for candidate in candidates
            if candidate.key in self._scores
        }
        self._warning = ""
        if len(scores) < len(candidates):
            self._warning = (
                f"{_PARTLY}{len(scores)} of {len(candidates)} passages in"
                f" {self._settings.budget_ms} ms; raise rerank.budget_ms to rerank all"
            )
        return scores

    def _score(self, candidates: Sequence[Candidate]) -> None:
        new = [candidate for candidate in candidates if candidate.key not in self._scores]
        if not new:
            return
        reranker = self._made(self._settings)
        for first in range(0, len(new), BATCH):
            if self._left_ms <= 0:
                return
            batch = new[first : first + BATCH]
            started = self._clock.lease_ms()
            scores = reranker.score(self._query, [candidate.text for candidate in batch])
            keys = [candidate.key for candidate in batch]
            self._scores.update(zip(keys, checked_scores(scores, len(batch)), strict=True))
            self._left_ms -= self._clock.lease_ms() - started
