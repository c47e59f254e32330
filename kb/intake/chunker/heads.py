"""Which columns does a row have? The head of a long table, for each chunk that begins inside it."""

import re
from bisect import bisect_right
from collections.abc import Sequence
from typing import Final

from msgspec import Struct

from kb.intake.chunker.blocks import Block
from kb.intake.chunker.lines import is_delimiter_row
from kb.intake.chunker.token_counter import TokenCounter

# Of a chunk's budget, what the head of its table takes at most.
_HEAD_SHARE: Final = 3
_ROOM_MIN: Final = 4
_BAR: Final = re.compile(r"(?<!\\)\|")
_CUT: Final = "…"


class TableHead(Struct, frozen=True):
    """A table's first row, as it goes before a chunk that begins in a later one."""

    text: str
    tokens: int


class TableHeads:
    """The heads of the tables among some blocks."""

    def __init__(self, counter: TokenCounter, blocks: Sequence[Block], budget: int) -> None:
        self._counter = counter
        self._budget = budget
        # Where each body begins, its head, and where the table ends.
        self._tables = [
            (body, block.start, block.end)
            for block in blocks
            if block.kind == "table"
            and not counter.fits(block.start, block.end, budget)
            and (body := _body(counter.text, block)) < block.end
        ]
        self._bodies = [body for body, _, _ in self._tables]

    def at(self, start: int) -> TableHead | None:
        """The head for a chunk that begins at `start`; None where that is in no table's body.

        A head that would take too much is cut after a cell; one that would leave no room for the
        first row of the chunk gives way to it.
        """
        index = bisect_right(self._bodies, start) - 1
        if index < 0 or start >= self._tables[index][2]:
            return None
        _, first, end = self._tables[index]
        # A row that reaches further does not fit anyway.
        far = min(end, self._counter.reach(start, self._budget) + 1)
        row_end = self._counter.text.find("\n", start, far)
        room = self._budget // _HEAD_SHARE
        if row_end >= 0 or far == end:
            row_tokens = self._counter.tokens(start, row_end if row_end >= 0 else end)
            room = min(room, max(self._budget - row_tokens, 0))
        return self._within(first, room)

    def room(self, start: int) -> int:
        """How many tokens a chunk from `start` on may have."""
        head = self.at(start)
        return self._budget - head.tokens if head else self._budget

    def _within(self, first: int, room: int) -> TableHead | None:
        """The row at `first`, or as many of its cells as the room allows."""
        if room < _ROOM_MIN:
            return None
        text = self._counter.text
        # The separator before it in the path counts, too, and so does the mark of a cut.
        far = self._counter.reach(first, room - 2)
        end = text.find("\n", first, far + 1)
        if end >= 0:
            return TableHead(text[first:end].strip(), self._counter.tokens(first, end) + 1)
        bars = [bar.end() for bar in _BAR.finditer(text, first + 1, far)]
        if not bars:
            return None
        cut = f"{text[first : bars[-1]].strip()} {_CUT}"
        return TableHead(cut, self._counter.tokens(first, bars[-1]) + 2)


def cell_starts(text: str, start: int, end: int) -> list[int]:
    """Where the cells of a row begin, at their bars, except the first."""
    last = start + len(text[start:end].rstrip()) - 1
    return [bar.start() for bar in _BAR.finditer(text, start + 1, max(last, start + 1))]


def _body(text: str, block: Block) -> int:
    """Where the rows begin under the head; the end of the table where it has no head."""
    first = text.find("\n", block.start, block.end)
    second = text.find("\n", first + 1, block.end)
    if first < 0 or second < 0 or not is_delimiter_row(text[first + 1 : second].strip()):
        return block.end
    return second + 1
