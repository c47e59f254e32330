"""Where does a text hold a query's terms? Pure.

Each hit is asked twice, for its fit and for its snippet, and of a snippet every sentence is. So the
places are found once, of those words alone that begin like a term.
"""

import functools
import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Struct

from kb.search.index.analysis import (
    camel_words,
    has_unspaced,
    spelled_words,
    terms_held,
    terms_of_word,
)

# Letters that are folded one by one, whatever stands beside them, and that make words in Python as
# they do in the analysis: Latin, Greek and Cyrillic ones, and the marks between words of prose.
_SIMPLE_RANGES: Final = (
    *((0x00, 0x7F), (0xA0, 0xAC), (0xAE, 0x2AF), (0x386, 0x3CE)),
    *((0x400, 0x482), (0x48A, 0x52F), (0x1E00, 0x1EFF)),
    *((0x2010, 0x2027), (0x2030, 0x2038), (0x20AC, 0x20AC), (0x2212, 0x2212)),
)
_ASCII_WORD: Final = "[a-z0-9]+"
_WORD: Final = r"[^\W_]+"
_START_CHARS_MAX: Final = 3
_LONG_TERM_CHARS: Final = 5
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
    others = ""
    if not text.isascii():
        letters = frozenset(text)
        if not letters <= _simple_letters():
            return TermPlaces(held=terms_held(text, terms), starts=None)
        # Mostly there are marks of prose alone, and what is between them is as in ASCII.
        others = "".join(letter for letter in letters if letter > "\x7f" and letter.isalnum())
    found = sorted(_found(text, terms, others))
    return TermPlaces(
        held=frozenset(term for _, term in found),
        starts=tuple(place for place, _ in found),
        terms=tuple(term for _, term in found),
    )


def start_of(term: str) -> str:
    """How every word begins that is this term's: a stem differs from its word at the end alone."""
    return term[: _START_CHARS_MAX if len(term) >= _LONG_TERM_CHARS else 2]


@functools.lru_cache(_TEXTS_KEPT)
def _starts_of(terms: frozenset[str]) -> frozenset[str]:
    return frozenset(map(start_of, terms))


def is_held_by_parts(terms: frozenset[str]) -> bool:
    """Whether a text holds all of these terms that a part of it holds.

    A script without spaces is cut into words by what stands around them.
    """
    return not any(map(has_unspaced, terms))


def _found(text: str, terms: frozenset[str], others: str) -> Iterator[tuple[int, str]]:
    # The only letter of these that is two in lower case; it is folded into this one.
    low = text.replace("İ", "I").lower()
    word_at = re.compile(_WORD if others else _ASCII_WORD).match
    starts = _starts_of(terms)
    if others:
        starts = starts.union(_starts_with_others(frozenset(others.lower()), starts))
    for place in _places(low, starts):
        if match := word_at(low, place):
            for term in terms.intersection(terms_of_word(match[0])):
                yield place, term
    for match in camel_words(text):
        for term in terms.intersection(terms_of_word(match[0])):
            yield match.start(), term


def _places(low: str, starts: Iterable[str]) -> Iterator[int]:
    """Where words begin like this."""
    for start in starts:
        place = low.find(start)
        while place >= 0:
            if not low[place - 1 : place].isalnum():
                yield place
            place = low.find(start, place + 1)


def _starts_with_others(letters: Iterable[str], starts: Iterable[str]) -> Iterator[str]:
    """The starts up to a letter that is another one in a text, which has these other letters."""
    others: dict[str, list[str]] = {}
    for letter in letters:
        others.setdefault(_first_letter(letter), []).append(letter)
    for start in starts:
        for count, letter in enumerate(start):
            before = start[:count]
            if not before.isascii():
                # What begins with that letter is found already.
                break
            yield from (before + other for other in others.get(letter, ()))
            yield from (before + other for other in others.get("", ()))


@functools.cache
def _first_letter(letter: str) -> str:
    """The first of the letters that one is folded into; "" where that does not tell."""
    return "".join(spelled_words(letter))[:1]


@functools.cache
def _simple_letters() -> frozenset[str]:
    return frozenset(chr(code) for low, high in _SIMPLE_RANGES for code in range(low, high + 1))
