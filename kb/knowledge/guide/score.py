"""How sure is a section of an entry? From nearness and words, to a number of at most 1. Pure.

The score is half of how near the section is in meaning, a quarter of the share of the question's
words that the store's entries know at all, and a quarter of the share that this section says. The
measurements are in docs/guide-threshold.md.
"""

from collections.abc import Collection
from typing import Final

BUILT_IN: Final = "onnx:all-MiniLM-L6-v2-int8:6b3e72af7bf8"
SCORE_MIN: Final[dict[str, float]] = {BUILT_IN: 0.42}
"""By the model's fingerprint: from where on a section answers, as scripts/calibrate_guide.py
measured it for the built-in model."""
SCORE_MIN_DEFAULT: Final = 0.42
"""Of every other model: nearness is counted from the model's own background."""

_NEARNESS: Final = 0.5
_KNOWN: Final = 0.25
_SAID: Final = 0.25


def score_min(fingerprint: str | None) -> float:
    """From where on a section answers, under a model or without one."""
    return SCORE_MIN.get(fingerprint or "", SCORE_MIN_DEFAULT)


def nearness(cosine: float, background: float) -> float:
    """From 0, as near as texts that have nothing to do with each other, to 1, the same.

    What all vectors of a model have in common moves cosine and background alike, so that it has
    no part in the result.
    """
    return max(0.0, (cosine - background) / (1.0 - background)) if background < 1.0 else 0.0


def share(asked: Collection[str], said: Collection[str]) -> float:
    """Which share of the words that are asked is said; 0 where none is asked."""
    return sum(word in said for word in asked) / len(asked) if asked else 0.0


def score_of(near: float, known: float, said: float) -> float:
    """The three shares, each from 0 to 1, as one number of at most 1."""
    return _NEARNESS * near + _KNOWN * known + _SAID * said
