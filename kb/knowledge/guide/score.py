"""How well does a section answer? A score of at most 1, from similarity and shared words. Pure.

Half of the score is the similarity of section and question, a quarter is the share of the
question's words that occur in any section found, and a quarter is the share that occurs in this
section. The measurements are in docs/guide-threshold.md.
"""

from collections.abc import Collection
from typing import Final

BUILT_IN: Final = "onnx:all-MiniLM-L6-v2-int8:6b3e72af7bf8"
SCORE_MIN: Final[dict[str, float]] = {BUILT_IN: 0.42}
"""By the model's fingerprint: the least score of an answering section. scripts/calibrate_guide.py
measured it for the built-in model."""
SCORE_MIN_DEFAULT: Final = 0.42
"""For every other model: similarity is measured from the model's own background."""

_SIMILARITY_WEIGHT: Final = 0.5
_CORPUS_WEIGHT: Final = 0.25
_SECTION_WEIGHT: Final = 0.25


def score_min(fingerprint: str | None) -> float:
    """The least score of a section that answers, for a model or without one."""
    return SCORE_MIN.get(fingerprint or "", SCORE_MIN_DEFAULT)


def nearness(cosine: float, background: float) -> float:
    """Similarity above the background: 0 for unrelated texts, 1 for equal ones.

    What all vectors of a model have in common raises cosine and background alike, so it cancels
    out.
    """
    return max(0.0, (cosine - background) / (1.0 - background)) if background < 1.0 else 0.0


def share(words: Collection[str], present: Collection[str]) -> float:
    """The share of the wanted words that are present; 0 where none is wanted."""
    return sum(word in present for word in words) / len(words) if words else 0.0


def score_of(similarity: float, corpus_share: float, section_share: float) -> float:
    """The three shares, each from 0 to 1, as one number of at most 1."""
    return (
        _SIMILARITY_WEIGHT * similarity
        + _CORPUS_WEIGHT * corpus_share
        + _SECTION_WEIGHT * section_share
    )
