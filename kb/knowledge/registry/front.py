"""What an entry says of its own embedding: taken out of its front matter, and put in. Pure."""

import json
import re
from typing import Final

from msgspec import Struct

from kb.intake.canonicalize.frontmatter import front_tree, yaml_block
from kb.knowledge.entries import Entry, Fault, parse

_KEY: Final = re.compile(r"""(?:embedding|"embedding"|'embedding')\s*:""")


class Embedding(Struct, frozen=True, kw_only=True):
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
    kept: list[str] = []
    is_inside = False
    for line in block.splitlines(keepends=True):
        if line.strip() and line[0] not in " \t":
            is_inside = _KEY.match(line) is not None
        if not is_inside:
            kept.append(line)
    return _with_block(text, block, "".join(kept))


def with_embedding(text: str, said: Embedding) -> str | Fault:
    """The text of an entry with this `embedding`, and nothing else of it changed.

    A fault where its own cannot be told from the rest.
    """
    bare = without_embedding(text)
    block = yaml_block(bare) or ""
    rows = (
        "embedding:",
        f"  model: {json.dumps(said.model)}",
        f"  dimensions: {said.dimensions}",
        f"  chunks: {said.chunks}",
        f'  last_computed: "{said.last_computed}"',
    )
    filled = _with_block(bare, block, block + "".join(f"{row}\n" for row in rows))
    read = front_tree(filled).get("embedding")
    wanted = {name: str(getattr(said, name)) for name in Embedding.__struct_fields__}
    if read != wanted or parse(filled) != parse(text) or not isinstance(parse(text), Entry):
        return Fault(line=1, detail="embedding cannot be filled in; write it as a block of its own")
    return filled


def _with_block(text: str, old: str, new: str) -> str:
    start = text.index("\n") + 1
    return text[:start] + new + text[start + len(old) :]
