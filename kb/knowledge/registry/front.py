"""The `embedding` block in an entry's front matter: remove it, or fill it in. Pure."""

import json
import re
from typing import Final

from msgspec import Struct

from kb.intake.canonicalize.frontmatter import front_tree, yaml_block
from kb.knowledge.entries import Entry, EntryFault, parse

_KEY: Final = re.compile(r"""(?:embedding|"embedding"|'embedding')\s*:""")


class EmbeddingBlock(Struct, frozen=True, kw_only=True):
    """The `embedding` of an entry."""

    model: str
    dimensions: int
    chunks: int
    last_computed: str
    """ISO 8601."""


def without_embedding(text: str) -> str:
    """The text of an entry but for its `embedding`."""
    block = yaml_block(text)
    if block is None:
        return text
    lines: list[str] = []
    is_inside = False
    for line in block.splitlines(keepends=True):
        if line.strip() and line[0] not in " \t":
            is_inside = _KEY.match(line) is not None
        if not is_inside:
            lines.append(line)
    return _with_block(text, block, "".join(lines))


def with_embedding(text: str, embedding: EmbeddingBlock) -> str | EntryFault:
    """The text of an entry with this `embedding`, and nothing else of it changed.

    A fault where its own cannot be told from the rest.
    """
    bare = without_embedding(text)
    block = yaml_block(bare) or ""
    rows = (
        "embedding:",
        f"  model: {json.dumps(embedding.model)}",
        f"  dimensions: {embedding.dimensions}",
        f"  chunks: {embedding.chunks}",
        f'  last_computed: "{embedding.last_computed}"',
    )
    filled = _with_block(bare, block, block + "".join(f"{row}\n" for row in rows))
    parsed = front_tree(filled).get("embedding")
    expected = {name: str(getattr(embedding, name)) for name in EmbeddingBlock.__struct_fields__}
    if parsed != expected or parse(filled) != parse(text) or not isinstance(parse(text), Entry):
        return EntryFault(
            line=1, detail="embedding cannot be filled in; write it as a block of its own"
        )
    return filled


def _with_block(text: str, old: str, new: str) -> str:
    start = text.index("\n") + 1
    return text[:start] + new + text[start + len(old) :]
