"""Which words of a query does no chunk have, and which of theirs were meant?"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain
from typing import Final

from msgspec import Struct

from kb.search.index.analysis import (
    WORD_BYTES_MAX,
    camel_words,
    is_stop_word,
    query_words,
    spelled_words,
)
from kb.search.index.lexical_query import SPELLED, Holding, near_holders

_LETTERS_MIN: Final = 4
"""Shorter words are within one letter of too many others."""
_START_LETTERS_MIN: Final = 3
_LONG: Final = 8
"""From so many letters on two may be wrong."""
_WORDS_MAX: Final = 8
_ENDING_LETTERS_MAX: Final = 24
"""So much of a word may be untyped."""
_FIELDS: Final = ("body", "name", "folders")
_WORD: Final = r"[^\W\d_]+"

HasWord = Callable[[str, str], bool]
"""Whether any chunk has a term in a field."""
TextsWith = Callable[[Holding], Sequence[str]]
"""The texts of some of the chunks that hold something."""
WordsNear = Callable[[str, int], Iterable[str]]
"""Words of those chunks that have one which is so many edits from a word."""
Knows = Callable[[str], bool]
"""Whether a model knows what a word means."""
HasHan = Callable[[], bool]
"""Whether many chunks have Han."""


class Respelled(Struct, frozen=True, kw_only=True):
    """A word of a query that no chunk has, and one of theirs that is near."""

    typed: str
    meant: str
    is_word: bool = False
    """Whether the typed one is a word, too, and is searched for beside the other."""


def respelled(
    text: str,
    has_word: HasWord,
    texts_with: TextsWith,
    knows: Knows,
    has_han: HasHan = lambda: False,
) -> tuple[Respelled, ...]:
    """The words of a query that no chunk has, each with the nearest that one has.

    Words of four letters or more may have a wrong letter, those of eight two. The last word may be
    the beginning of one. A word that a model knows is meant as it is typed, since meaning finds
    what says it otherwise; only by itself it may be a beginning. Words with digits, those of
    scripts without spaces, and stop words stay. `has_han` is asked for an unknown word alone.
    """
    found: list[Respelled] = []
    typed = list(dict.fromkeys(re.findall(_WORD, text)))
    # Mostly every word is there, which one analysis of all tells.
    last = query_words(text, stems=False)[-_WORDS_MAX:]
    there = {word for word in last if has_word(SPELLED, word)}
    if all((word.isascii() and word.lower() in there) or is_stop_word(word) for word in typed):
        return ()
    typed = [word for word in typed if not is_stop_word(word)]
    for word in typed[-_WORDS_MAX:]:
        spelled = spelled_words(word)
        if len(spelled) != 1 or not spelled[0].isascii() or not query_words(word):
            continue
        stem = query_words(word)[0]
        if has_word(SPELLED, spelled[0]) or any(has_word(field, stem) for field in _FIELDS):
            continue
        is_word = knows(spelled[0])
        may_go_on = text.rstrip().endswith(word) and (len(typed) == 1 or not is_word)

        def words_near(word: str, distance: int) -> Iterator[str]:
            texts = texts_with(near_holders(word, distance, has_han=has_han()))
            return chain.from_iterable(words_of(text, word, distance) for text in texts)

        meant = _continued(spelled[0], words_near) if may_go_on else None
        if meant is None and not is_word:
            meant = _nearby(spelled[0], words_near)
        if meant is not None:
            found.append(Respelled(typed=word, meant=meant, is_word=is_word))
    return tuple(found)


def _continued(word: str, words_near: WordsNear) -> str | None:
    """The word of a chunk that this one begins: the commonest, and of these the shortest."""
    if len(word) < _START_LETTERS_MIN:
        return None
    starts = Counter(w for w in words_near(word, 0) if w.startswith(word))
    return min(starts, key=lambda w: (-starts[w], len(w), w), default=None)


def _nearby(word: str, words_near: WordsNear) -> str | None:
    """The word of a chunk with the fewest letters other than this one's."""
    if len(word) < _LETTERS_MIN:
        return None
    for distance in (1, 2) if len(word) >= _LONG else (1,):
        near = _nearest(word, words_near(word, distance), distance)
        if near is not None:
            return near
    return None


