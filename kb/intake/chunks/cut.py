"""Builds the chunks of a doc: ids, lines, mentions and text hashes. Pure."""

from collections import Counter
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from kb.intake.entities import extract
from kb.model.doc import Doc
from kb.model.ids import ChunkId, chunk_id, sha256_hex
from kb.model.text import Chunk, ChunkDraft, Mention, indexed_text

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_TEXT_HASH_HEX: Final = 32


class ChunkedDoc(Struct, frozen=True, kw_only=True):
    """The chunks of a doc as they will be stored; the transaction gives them their numbers."""

    doc: Doc
    chunks: list[ChunkDraft]
    mentions: list[list[Mention]]
    lines: list[int]
    text_hashes: list[str]
    ids: list[ChunkId]


class PrecomputedChunks(Struct, frozen=True, kw_only=True):
    """Chunks with vectors that came with a source, so that kb need not cut or embed it."""

    markdown: str
    """The text that they were cut from; they fit no other."""
    chunker: str
    chunks: tuple[ChunkDraft, ...]
    model: str
    vectors: "NDArray[np.float32]"
    """Shape (chunks, dim); unit vectors, in the order of the chunks."""


def build_chunks(doc: Doc, markdown: str, drafts: list[ChunkDraft]) -> ChunkedDoc:
    """The chunks of a doc's markdown with their ids, lines, mentions and text hashes."""
    occurrences: Counter[str] = Counter()
    ids: list[ChunkId] = []
    for draft in drafts:
        ids.append(chunk_id(doc.lsid, draft.text, occurrences[draft.text]))
        occurrences[draft.text] += 1
    return ChunkedDoc(
        doc=doc,
        chunks=drafts,
        mentions=[extract(draft.text) for draft in drafts],
        lines=_line_numbers(markdown, [draft.start for draft in drafts]),
        text_hashes=[text_hash(doc.label, draft.heading, draft.text) for draft in drafts],
        ids=ids,
    )


def _line_numbers(markdown: str, offsets: list[int]) -> list[int]:
    """The 1-based line of each offset; offsets ascend, and the text is read once."""
    numbers: list[int] = []
    line, last = 1, 0
    for offset in offsets:
        line += (
            markdown.count("\n", last, offset)
            if offset >= last
            else -markdown.count("\n", offset, last)
        )
        last = offset
        numbers.append(line)
    return numbers


def text_hash(title: str, heading: tuple[str, ...], text: str) -> str:
    """The key under which a chunk's vector is stored: 32 hex digits of its indexed text."""
    return sha256_hex(indexed_text(title, heading, text))[:_TEXT_HASH_HEX]


def has_current_title(doc: Doc | None, chunk: Chunk) -> bool:
    """Whether a chunk was cut under the title that the doc has now."""
    return doc is not None and text_hash(doc.label, chunk.heading, chunk.text) == chunk.text_hash
