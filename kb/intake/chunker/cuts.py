"""Where may a long section be cut? Finds candidate cuts, and ranks how good each one is."""

import re
from bisect import bisect_left
from collections.abc import Callable, Iterator, Sequence
from enum import IntEnum
from typing import Final

from msgspec import Struct

from kb.intake.chunker.blocks import Block, ListItem
from kb.intake.chunker.heads import cell_starts
from kb.intake.chunker.lines import PAGE_MARK

Fits = Callable[[int, int], bool]


class CutRank(IntEnum):
    """How good a cut is: lower is better."""

    BLOCK = 0
    ROW = 1
    """Before an outermost list item or a table row."""
    SENTENCE = 2
    """Between sentences, or before a nested item."""
    LINE = 3
    """At a line of prose, or between two blocks that belong together."""
    INNER = 4
    """At a line of code, or inside an item or between cells of a row that does not fit."""
    LAST_RESORT = 9
    """After a heading or a table's head: only to keep the rest whole."""


class CutPoints(Struct, frozen=True, kw_only=True):
    """Candidate cuts of one section, in order; a cut at p begins the next chunk at p."""

    at: list[int]
    rank: list[CutRank]
    prose: list[tuple[int, int]]
    """Ranges of prose, in which an overlap may begin at any word."""


_SENTENCE_END: Final = re.compile(r"[.!?…][)\]\"'’”»*_]{0,3}(?=\s)|[。！？；][」』”’）》\"]{0,3}")
_WORD_BEFORE = re.compile(r"(\w{1,8})$")
_ABBREVIATED = """
al approx cf co dr dept ed eds eq etc fig figs inc jr ltd mr mrs ms nos pp prof sr vol vs
"""
_ABBREVIATIONS = frozenset(_ABBREVIATED.split())
_TERMINAL = frozenset('.!?…。！？；)"”’」』）')


def _sentences(text: str, start: int, end: int) -> Iterator[int]:
    """Starts of the sentences in text[start:end], except the first."""
    for match in _SENTENCE_END.finditer(text, start, end):
        if text[match.start()] == ".":
            before = _WORD_BEFORE.search(text, max(start, match.start() - 9), match.start())
            word = before.group(1) if before else ""
            # A single letter is an initial or the tail of "e.g."
            if (len(word) == 1 and word.isalpha()) or word.lower() in _ABBREVIATIONS:
                continue
        at = match.end()
        while at < end and text[at].isspace():
            at += 1
        if at < end:
            yield at


def _line_starts(text: str, start: int, end: int) -> Iterator[int]:
    """Starts of the lines in text[start:end], except the first and blank lines."""
    at = text.find("\n", start, end) + 1
    while at:
        stop = text.find("\n", at, end)
        if text[at : stop if stop >= 0 else end].strip():
            yield at
        at = stop + 1


class _CutFinder:
    def __init__(self, text: str, fits: Fits) -> None:
        self.text = text
        self.fits = fits
        self.ranks: dict[int, CutRank] = {}
        self.prose: list[tuple[int, int]] = []

    def add(self, at: int, rank: CutRank) -> None:
        self.ranks.setdefault(at, rank)

    def block(self, block: Block) -> None:
        """Cuts inside one block."""
        match block.kind:
            case "para":
                self.prose.append((block.start, block.end))
                self._prose(block.start, block.end, CutRank.SENTENCE, CutRank.LINE)
            case "list":
                self._list(block)
            case "table":
                self._table(block.start, block.end)
            case "fence" | "code" | "html" | "quote" if not self.fits(block.start, block.end):
                self._lines(block.start, block.end)
            case _:
                pass

    def _prose(self, start: int, end: int, sentence: CutRank, line: CutRank) -> None:
        for at in _sentences(self.text, start, end):
            self.add(at, sentence)
        for at in _line_starts(self.text, start, end):
            self.add(at, line)

    def _lines(self, start: int, end: int) -> None:
        for at in _line_starts(self.text, start, end):
            self.add(at, CutRank.INNER)

    def _table(self, start: int, end: int) -> None:
        if self.fits(start, end):
            return
        rows = [start, *_line_starts(self.text, start, end)]
        for number, (at, row_end) in enumerate(zip(rows, [*rows[1:], end], strict=True)):
            if number:
                # A table's head names its columns, so it stays with the first row.
                self.add(at, CutRank.ROW if number >= 3 else CutRank.LAST_RESORT)
            if not self.fits(at, row_end):
                for cell in cell_starts(self.text, at, row_end):
                    self.add(cell, CutRank.INNER)

    def _list(self, block: Block) -> None:
        ends = _item_ends(block.items, block.end)
        whole: list[bool] = []
        open_: list[int] = []
        for index, item in enumerate(block.items):
            while open_ and ends[open_[-1]] <= item.start:
                open_.pop()
            is_inside_whole = bool(open_) and whole[open_[-1]]
            whole.append(is_inside_whole or self.fits(item.start, ends[index]))
            if not is_inside_whole:
                self.add(item.start, CutRank.SENTENCE if open_ else CutRank.ROW)
            if not whole[index]:
                follows = block.items[index + 1 : index + 2]
                self._item(block, item.start, follows[0].start if follows else block.end)
            open_.append(index)

    def _item(self, block: Block, start: int, end: int) -> None:
        """Add cuts in the text of an item that does not fit; fences in it stay whole."""
        if self.fits(start, end):
            return
        at = start
        low = bisect_left(block.fences, (start, start))
        for first, last in block.fences[low : bisect_left(block.fences, (end, end))]:
            self._prose(at, first, CutRank.INNER, CutRank.INNER)
            self.add(first, CutRank.INNER)
            if not self.fits(first, last):
                self._lines(first, last)
            at = last
        self._prose(at, end, CutRank.INNER, CutRank.INNER)


def _item_ends(items: Sequence[ListItem], end: int) -> list[int]:
    """Where each item ends: at the next one that is not indented deeper."""
    ends = [end] * len(items)
    open_: list[int] = []
    for index, item in enumerate(items):
        while open_ and items[open_[-1]].indent >= item.indent:
            ends[open_.pop()] = item.start
        open_.append(index)
    return ends


def _between(text: str, before: Block, after: Block) -> CutRank | None:
    """The rank of the cut between two neighbouring blocks; None if there may be no cut."""
    if before.kind == "heading":
        return None if after.kind == "para" else CutRank.LAST_RESORT
    if before.kind == "para":
        last = text[before.end - 1]
        if after.kind == "para":
            # The sentence may go on after a page mark.
            over = PAGE_MARK in text[before.end : after.start] and last not in _TERMINAL
            return CutRank.LINE if over else CutRank.BLOCK
        if last in ":：":
            return CutRank.LINE
    return CutRank.BLOCK


def find_cut_points(text: str, blocks: Sequence[Block], fits: Fits) -> CutPoints:
    """The candidate cuts of the section with these blocks; `fits` tells what stays whole."""
    finder = _CutFinder(text, fits)
    before: Block | None = None
    for block in blocks:
        if before and (rank := _between(text, before, block)) is not None:
            finder.add(block.start, rank)
        finder.block(block)
        before = block
    ordered = sorted(finder.ranks.items())
    return CutPoints(
        at=[at for at, _ in ordered], rank=[rank for _, rank in ordered], prose=finder.prose
    )
