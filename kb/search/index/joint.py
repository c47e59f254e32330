"""Scores of several indexes made comparable: a term is as rare as all of them together say. Pure.

BM25 weighs a term by its inverse document frequency (Robertson and Zaragoza, 2009), which each
index knows of itself alone. The average length of a document stays that of each index.
"""

import functools
import math
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from kb.search.index.files import CacheDamaged
from kb.search.index.lexical_query import DocFreq, Holds, Rarity

# As tantivy has it.
_K1: Final = 1.2


class Frequencies(Struct, frozen=True, kw_only=True):
    """What the weights of an index's terms come from."""

    rows: int
    """Dead ones too, as `doc_freq` counts them."""
    doc_freq: DocFreq
    """How many rows hold a term in a field."""
    holds: Holds
    """Whether a live row does."""


def together(parts: Sequence[Frequencies]) -> Frequencies:
    """The frequencies of several indexes as if they were one."""

    @functools.cache
    def doc_freq(field: str, term: str) -> int:
        return sum(part.doc_freq(field, term) for part in parts)

    def holds(field: str, term: str) -> bool:
        return any(part.holds(field, term) for part in parts)

    return Frequencies(rows=sum(part.rows for part in parts), doc_freq=doc_freq, holds=holds)


def guarded(known: Frequencies) -> Frequencies:
    """The frequencies of another home's index: none where it turns out to be damaged."""

    def doc_freq(field: str, term: str) -> int:
        try:
            return known.doc_freq(field, term)
        except CacheDamaged:
            return 0

    def holds(field: str, term: str) -> bool:
        try:
            return known.holds(field, term)
        except CacheDamaged:
            return False

    return Frequencies(rows=known.rows, doc_freq=doc_freq, holds=holds)


def rarity(own: Frequencies, joint: Frequencies) -> Rarity:
    """By what an index's weight of terms is to be multiplied to be the joint one."""

    def factor(field: str, terms: Sequence[str]) -> float:
        return _weight(joint, field, terms) / _weight(own, field, terms)

    return factor


def ceiling(known: Frequencies, words: Sequence[str]) -> float:
    """The most that a body can score for these words: each as often as there is room for it."""
    return (_K1 + 1) * _weight(known, "body", words)


def rarities(known: Frequencies, words: Sequence[str], others: int) -> dict[str, float]:
    """The weight of each word in a body, as if there were other rows that hold none of them."""
    rows = known.rows + others
    return {word: _inverse(rows, known.doc_freq("body", word)) for word in words}


def _weight(known: Frequencies, field: str, terms: Sequence[str]) -> float:
    """The inverse document frequency as tantivy has it, that of a phrase the sum of its words'."""
    return sum(_inverse(known.rows, known.doc_freq(field, term)) for term in terms)


def _inverse(rows: int, holding: int) -> float:
    # At least as many rows as hold the term, whatever has been committed in between.
    return math.log1p((max(rows, holding) - holding + 0.5) / (holding + 0.5))
