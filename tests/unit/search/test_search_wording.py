"""How many letters two words differ by, and which words of a text may differ by so few."""

import re
from collections import Counter
from functools import cache

from hypothesis import example, given
from hypothesis import strategies as st

from kb.search.index.analysis import spelled_words
from kb.search.wording import _edits, words_of

LETTERS = st.text("abc", max_size=7)
TEXTS = st.lists(st.text("abcABC1_-’é ", max_size=9), max_size=9).map(" ".join)


def edits(word: str, other: str) -> int:
    """Optimal string alignment, as it is defined."""

    @cache
    def of(i: int, j: int) -> int:
        if not i or not j:
            return i + j
        least = min(
            of(i - 1, j) + 1, of(i, j - 1) + 1, of(i - 1, j - 1) + (word[i - 1] != other[j - 1])
        )
        if i > 1 and j > 1 and word[i - 2 : i] == other[j - 1] + other[j - 2]:
            least = min(least, of(i - 2, j - 2) + 1)
        return least

    return of(len(word), len(other))


@given(LETTERS, LETTERS, st.integers(1, 2))
@example("abcabc", "bacacb", 2)
def test_edits_are_counted_as_far_as_they_matter(word: str, other: str, most: int) -> None:
    """More than `most` of them are only known to be more."""
    assert min(_edits(word, other, most), most + 1) == min(edits(word, other), most + 1)


def near(words: list[str], word: str, distance: int) -> Counter[str]:
    """Those of the words that are so near, or that one begins, and how often."""
    if not distance:
        return Counter(other for other in words if other.startswith(word))
    return Counter(other for other in words if edits(word, other) <= distance)


@given(TEXTS, st.text("abc", min_size=4, max_size=9), st.integers(0, 2))
@example("abca Abac’abcd abc_abcd abcd1 1abcd ABcd aBcd abcdAbcd, abcd", "abcd", 1)
@example("abcdAbcdAbcd aBCdabcd", "abcd", 0)
@example(f"{'a' * 59} {'a' * 60} {'a' * 61}", "a" * 60, 1)
@example("acbbca bcabca abcabc", "abcabc", 1)
def test_no_near_word_is_left_out(text: str, word: str, distance: int) -> None:
    """As among all words of the text that have nearly as many letters."""
    low, high = len(word) - distance, len(word) + (distance or 24)
    pattern = rf"(?<![^\W_])[^\W\d_]{{{low},{high}}}(?![^\W_])"
    words = spelled_words(" ".join(re.findall(pattern, text)))
    assert near(words_of(text, word, distance), word, distance) == near(words, word, distance)
