"""Does a passage fit the question, or is it merely the nearest there is? Pure.

A score says how a passage stands to the others that were found, and the best one has a high score
whatever was asked. Fit says how it stands to the question. Two signs of it are added up: how much
nearer in meaning the passage is than others of the corpus are, and which share of the question's
words it says, rare words counting for more. docs/nothing-fits.md has the measurements.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct
from msgspec.structs import replace

from kb.model.text import indexed_text
from kb.search.answer import FITS, Scored
from kb.search.candidates import Candidates
from kb.search.index.words import ANALYSIS_VERSION, is_han, terms, terms_in

BACKGROUND: Final = 0.03
"""How near unrelated texts are to each other, to the built-in model."""
OTHERS: Final = 20
"""So many unrelated passages a corpus is taken to hold besides its own: in a home of five notes the
other four say little of what is near to a question there, and of which words are common."""
_SAID_WEIGHT: Final = 0.7
_RARITY_POWER: Final = 2
"""Squared, for a foreign question shares its common words with any text."""
_DIGITS: Final = 4
_SCORE_DIGITS: Final = 6
_FIT_MIN: Final = 0.01
"""What scores are multiplied by at the least, so that they still tell the better from the worse."""

_BUILT_IN: Final = "onnx:all-MiniLM-L6-v2-int8:6b3e72af7bf8"
NEAR_FLOORS: Final[Mapping[tuple[str, int, str], float]] = {
    (_BUILT_IN, 1, "spaced"): 0.31,
    (_BUILT_IN, 1, "plain"): 0.31,
}
"""By the model's fingerprint, the version of the analysis of words, and fusion: the sum of both
signs from which on a passage fits. `make calibrate` measures them."""
WORDS_FLOORS: Final[Mapping[tuple[int, str], float]] = {
    (1, "spaced"): 0.23,
    (1, "plain"): 0.23,
}
"""By analysis and fusion: the share of words from which on a passage fits where nearness says
nothing, for want of a model, of a vector, or of a measurement of the model."""
_WORDS_FLOOR: Final = 0.23


class Signs(Struct, frozen=True, kw_only=True):
    """What speaks for a passage."""

    near: float | None
    """How much nearer it is than the corpus, from 0 to 1; None where no model says."""
    said: float
    """The share of the question's words that it says, by their rarity, from 0 to 1."""


class Rule(Struct, frozen=True, kw_only=True):
    """From where on a passage fits, under a model and an analysis."""

    near_floor: float | None
    """Of both signs together; None where nearness says nothing."""
    words_floor: float

    def fit(self, signs: Signs) -> float:
        """From 0 to 1, FITS at the floor."""
        if self.near_floor is None or signs.near is None:
            strength = signs.said / self.words_floor
        else:
            strength = strength_of(signs.near, signs.said) / self.near_floor
        return round(min(1.0, FITS * strength), _DIGITS)


def strength_of(near: float, said: float) -> float:
    """Both signs as one number, which a floor is set for."""
    return near + _SAID_WEIGHT * said


def rule_of(fingerprint: str | None, fusion: str) -> Rule:
    """The rule under a model, or without one; of a model that was not measured words alone say."""
    return Rule(
        near_floor=NEAR_FLOORS.get((fingerprint or "", ANALYSIS_VERSION, fusion)),
        words_floor=WORDS_FLOORS.get((ANALYSIS_VERSION, fusion), _WORDS_FLOOR),
    )


class Question(Struct, frozen=True, kw_only=True):
    """What a passage is held against."""

    weights: Mapping[str, float]
    """The question's words, analysed, by how rare they are."""
    near_sum: float
    """Of the cosines of all candidates that have a vector."""
    near_count: int

    def signs(self, row: Scored) -> Signs:
        """What speaks for a passage."""
        near = None if row.near is None else self.near(row.near)
        text = indexed_text(row.doc.label, row.chunk.heading, row.chunk.text)
        return Signs(near=near, said=said_share(self.weights, text))

    def near(self, cosine: float) -> float:
        """How much nearer a candidate is than the others, at least 0."""
        others = self.near_sum - cosine + OTHERS * BACKGROUND
        background = max(BACKGROUND, others / (self.near_count - 1 + OTHERS))
        return max(0.0, cosine - background)


def asked(text: str, found: Candidates, rarity: Mapping[str, float]) -> Question:
    """A question with its candidates; words are alike where `rarity` has none of them."""
    import numpy as np

    known = found.dense[~np.isnan(found.dense)]
    return Question(
        weights={word: rare**_RARITY_POWER for word, rare in rarity.items()}
        or dict.fromkeys(terms(text), 1.0),
        near_sum=float(known.sum()),
        near_count=len(known),
    )


def said_share(weights: Mapping[str, float], text: str) -> float:
    """The share of some words that a text says, by their weights; 0 where there are none."""
    total = math.fsum(weights.values())
    if total <= 0:
        return 0.0
    said = terms_in(text, frozenset(weights))
    return (
        math.fsum(
            weight
            for word, weight in weights.items()
            # A dictionary parts Han otherwise in a passage than in a question.
            if word in said or (is_han(word) and word in text)
        )
        / total
    )


def judged(
    rows: Iterable[Scored], question: Question, rule: Rule, score_min: float
) -> list[Scored]:
    """The rows with their fit, as far as they score `score_min`.

    Where none of them fits, all score below FITS, the less the farther the best is from fitting;
    the proportions stay.
    """
    fitted = [replace(row, fit=rule.fit(question.signs(row))) for row in rows]
    best = max((row.fit or 0.0 for row in fitted), default=1.0)
    if best < FITS:
        best = max(best, _FIT_MIN)
        scores = [round(row.score * best, _SCORE_DIGITS) for row in fitted]
        fitted = [replace(row, score=score) for row, score in zip(fitted, scores, strict=True)]
    return [row for row in fitted if row.score >= score_min]
