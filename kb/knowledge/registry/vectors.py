"""An entry's chunks and vectors as one file: a line of JSON, then rows of float32. Pure."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
from msgspec import Meta, Struct

from kb.errors import EmbedError, Unparsable
from kb.intake.canonicalize import CanonicalizeInput, canonicalize
from kb.intake.chunker.chunking import chunk_many
from kb.intake.chunker.rules import ENTRY_SECTION_LEVEL
from kb.intake.chunks import PrecomputedChunks, text_hash
from kb.intake.embed.protocol import Embedder, checked
from kb.knowledge.entries import Entry
from kb.knowledge.packs.portable import PortableChunk, PortableDocChunks, chunks_of
from kb.knowledge.registry.index import VectorSet
from kb.model.decoding import decode_json
from kb.model.ids import sha256_hex
from kb.model.text import ChunkDraft, indexed_text

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

_SCHEMA: Final = 1


class Pipeline(Struct, frozen=True, kw_only=True):
    """How a home cuts and embeds entries."""

    made_by: VectorSet
    tokens_max: int
    overlap_tokens: int
    embedder: Callable[[], Embedder]


class Embedded(Struct, frozen=True, kw_only=True):
    """An entry cut and embedded."""

    chunks: int
    data: bytes
    """Its file."""


class _VectorsHeader(Struct, frozen=True, kw_only=True):
    schema_version: int = _SCHEMA
    zettel_id: str
    markdown_sha256: str
    model: str
    chunker: str
    dim: Annotated[int, Meta(ge=1, le=65_536)]
    text_hashes: Annotated[tuple[str, ...], Meta(max_length=100_000)]
    """Of each chunk, the key of its vector."""
    passages: Annotated[tuple[PortableChunk, ...], Meta(max_length=100_000)]


def markdown_of(data: bytes, name: str) -> str:
    """The canonical markdown of an entry's file. Raises EmptySource."""
    return canonicalize(CanonicalizeInput(data=data, mime="text/markdown", name=name)).markdown


def label_of(entry: Entry) -> str:
    """The label under which an entry's chunks are hashed and embedded."""
    return f"[{entry.meta.zettel_id}] {entry.title}"


def embedded(entries: list[tuple[Entry, str]], pipeline: Pipeline) -> list[Embedded]:
    """Cut and embed each entry with its markdown. Raises ModelMissing or EmbedError."""
    if not entries:
        return []
    embedder = pipeline.embedder()
    labels = [label_of(entry) for entry, _ in entries]
    chunks_by_entry = chunk_many(
        [markdown for _, markdown in entries],
        titles=labels,
        spans_of=embedder.token_spans_batch,
        tokens_max=pipeline.tokens_max,
        overlap_tokens=pipeline.overlap_tokens,
        section_level=ENTRY_SECTION_LEVEL,
    )
    texts = [
        indexed_text(label, chunk.heading, chunk.text)
        for label, entry_chunks in zip(labels, chunks_by_entry, strict=True)
        for chunk in entry_chunks
    ]
    matrix = embedder.embed_documents(texts)
    done: list[Embedded] = []
    first = 0
    for (entry, markdown), entry_chunks in zip(entries, chunks_by_entry, strict=True):
        vectors = matrix[first : first + len(entry_chunks)]
        first += len(entry_chunks)
        data = _file(entry, markdown, entry_chunks, vectors, pipeline.made_by)
        done.append(Embedded(chunks=len(entry_chunks), data=data))
    return done


def _file(
    entry: Entry,
    markdown: str,
    chunks: list[ChunkDraft],
    vectors: "NDArray[np.float32]",
    made_by: VectorSet,
) -> bytes:
    label = label_of(entry)
    header = _VectorsHeader(
        zettel_id=entry.meta.zettel_id,
        markdown_sha256=sha256_hex(markdown),
        model=made_by.model,
        chunker=made_by.chunker,
        dim=made_by.dim,
        text_hashes=tuple(text_hash(label, chunk.heading, chunk.text) for chunk in chunks),
        passages=tuple(_portable(chunk, markdown) for chunk in chunks),
    )
    return msgspec.json.encode(header) + b"\n" + vectors.astype("<f4").tobytes()


def _portable(chunk: ChunkDraft, markdown: str) -> PortableChunk:
    return PortableChunk(
        start=chunk.start,
        end=chunk.end,
        heading=chunk.heading,
        line=markdown.count("\n", 0, chunk.start) + 1,
        page=chunk.page,
        tokens=chunk.tokens,
    )


def read_vectors(
    data: bytes, entry: Entry, markdown: str, made_by: VectorSet, source: str
) -> PrecomputedChunks | None:
    """The chunks and vectors of an entry in a file, checked against its text.

    None if they were cut from another text of the entry. Raises Unparsable if the file is not what
    it claims to be.
    """
    import numpy as np

    header_line, _, rows = data.partition(b"\n")
    try:
        header = decode_json(header_line, _VectorsHeader)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise Unparsable(f"its vectors cannot be read: {error}", source=source) from error
    is_for_entry = header.schema_version == _SCHEMA and header.zettel_id == entry.meta.zettel_id
    if not is_for_entry or (header.model, header.chunker, header.dim) != (
        made_by.model,
        made_by.chunker,
        made_by.dim,
    ):
        raise Unparsable("its vectors do not match the index", source=source)
    if header.markdown_sha256 != sha256_hex(markdown):
        return None
    doc_chunks = PortableDocChunks(doc=entry.meta.zettel_id, passages=header.passages)
    chunks = chunks_of(doc_chunks, markdown, source)
    label = label_of(entry)
    hashes = tuple(text_hash(label, chunk.heading, chunk.text) for chunk in chunks)
    if hashes != header.text_hashes or len(rows) != len(chunks) * header.dim * 4:
        raise Unparsable("its vectors do not match its text", source=source)
    try:
        matrix = np.frombuffer(rows, dtype="<f4").reshape(len(chunks), header.dim)
        vectors = checked(matrix, len(chunks), header.dim)
    except EmbedError as error:
        raise Unparsable("its vectors do not have length 1", source=source) from error
    return PrecomputedChunks(
        markdown=markdown,
        chunker=header.chunker,
        chunks=chunks,
        model=header.model,
        vectors=vectors,
    )
