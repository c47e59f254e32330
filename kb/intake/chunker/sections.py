"""Which sections does a markdown have, and what stands above each?"""

from collections.abc import Sequence

from msgspec import Struct

from kb.intake.chunker.blocks import Block


class Section(Struct, frozen=True, kw_only=True, gc=False):
    """A heading and the blocks under it up to the next heading; the preamble has level 0."""

    start: int
    end: int
    level: int
    path: tuple[str, ...]
    first: int
    """Index of its first block, the heading where it has one."""
    last: int
    """One past the index of its last block."""
    has_body: bool


def sections(blocks: Sequence[Block]) -> list[Section]:
    """Every block in exactly one section, in order."""
    if not blocks:
        return []
    heads = [index for index, block in enumerate(blocks) if block.kind == "heading"]
    firsts = heads if heads[:1] == [0] else [0, *heads]
    result: list[Section] = []
    above: list[tuple[int, tuple[str, ...]]] = []
    for first, last in zip(firsts, [*firsts[1:], len(blocks)], strict=True):
        head = blocks[first]
        path: tuple[str, ...] = ()
        if head.level:
            while above and above[-1][0] >= head.level:
                above.pop()
            path = above[-1][1] if above else ()
            path = (*path, head.title) if head.title else path
            above.append((head.level, path))
        result.append(
            Section(
                start=head.start,
                end=blocks[last - 1].end,
                level=head.level,
                path=path,
                first=first,
                last=last,
                has_body=last - first > 1 or not head.level,
            )
        )
    return result


def subtree_ends(sections: Sequence[Section]) -> list[int]:
    """For each section, one past the index of its last descendant."""
    ends = [len(sections)] * len(sections)
    open_: list[int] = []
    for index, section in enumerate(sections):
        while open_ and sections[open_[-1]].level >= section.level:
            ends[open_.pop()] = index
        # What precedes the first heading is nobody's parent.
        if section.level:
            open_.append(index)
        else:
            ends[index] = index + 1
    return ends


def segments(sections: Sequence[Section], level: int | None) -> list[tuple[int, int]]:
    """Ranges of sections that no chunk leaves: one begins at each heading up to a level.

    Headings without a body that stand right above such a heading lead its range. Without a level
    all is one range.
    """
    if level is None or not sections:
        return [(0, len(sections))] if sections else []
    borders: list[int] = []
    for index, section in enumerate(sections):
        if not 0 < section.level <= level and index:
            continue
        before = sections[borders[-1] : index] if borders else []
        leads = all(not section_before.has_body for section_before in before) and bool(before)
        if not leads or before[-1].level >= section.level:
            borders.append(index)
    return list(zip(borders, [*borders[1:], len(sections)], strict=True))


def common_path(sections: Sequence[Section]) -> tuple[str, ...]:
    """The headings that all of these stand under.

    A heading without a body only leads to what follows, so it narrows nothing unless alone.
    """
    paths = [section.path for section in sections if section.has_body]
    paths = paths or [section.path for section in sections]
    shared = paths[0]
    for path in paths[1:]:
        same = 0
        for mine, theirs in zip(shared, path, strict=False):
            if mine != theirs:
                break
            same += 1
        shared = shared[:same]
    return shared
