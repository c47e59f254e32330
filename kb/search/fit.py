"""Fit: does a chunk fit the query, or is it merely the nearest there is? Pure.

A rank score compares a chunk with the other candidates, so the best one has a high one whatever
the query is. Fit compares it with the query. It adds up two signals: nearness, how much more
similar to the query the chunk is than the other candidates are; and coverage, the share of the
query's terms that the chunk contains, weighted by rarity. docs/nothing-fits.md has the
measurements. A hit's score is the least fit of it and of the hits before it.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from kb.model.source import name_and_folders
from kb.model.text import indexed_text
from kb.search.candidates import Candidates, WordCandidates
from kb.search.hits import FIT_THRESHOLD, ScoredChunk
from kb.search.index.analysis import ANALYSIS_VERSION, terms
from kb.search.paging import with_falling_scores
from kb.search.term_places import term_places

BACKGROUND_COSINE: Final = 0.03
"""The cosine of unrelated texts under the built-in model, and under models not measured."""
BACKGROUND_CHUNKS: Final = 20
"""This many unrelated chunks are assumed besides those of the corpus: in a home of five notes, four
others tell little about what is similar to a query there, and which terms are common."""
_COVERAGE_WEIGHT: Final = 0.7
_RARITY_POWER: Final = 2
"""Squared, because an unrelated query shares its common terms with any text."""
_FIT_DIGITS: Final = 4

_BUILT_IN: Final = "onnx:all-MiniLM-L6-v2-int8:6b3e72af7bf8"
_MULTILINGUAL: Final = "onnx:multilingual-e5-small-int8:f57943520ff4:'query: ''passage: '"
_BACKGROUND_COSINES: Final[Mapping[str, float]] = {_MULTILINGUAL: 0.75}
COMBINED_FLOORS: Final[Mapping[tuple[str, int, str], float]] = {
    (_BUILT_IN, 3, "spaced"): 0.31,
    (_BUILT_IN, 3, "plain"): 0.31,
    (_MULTILINGUAL, 3, "spaced"): 0.36,
    (_MULTILINGUAL, 3, "plain"): 0.36,
}
"""The strength from which on a chunk fits, by the model's fingerprint, the version of the text
analysis, and the fusion. Measured by `make calibrate`."""
COVERAGE_FLOORS: Final[Mapping[tuple[int, str], float]] = {
    (3, "spaced"): 0.23,
    (3, "plain"): 0.23,
}
"""The coverage from which on a chunk fits where nearness is not known (no model, no vector, or a
model that was not measured), by the version of the text analysis and the fusion."""
_COVERAGE_FLOOR: Final = 0.23


class FitSignals(Struct, frozen=True, kw_only=True):
    """The two signals that a chunk fits."""

    nearness: float | None
    """How much its cosine exceeds that of the corpus, from 0 to 1; None without a cosine."""
    coverage: float
    """The share of the query's terms that it contains, weighted by rarity, from 0 to 1."""


class FitRule(Struct, frozen=True, kw_only=True):
    """The floors from which on a chunk fits, under one model and text analysis."""

    combined_floor: float | None
    """Of nearness and coverage together, see `fit_strength`; None to use coverage alone."""
    coverage_floor: float
    background_cosine: float = BACKGROUND_COSINE
    """The cosine of unrelated texts under the model."""

    def fit(self, signals: FitSignals) -> float:
        """The fit from 0 to 1: FIT_THRESHOLD at the floor, and linear below and above it.

        It is 1 for the strongest signals that there can be.
        """
        if self.combined_floor is None or signals.nearness is None:
            return _fit(signals.coverage, self.coverage_floor, 1.0)
        strength = fit_strength(signals.nearness, signals.coverage)
        return _fit(strength, self.combined_floor, fit_strength(1.0, 1.0))


def _fit(strength: float, floor: float, most: float) -> float:
    if strength < floor:
        return round(FIT_THRESHOLD * strength / floor, _FIT_DIGITS)
    above = (min(strength, most) - floor) / (most - floor)
    return round(FIT_THRESHOLD + (1.0 - FIT_THRESHOLD) * above, _FIT_DIGITS)


