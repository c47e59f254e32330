"""Which sections go into one chunk? Small siblings are packed; a long one is cut."""

import zlib
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate

from msgspec import Struct

from kb.intake.chunker.blocks import Block
from kb.intake.chunker.sections import Section, common_path, sections, segments, subtree_ends
from kb.intake.chunker.split import Splitter
from kb.intake.chunker.token_counter import TokenCounter

# Packing starts again before a sibling whose title has the least hash among this many on either
# side. So a change in one section moves no border beyond the next such sibling.
_ANCHOR_REACH = 4
_ENCODING = ("utf-8", "surrogatepass")


class Piece(Struct, frozen=True):
    """A range of the markdown, and the headings above it.

    A piece that begins inside a table has the table's head as its last heading.
    """

    start: int
    end: int
    path: tuple[str, ...]


class _Unit(Struct, frozen=True, gc=False):
    """Sections [lead, last): a subtree from `first` on, and headings without body before it."""

    lead: int
    first: int
    last: int


class Packer:
    """Packs and cuts one markdown.

    A subtree that fits is one piece. If it does not fit, its children are packed in turn, and a run
    of children shorter than `small` tokens joins the next child if both fit together. All sections
    of a piece have a common parent. With `section_level` no piece leaves its range of `segments`.
    """

    def __init__(
        self,
        counter: TokenCounter,
        blocks: Sequence[Block],
        *,
        budget_of: Callable[[tuple[str, ...]], int],
        budget_min: int,
        small: int,
        overlap: int,
        section_level: int | None = None,
    ) -> None:
        self.counter = counter
        self.blocks = blocks
        self.sections: list[Section] = sections(blocks)
        self.segments = segments(self.sections, section_level)
        ends = subtree_ends(self.sections)
        self.subtree_ends = [
            min(end, last) for first, last in self.segments for end in ends[first:last]
        ]
        self.budget_of = budget_of
        self.budget_min = budget_min
        self.bodies_before = list(accumulate((s.has_body for s in self.sections), initial=0))
        self.small = small
        self.overlap = overlap

    def pieces(self) -> Iterator[Piece]:
        """The pieces, in order."""
        for first, last in self.segments:
            if whole := self._fitting(first, last):
                yield whole
            else:
                yield from self._packed(self._children(first, first, last))

    def _tokens(self, first: int, last: int) -> int:
        return self.counter.tokens(self.sections[first].start, self.sections[last - 1].end)

    def _fit(self, first: int, last: int) -> bool:
        start, end = self.sections[first].start, self.sections[last - 1].end
        # A piece that fits under the longest path fits under its own, too.
        return (
            self.counter.fits(start, end, self.budget_min) or self._fitting(first, last) is not None
        )

    def _fitting(self, first: int, last: int) -> Piece | None:
        """Sections [first, last) as one piece, if they fit."""
        start, end = self.sections[first].start, self.sections[last - 1].end
        # This check costs less than finding the path.
        if not self.counter.fits(start, end, self.budget_of(())):
            return None
        path = common_path(self.sections[first:last])
        if path and not self.counter.fits(start, end, self.budget_of(path)):
            return None
        return Piece(start, end, path)

    def _children(self, lead: int, at: int, last: int) -> list[_Unit]:
        """Subtrees [at, last), the first with the bodiless headings [lead, at) before it."""
        units: list[_Unit] = []
        while at < last:
            units.append(_Unit(lead, at, self.subtree_ends[at]))
            lead = at = self.subtree_ends[at]
        return units

    def _unpacked(self, unit: _Unit) -> Iterator[Piece]:
        """The pieces of a subtree that does not fit."""
        own = unit.first + 1
        if own == unit.last:
            yield from self._cut(unit)
        elif self.sections[unit.first].has_body:
            own_unit = _Unit(unit.lead, unit.first, own)
            yield from self._packed([own_unit, *self._children(own, own, unit.last)])
        else:
            yield from self._packed(self._children(unit.lead, own, unit.last))

    def _cut(self, unit: _Unit) -> Iterator[Piece]:
        section = self.sections[unit.first]
        splitter = Splitter(
            self.counter,
            self.blocks[self.sections[unit.lead].first : section.last],
            section.end,
            budget=self.budget_of(section.path),
            overlap=self.overlap,
        )
        for start, end in splitter.split():
            head = splitter.heads.at(start)
            yield Piece(start, end, (*section.path, head.text) if head else section.path)

    def _packed(self, units: Sequence[_Unit]) -> Iterator[Piece]:
        for unit in self._grouped(units):
            if piece := self._fitting(unit.lead, unit.last):
                yield piece
            else:
                yield from self._unpacked(unit)

    def _grouped(self, units: Sequence[_Unit]) -> list[_Unit]:
        """Siblings, with small ones joined; a sibling that does not fit stays alone."""
        anchors = self._anchors(units)
        groups: list[_Unit] = []
        # Groups before this index end at an anchor, and stay as they are.
        floor = 0
        for index, unit in enumerate(units):
            here = unit
            if groups and self._is_small(groups[-1]):
                leads = self._only_leads(groups[-1])
                joined = _Unit(groups[-1].lead, unit.first, unit.last)
                fits = self._fit(joined.lead, joined.last)
                if fits and (leads or index not in anchors):
                    groups[-1] = joined
                    continue
                if leads and not self._fit(unit.lead, unit.last):
                    groups.pop()
                    here = joined
                else:
                    self._join_back(groups, floor)
            if index in anchors:
                floor = len(groups)
            groups.append(here)
        if groups and self._is_small(groups[-1]):
            self._join_back(groups, floor)
        return groups

    def _join_back(self, groups: list[_Unit], floor: int) -> None:
        if len(groups) - 2 >= floor:
            before, small = groups[-2:]
            if self._fit(before.lead, small.last):
                groups[-2:] = [_Unit(before.lead, before.first, small.last)]

    def _is_small(self, unit: _Unit) -> bool:
        return self._tokens(unit.lead, unit.last) < self.small

    def _only_leads(self, unit: _Unit) -> bool:
        return self.bodies_before[unit.lead] == self.bodies_before[unit.last]

    def _anchors(self, units: Sequence[_Unit]) -> frozenset[int]:
        if len(units) <= 2 * _ANCHOR_REACH:
            return frozenset()
        hashes = [
            zlib.crc32(self.blocks[self.sections[unit.first].first].title.encode(*_ENCODING))
            for unit in units
        ]
        anchors = set()
        for index in range(_ANCHOR_REACH, len(units) - _ANCHOR_REACH):
            mine = hashes[index]
            near = hashes[index - _ANCHOR_REACH : index + _ANCHOR_REACH + 1]
            if mine == min(near) and near.count(mine) == 1:
                anchors.add(index)
        return frozenset(anchors)
