"""How long is it? A markdown measured in the model's tokens, from one tokenisation."""

import re
from bisect import bisect_right
from collections.abc import Iterable
from typing import Final

# A token can be long (a word the model does not know is one): no passage may have more characters
# than this for each token of its budget.
CHARS_PER_TOKEN_MAX: Final = 12

_VISIBLE = re.compile(r"\S")


class TokenCounter:
    """Lengths and reaches in one text; a token belongs to the range that holds its last character.

    That makes a token with its leading space, as some tokenizers have it, belong to the word.
    """

    __slots__ = ("ends", "text")

    def __init__(self, text: str, spans: Iterable[tuple[int, int]]) -> None:
        self.text = text
        self.ends = [end for start, end in spans if end > start]
        # A tokenizer that reorders is no reason to lose count. Sorted input costs one pass.
        self.ends.sort()

    def tokens(self, start: int, end: int) -> int:
        """How many tokens text[start:end] has."""
        return bisect_right(self.ends, end) - bisect_right(self.ends, start)

    def fits(self, start: int, end: int, budget: int) -> bool:
        """Whether text[start:end] stays within a budget of tokens and its share of characters."""
        return (
            end - start <= budget * CHARS_PER_TOKEN_MAX
            and bisect_right(self.ends, end) - bisect_right(self.ends, start) <= budget
        )

    def reach(self, start: int, tokens: int) -> int:
        """The furthest end for which text[start:end] fits in so many tokens; above `start`."""
        over = bisect_right(self.ends, start) + tokens
        far = min(start + tokens * CHARS_PER_TOKEN_MAX, len(self.text))
        if over < len(self.ends):
            far = min(far, self.ends[over] - 1)
        return max(far, start + 1)

    def back(self, end: int, tokens: int) -> int:
        """The least start for which text[start:end] has at most so many tokens."""
        before = bisect_right(self.ends, end) - tokens - 1
        return max(self.ends[before] if before >= 0 else 0, end - tokens * CHARS_PER_TOKEN_MAX)

    def boundary(self, low: int, high: int) -> int:
        """The last end of a token in (low, high], or `high` where there is none."""
        index = bisect_right(self.ends, high) - 1
        return self.ends[index] if index >= 0 and self.ends[index] > low else high

    def visible(self, start: int, end: int) -> int:
        """The first character that is not white space in text[start:end], or `end`."""
        found = _VISIBLE.search(self.text, start, end)
        return found.start() if found else end