def fit_strength(nearness: float, coverage: float) -> float:
    """Both signals as one number, comparable with `combined_floor`."""
    return nearness + _COVERAGE_WEIGHT * coverage


def fit_rule(fingerprint: str | None, fusion: str) -> FitRule:
    """The rule for a model, or None for no model. A model without a measurement has no floor."""
    return FitRule(
        combined_floor=COMBINED_FLOORS.get((fingerprint or "", ANALYSIS_VERSION, fusion)),
        coverage_floor=COVERAGE_FLOORS.get((ANALYSIS_VERSION, fusion), _COVERAGE_FLOOR),
        background_cosine=_BACKGROUND_COSINES.get(fingerprint or "", BACKGROUND_COSINE),
    )


class FitContext(Struct, frozen=True, kw_only=True):
    """What the fit of each chunk is measured against: the query's terms and the candidates."""

    weights: Mapping[str, float]
    """The weight of each analysed term of the query, by its rarity."""
    cosine_sum: float
    """Over all candidates that have a vector."""
    cosine_count: int
    background_cosine: float = BACKGROUND_COSINE

    def signals(self, row: ScoredChunk) -> FitSignals:
        """The signals of a chunk."""
        nearness = None if row.cosine is None else self.nearness(row.cosine)
        name, _ = name_and_folders(row.doc.source)
        head = f"{name}\n{indexed_text(row.doc.label, row.chunk.heading, '')}"
        return FitSignals(
            nearness=nearness, coverage=term_coverage(self.weights, row.chunk.text, head)
        )

    def nearness(self, cosine: float) -> float:
        """How much a candidate's cosine exceeds the mean of the other candidates; at least 0.

        On the scale of the built-in model, whatever the cosines of unrelated texts are.
        """
        unrelated = self.background_cosine
        others = self.cosine_sum - cosine + BACKGROUND_CHUNKS * unrelated
        background = max(unrelated, others / (self.cosine_count - 1 + BACKGROUND_CHUNKS))
        return max(0.0, cosine - background) * (1 - BACKGROUND_COSINE) / (1 - unrelated)


def fit_context(
    text: str,
    candidates: Candidates | WordCandidates,
    rarity: Mapping[str, float],
    background_cosine: float = BACKGROUND_COSINE,
) -> FitContext:
    """The context of a query text; an empty `rarity` gives all of its terms the same weight."""
    cosine_sum, cosine_count = candidates.cosines()
    return FitContext(
        weights={term: rare**_RARITY_POWER for term, rare in rarity.items()}
        or dict.fromkeys(terms(text), 1.0),
        cosine_sum=cosine_sum,
        cosine_count=cosine_count,
        background_cosine=background_cosine,
    )


def term_coverage(weights: Mapping[str, float], text: str, head: str = "") -> float:
    """The weighted share of the terms that a text contains, or the lines above it.

    0 where there are no terms.
    """
    total = math.fsum(weights.values())
    if total <= 0:
        return 0.0
    terms = frozenset(weights)
    present = term_places(text, terms).held
    if present != terms:
        present |= term_places(head, terms - present).held
    return math.fsum(weight for term, weight in weights.items() if term in present) / total


def apply_fit(rows: Iterable[ScoredChunk], context: FitContext, rule: FitRule) -> list[ScoredChunk]:
    """The rows, which are the first of a ranking, with their fit and their score."""
    fits = [(row, rule.fit(context.signals(row))) for row in rows]
    return with_falling_scores(replace(row, fit=fit, score=fit) for row, fit in fits)


def apply_cosine(rows: Iterable[ScoredChunk]) -> list[ScoredChunk]:
    """The rows, which are the first of a ranking by a vector alone, with their score."""
    cosines = [(row, min(1.0, max(0.0, row.cosine or 0.0))) for row in rows]
    return with_falling_scores(
        replace(row, score=round(cosine, _FIT_DIGITS)) for row, cosine in cosines
    )
