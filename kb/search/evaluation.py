"""How good is a ranking, where it is known what should come? Pure."""

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Final

from msgspec import Struct

DEPTH: Final = 10
"""Places that count for nDCG and the reciprocal rank."""
RECALL_DEPTH: Final = 100


class Scores(Struct, frozen=True, kw_only=True):
    """How good rankings are, each figure from 0 to 1."""

    ndcg_at_10: float
    """Discounted gain (Jarvelin and Kekalainen, 2002), linear in the grade."""
    recall_at_100: float
    mrr_at_10: float
    """One over the place of the first that was sought; 0 behind the tenth."""


def scores(ranked: Sequence[str], grades: Mapping[str, int]) -> Scores:
    """Of one ranking, best first and without repeats; what is sought has a grade above 0."""
    gained = sum(
        grades.get(ident, 0) / math.log2(place + 2) for place, ident in enumerate(ranked[:DEPTH])
    )
    ideal = sorted(grades.values(), reverse=True)[:DEPTH]
    best = sum(grade / math.log2(place + 2) for place, grade in enumerate(ideal))
    first = place_of_first(ranked[:DEPTH], grades)
    found = sum(ident in grades for ident in ranked[:RECALL_DEPTH])
    return Scores(
        ndcg_at_10=gained / best,
        recall_at_100=found / len(grades),
        mrr_at_10=1 / first if first else 0.0,
    )


def place_of_first(ranked: Sequence[str], grades: Mapping[str, int]) -> int | None:
    """The place, from 1, of the first that is sought; None where none is."""
    return next((place for place, ident in enumerate(ranked, 1) if ident in grades), None)


def mean(rows: Sequence[Scores]) -> Scores:
    """The mean of each figure over at least one ranking."""
    return Scores(
        **{name: statistics.fmean(getattr(row, name) for row in rows) for name in _FIELDS}
    )


_FIELDS: Final = Scores.__struct_fields__
