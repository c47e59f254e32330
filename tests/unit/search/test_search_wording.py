"""How many letters two words differ by."""

from functools import cache

from hypothesis import example, given
from hypothesis import strategies as st

from kb.search.wording import _edits

LETTERS = st.text("abc", max_size=7)


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
