"""Counts the model's tokens in ranges of a text, which is tokenised once."""

import re
from bisect import bisect_right
from collections.abc import Iterable
from typing import Final

# A token can be long (a word the model does not know is one): no chunk may have more characters
# than this for each token of its budget.
CHARS_PER_TOKEN_MAX: Final = 12

_VISIBLE = re.compile(r"\S")


class TokenCounter:
    """Token counts of one text; a token belongs to the range with its last character.

    So a token with a leading space, as in some tokenizers, belongs to its word.
    """

    __slots__ = ("ends", "text")

    def __init__(self, text: str, spans: Iterable[tuple[int, int]]) -> None:
        self.text = text
        self.ends = [end for start, end in spans if end > start]
        # A tokenizer may reorder its tokens. Sorting sorted input costs one pass.
        self.ends.sort()

    def tokens(self, start: int, end: int) -> int:
        """The number of tokens in text[start:end]."""
        return bisect_right(self.ends, end) - bisect_right(self.ends, start)

    def fits(self, start: int, end: int, budget: int) -> bool:
        """Whether text[start:end] stays within a budget of tokens and its share of characters."""
        return (
            end - start <= budget * CHARS_PER_TOKEN_MAX
            and bisect_right(self.ends, end) - bisect_right(self.ends, start) <= budget
        )

    def reach(self, start: int, tokens: int) -> int:
        """The largest end for which text[start:end] has at most `tokens` tokens; above `start`."""
        over = bisect_right(self.ends, start) + tokens
        far = min(start + tokens * CHARS_PER_TOKEN_MAX, len(self.text))
        if over < len(self.ends):
            far = min(far, self.ends[over] - 1)
        return max(far, start + 1)

    def back(self, end: int, tokens: int) -> int:
        """The smallest start for which text[start:end] has at most `tokens` tokens."""
        before = bisect_right(self.ends, end) - tokens - 1
        return max(self.ends[before] if before >= 0 else 0, end - tokens * CHARS_PER_TOKEN_MAX)

    def boundary(self, low: int, high: int) -> int:
        """The last end of a token in (low, high], or `high` where there is none."""
        index = bisect_right(self.ends, high) - 1
        return self.ends[index] if index >= 0 and self.ends[index] > low else high

    def visible(self, start: int, end: int) -> int:
        """The position of the first non-space character in text[start:end], or `end`."""
        match = _VISIBLE.search(self.text, start, end)
        return match.start() if match else end