def _nearest(word: str, words: Iterable[str], edits_max: int) -> str | None:
    """The word with the fewest edits, of several the commonest, then the first by letters."""
    kinds, letters = frozenset(word), Counter(word).items()
    ranked = (
        (_edits(word, other, edits_max), -count, other)
        for other, count in Counter(words).items()
        # An edit brings at most one letter, and takes one away.
        if len(kinds.symmetric_difference(other)) <= 2 * edits_max
        and sum(min(n, other.count(letter)) for letter, n in letters) + edits_max
        >= max(len(word), len(other))
    )
    best = min(ranked, default=None)
    return best[2] if best and best[0] <= edits_max else None


def _edits(word: str, other: str, most: int) -> int:
    """How many letters are added, left out, replaced, or swapped with the next one.

    Optimal string alignment; each stretch is edited once. More than `most` are not counted on, so
    that only places this near to one another are compared (Ukkonen, 1985).
    """
    beyond = most + 1
    before: list[int] = []
    row = list(range(len(other) + 1))
    least_above = 0
    for at, letter in enumerate(word, 1):
        above, row = row, [at, *[beyond] * len(other)]
        least = at
        for place in range(max(1, at - most), min(len(other), at + most) + 1):
            wanted = other[place - 1]
            if letter == wanted:
                cost = above[place - 1]
            else:
                cost = 1 + min(above[place - 1], above[place], row[place - 1])
                is_swap = at > 1 and place > 1 and word[at - 2] == wanted
                if is_swap and letter == other[place - 2]:
                    cost = min(cost, before[place - 2] + 1)
            row[place] = cost
            least = min(least, cost)
        if least > most and least_above > most:
            return beyond
        before, least_above = above, least
    return min(row[-1], beyond)


def words_of(text: str, word: str, distance: int) -> list[str]:
    """The words of a text, as they are spelled, that may be so many edits from a word.

    For 0 those that it may begin. Others may be among them.
    """
    letters = len(word) - distance
    longest = min(letters + (2 * distance or _ENDING_LETTERS_MAX), WORD_BYTES_MAX - 1)
    if distance > 1 or any(letter.isalnum() for letter in _not_ascii(text)):
        # The letters of `rev12` are no word.
        found = re.findall(rf"(?<![^\W_])[^\W\d_]{{{letters},{longest}}}(?![^\W_])", text)
        return spelled_words(" ".join(found))
    low = text.lower()
    places = _like(low, word, distance)
    split = {match.span() for match in camel_words(text)}

    def fit(places: set[tuple[int, int]]) -> Iterator[tuple[int, int]]:
        return ((a, b) for a, b in places if letters <= b - a <= longest and low[a:b].isalpha())

    words = [low[a:b] for a, b in fit(places - split)]
    return words + spelled_words(" ".join(text[a:b] for a, b in fit(split))) if split else words


def _not_ascii(text: str) -> set[str]:
    return set() if text.isascii() else {letter for letter in set(text) if letter > "\x7f"}


def _like(low: str, word: str, distance: int) -> set[tuple[int, int]]:
    """Where words of a text begin or end like a word, unless more than one edit is between.

    An edit changes two letters next to each other at most, so that those before or those behind are
    at least half of the others.
    """
    kept = -(-(len(word) - 2) // 2) if distance else len(word)
    places: set[tuple[int, int]] = set()
    head, tail = word[:kept], word[-kept:]
    place = low.find(head)
    while place >= 0:
        if not low[place - 1 : place].isalnum():
            places.add((place, _end_of(low, place + kept)))
        place = low.find(head, place + 1)
    place = low.find(tail) if distance else -1
    while place >= 0:
        if not low[place + kept : place + kept + 1].isalnum():
            places.add((_start_of(low, place), place + kept))
        place = low.find(tail, place + 1)
    return places


def _start_of(text: str, place: int) -> int:
    while place and text[place - 1].isalnum():
        place -= 1
    return place


def _end_of(text: str, place: int) -> int:
    while text[place : place + 1].isalnum():
        place += 1
    return place
