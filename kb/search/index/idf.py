"""Inverse document frequencies over several indexes, which make their scores comparable. Pure.

BM25 weighs a term by its inverse document frequency (Robertson and Zaragoza, 2009), which an index
knows only of its own rows. The average document length stays that of each index.
"""

import functools
import math
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from kb.search.index.files import CacheDamaged
from kb.search.index.lexical_query import DocFreq, HasTerm, WeightFactor

# As in tantivy.
_K1: Final = 1.2


class TermFrequencies(Struct, frozen=True, kw_only=True):
    """The statistics of an index that the weights of its terms are computed from."""

    rows: int
    """Including dead rows, which `doc_freq` also counts."""
    doc_freq: DocFreq
    """The number of rows that contain a term in a field."""
    has_term: HasTerm
    """Whether a live row contains a term in a field."""


def merge_frequencies(parts: Sequence[TermFrequencies]) -> TermFrequencies:
    """The frequencies of several indexes as if they were one index."""
    if len(parts) == 1:
        return parts[0]

    @functools.cache
    def doc_freq(field: str, term: str) -> int:
        return sum(part.doc_freq(field, term) for part in parts)

    def has_term(field: str, term: str) -> bool:
        return any(part.has_term(field, term) for part in parts)

    return TermFrequencies(
        rows=sum(part.rows for part in parts), doc_freq=doc_freq, has_term=has_term
    )


def without_damage(frequencies: TermFrequencies) -> TermFrequencies:
    """The frequencies of another home's index, which count nothing if it is damaged."""

    def doc_freq(field: str, term: str) -> int:
        try:
            return frequencies.doc_freq(field, term)
        except CacheDamaged:
            return 0

    def has_term(field: str, term: str) -> bool:
        try:
            return frequencies.has_term(field, term)
        except CacheDamaged:
            return False

    return TermFrequencies(rows=frequencies.rows, doc_freq=doc_freq, has_term=has_term)


def idf_factors(own: TermFrequencies, joint: TermFrequencies) -> WeightFactor:
    """The factor that turns an index's own weight of terms into the joint weight."""

    def factor(field: str, terms: Sequence[str]) -> float:
        return _weight(joint, field, terms) / _weight(own, field, terms)

    return factor


def score_ceiling(frequencies: TermFrequencies, terms: Sequence[str]) -> float:
    """The highest score that a body can have for these terms, with unlimited repetition."""
    # Nobody spells every word as the query does: unstemmed words are not part of it.
    return (_K1 + 1) * _weight(frequencies, "body", terms)


def term_weights(
    frequencies: TermFrequencies, terms: Sequence[str], background: int
) -> dict[str, float]:
    """The weight of each term in a body, counting `background` more rows without any of them."""
    rows = frequencies.rows + background
    return {term: _idf(rows, frequencies.doc_freq("body", term)) for term in terms}


def _weight(frequencies: TermFrequencies, field: str, terms: Sequence[str]) -> float:
    """The inverse document frequency as in tantivy; for a phrase, the sum of its terms'."""
    return sum(_idf(frequencies.rows, frequencies.doc_freq(field, term)) for term in terms)


def _idf(rows: int, holding: int) -> float:
    # A commit in between may have changed `rows`, which must not be less than `holding`.
    return math.log1p((max(rows, holding) - holding + 0.5) / (holding + 0.5))
