"""Merge two near-duplicate notes: the parts that only the other has go below. Pure."""

from collections.abc import Iterator

from kb.intake.canonicalize.frontmatter import split_front_matter
from kb.intake.canonicalize.title import one_line
from kb.intake.chunker.blocks import Block, parse_blocks

_LEVEL_MIN = 3


def body_of(text: str) -> str:
    """A note without what it says of itself above its text."""
    return split_front_matter(text)[1]


def parts_only_in(other: str, keep_text: str) -> tuple[str, ...]:
    """The blocks and list items of `other` that `kept` lacks, in order, as they are written.

    White space makes no difference. A heading comes along where one of its own parts does.
    """
    kept_keys = {_key(part) for _, part in _parts(keep_text)}
    parts: list[str] = []
    heading: str | None = None
    for block, part in _parts(other):
        is_known = _key(part) in kept_keys
        if block.kind == "heading":
            is_title = block.level == 1
            level = "#" * max(_LEVEL_MIN, block.level)
            heading = None if is_known or is_title else f"{level} {block.title}"
        elif not is_known:
            parts += [heading, part] if heading else [part]
            heading = None
    return tuple(parts)


def merged(keep_text: str, title: str, parts: tuple[str, ...]) -> str:
    """`kept` with these parts below a heading that names the note they come from."""
    if not parts:
        return keep_text
    end = "\r\n" if keep_text.partition("\n")[0].endswith("\r") else "\n"
    section = f"\n\n## From {one_line(title)}\n\n" + "\n\n".join(parts) + "\n"
    return keep_text.rstrip() + section.replace("\r\n", "\n").replace("\n", end)


def _parts(text: str) -> Iterator[tuple[Block, str]]:
    body = body_of(text)
    for block in parse_blocks(body):
        starts = [block.start]
        if block.kind == "list" and not block.fences:
            outermost = min(item.indent for item in block.items)
            starts += [item.start for item in block.items if item.indent == outermost][1:]
        for start, end in zip(starts, [*starts[1:], block.end], strict=True):
            part = body[start:end].strip("\r\n").rstrip()
            if part.strip():
                yield block, part


def _key(part: str) -> str:
    # Marks count: a minus or a ticked box may be all that differs.
    return " ".join(part.split())
