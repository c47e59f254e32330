"""How is one long section cut into chunks that fit?"""

import unicodedata
import zlib
from bisect import bisect_left, bisect_right
from collections.abc import Sequence

from kb.intake.chunker.blocks import Block
from kb.intake.chunker.cuts import CutPoints, CutRank, find_cut_points
from kb.intake.chunker.heads import TableHeads
from kb.intake.chunker.token_counter import TokenCounter

# A cut between blocks may come after this share of the budget; other cuts only later.
_FILL_BLOCK = 0.7
_FILL_OTHER = 0.8
_HASHED_CHARS = 24
_INDENT_KEPT_MAX = 64
_NUDGE_CHARS_MAX = 32
_SPACES = " \n\t\u3000"
_CJK_COMMAS = "，、；："
_JOINERS = frozenset("\u200d\ufe0e\ufe0f")

Range = tuple[int, int]


class Splitter:
    """Cuts one section; `split` returns ranges that fit, in order, and cover all visible text.

    Among equally good cuts it takes the one with the least hash of the text after it. So two texts
    that differ in one place have the same cuts again a few chunks later.
    """

    def __init__(
        self, counter: TokenCounter, blocks: Sequence[Block], end: int, *, budget: int, overlap: int
    ) -> None:
        self.counter = counter
        self.text = counter.text
        self.start = blocks[0].start
        self.end = end
        self.budget = budget
        self.overlap = overlap
        self.heads = TableHeads(counter, blocks, budget)
        self.cuts: CutPoints = find_cut_points(
            self.text, blocks, lambda a, b: counter.fits(a, b, budget)
        )

    def split(self) -> list[Range]:
        """The ranges, each beginning at its first visible line or character."""
        ranges: list[Range] = []
        core = start = self._begin(self.start, self.start)
        while core < self.end:
            if self._fits(core, self.end):
                if not self._fits(start, self.end):
                    start = core
                ranges.append((start, self.end))
                break
            start, stop = self._next(core, start)
            ranges.append((start, stop))
            core = self._begin(stop, stop)
            start = self._overlap_start(core, start, stop)
        return ranges

    def _begin(self, at: int, floor: int) -> int:
        """The first visible character from `at` on, or the start of its line before an indent."""
        first = self.counter.visible(at, self.end)
        line = self.text.rfind("\n", max(floor, first - _INDENT_KEPT_MAX), first) + 1
        if line == 0 and (first - at > _INDENT_KEPT_MAX or (at and self.text[at - 1] != "\n")):
            return first
        return max(line, at)

    def _next(self, core: int, start: int) -> Range:
        """The next range, from `start`, or from `core` if the overlap leaves too little room."""
        stop = self._choose(core, start)
        if start < core and (stop is None or stop < self._filled(start, _FILL_BLOCK)):
            bare = self._choose(core, core)
            if bare is not None and (stop is None or bare > stop):
                return core, bare
        return (start, stop) if stop is not None else (start, self._hard(core, start))

    def _fits(self, start: int, end: int) -> bool:
        """Whether a range fits with the head of the table that it may begin in."""
        return self.counter.fits(start, end, self.heads.room(start))

    def _filled(self, start: int, share: float) -> int:
        return self.counter.reach(start, int(self.heads.room(start) * share))

    def _choose(self, core: int, start: int) -> int | None:
        """The best candidate cut after `core` for a range from `start`; None if there is none."""
        room = self.heads.room(start)
        # Cut earlier, so that the last chunk is not tiny.
        left = self.counter.tokens(start, self.end) - room
        if 0 < left < room // 4:
            shorter = self._choose_within(core, start, room * 3 // 4 + left)
            if shorter is not None:
                return shorter
        return self._choose_within(core, start, room)

    def _choose_within(self, core: int, start: int, room: int) -> int | None:
        at, rank = self.cuts.at, self.cuts.rank
        first = bisect_right(at, core)
        last = bisect_right(at, self.counter.reach(start, room))
        low = bisect_left(at, self._filled(start, _FILL_BLOCK), first, last)
        high = bisect_left(at, self._filled(start, _FILL_OTHER), low, last)
        usable = [i for i in range(low, high) if rank[i] <= CutRank.ROW]
        usable += [i for i in range(high, last) if rank[i] < CutRank.LAST_RESORT]
        if usable:
            return at[min(usable, key=lambda i: (rank[i], self._hash(at[i]), -i))]
        for index in range(last - 1, first - 1, -1):
            if rank[index] < CutRank.LAST_RESORT:
                return at[index]
        if first < last:
            follows = at[last] if last < len(at) else self.end
            if self._fits(at[last - 1], follows):
                return at[last - 1]
        return None

    def _hash(self, at: int) -> int:
        return zlib.crc32(self.text[at : at + _HASHED_CHARS].encode("utf-8", "surrogatepass"))

    def _hard(self, core: int, start: int) -> int:
        """A cut without a candidate: after a space, else after a comma, a word or a token."""
        high = self.counter.reach(start, self.heads.room(start))
        low = max(core + 1, (core + high) // 2)
        for marks in (_SPACES, _CJK_COMMAS):
            at = max(self.text.rfind(mark, low, high) for mark in marks) + 1
            if at:
                return at
        whole = self.counter.boundary(core, high)
        for at in range(whole, max(core + 1, whole - _NUDGE_CHARS_MAX), -1):
            if not self._joined(at) and not self._in_word(at):
                return at
        for at in range(whole, max(core + 1, whole - _NUDGE_CHARS_MAX), -1):
            if not self._joined(at):
                return at
        return whole

    def _in_word(self, at: int) -> bool:
        before, after = self.text[at - 1], self.text[at]
        return before.isalnum() and after.isalnum() and before < "\u2e80" and after < "\u2e80"

    def _joined(self, at: int) -> bool:
        """Whether the characters around `at` form one sign."""
        before, after = self.text[at - 1], self.text[at]
        return (
            unicodedata.combining(after) > 0
            or before == "\u200d"
            or after in _JOINERS
            or "\U0001f3fb" <= after <= "\U0001f3ff"
            or ("\ud800" <= before <= "\udbff" and "\udc00" <= after <= "\udfff")
        )

    def _overlap_start(self, core: int, start: int, stop: int) -> int:
        """Where the next chunk starts: about `overlap` tokens before `core`, or at it.

        It starts at a sentence or a row if one begins there, else at a line of prose, else at a
        word of prose. It never starts inside code, a row or an item, and always after the start of
        the last range.
        """
        if not self.overlap:
            return core
        at, rank = self.cuts.at, self.cuts.rank
        least = max(start + 1, self.counter.back(stop, self.overlap + self.overlap // 4))
        last = bisect_left(at, core)
        near = range(bisect_left(at, least), last)
        for worst in (CutRank.SENTENCE, CutRank.LINE):
            for index in near:
                if rank[index] <= worst:
                    return at[index]
        return self._word_start(core, stop, least)

    def _word_start(self, core: int, stop: int, least: int) -> int:
        prose = self.cuts.prose
        index = bisect_right(prose, (stop - 1, self.end)) - 1
        if index < 0 or prose[index][1] < stop - 1:
            return core
        least = max(least, prose[index][0], self.counter.back(stop, self.overlap))
        spaces = [at for mark in _SPACES if (at := self.text.find(mark, least, stop)) >= 0]
        return self._begin(min(spaces) + 1, least) if spaces else core
