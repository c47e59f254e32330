"""Where does a text hold a query's terms? Pure.

Each hit is asked twice, for its fit and for its snippet, and of a snippet every sentence is. So the
places are found once, of those words alone that begin like a term.
"""

import functools
import re
from bisect import bisect_left
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from kb.search.index.analysis import (
    START_CHARS,
    camel_words,
    has_unspaced,
    terms_held,
    terms_of_word,
)

# Letters that are folded one by one, whatever stands beside them, and that make words in Python as
# they do in the analysis: Latin, Greek and Cyrillic ones, and the marks between words of prose.
_SIMPLE_RANGES: Final = (
    *((0x00, 0x7F), (0xA0, 0xAC), (0xAE, 0x2AF), (0x391, 0x3CE), (0x400, 0x482), (0x48A, 0x52F)),
    *((0x2010, 0x2027), (0x2030, 0x2038), (0x20AC, 0x20AC)),
)
_ASCII_WORD: Final = "[a-z0-9]+"
_WORD: Final = r"[^\W_]+"
_TEXTS_KEPT: Final = 64


class TermPlaces(Struct, frozen=True, kw_only=True):
    """The terms that a text holds, and where."""

    held: frozenset[str]
    starts: tuple[int, ...] | None
    """Where the words begin that are a term's, ascending; None where only the whole text tells, for
    its letters are not those of an alphabet, or may be written as two."""
    terms: tuple[str, ...] = ()
    """The term at each place."""

    def between(self, start: int, end: int) -> frozenset[str]:
        """The terms whose words begin between two places, which are no places inside words."""
        starts = self.starts or ()
        first = bisect_left(starts, start)
        return frozenset(self.terms[first : bisect_left(starts, end, first)])

    def first(self, start: int, end: int) -> int | None:
        """The first place between two others; None where there is none."""
        starts = self.starts or ()
        first = bisect_left(starts, start)
        return starts[first] if first < len(starts) and starts[first] < end else None


# Fit and snippet of a hit ask for the same text, one after the other.
@functools.lru_cache(_TEXTS_KEPT)
def term_places(text: str, terms: frozenset[str]) -> TermPlaces:
    """The places of a query's terms in a text."""
    if not text.isascii() and not _simple_letters().issuperset(text):
        return TermPlaces(held=terms_held(text, terms), starts=None)
    found = sorted(_found(text, terms))
    return TermPlaces(
        held=frozenset(term for _, term in found),
        starts=tuple(place for place, _ in found),
        terms=tuple(term for _, term in found),
    )


def is_held_by_parts(terms: frozenset[str]) -> bool:
    """Whether a text holds all of these terms that a part of it holds.

    A script without spaces is cut into words by what stands around them.
    """
    return not any(map(has_unspaced, terms))


def _found(text: str, terms: frozenset[str]) -> Iterator[tuple[int, str]]:
    starts = {term[:START_CHARS] for term in terms}
    if text.isascii():
        text_of_words = text.lower()
        words = set(re.findall(_ASCII_WORD, text_of_words))
    else:
        text_of_words = text
        words = set(re.findall(_WORD, text))
    for word in words:
        start = word[:START_CHARS]
        # No other letter may become one of ASCII.
        if start.isascii() and start.lower() not in starts:
            continue
        wanted = terms.intersection(terms_of_word(word))
        if wanted:
            for place in _places_of(text_of_words, word):
                yield from ((place, term) for term in wanted)
    for place, word in camel_words(text):
        for term in terms.intersection(terms_of_word(word)):
            yield place, term


def _places_of(text: str, word: str) -> Iterator[int]:
    """Where a word begins that is not part of a longer one."""
    place = text.find(word)
    while place >= 0:
        end = place + len(word)
        if not text[place - 1 : place].isalnum() and not text[end : end + 1].isalnum():
            yield place
        place = text.find(word, end)


@functools.cache
def _simple_letters() -> frozenset[str]:
    return frozenset(chr(code) for low, high in _SIMPLE_RANGES for code in range(low, high + 1))
