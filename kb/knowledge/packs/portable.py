"""A portable pack: one archive with a manifest, docs, their chunks and vectors, sealed.

The members stand in one order: the manifest, the docs in its order, chunks, vectors, seal. The
manifest's `content_hash` is over all before the seal but itself, and the seal is over the manifest.
"""

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
from msgspec import Meta, Struct

from kb.errors import EmbedError, Refused, TooLarge, Unparsable
from kb.intake.chunks import PrecomputedChunks
from kb.intake.embed.protocol import checked
from kb.knowledge.packs.keys import is_signed, public_of
from kb.knowledge.packs.load import (
    BODY_BYTES_MAX,
    DOCS_MAX,
    MANIFEST_BYTES_MAX,
    MANIFEST_JSON,
    Pack,
    parsed,
)
from kb.knowledge.packs.manifest import PackManifest
from kb.knowledge.packs.tar import TarMember, is_plain, unpacked
from kb.model.decoding import decode_json, json_decoder
from kb.model.ids import sha256_hex
from kb.model.text import ChunkDraft

if TYPE_CHECKING:
    import numpy as np
    from nacl.signing import SigningKey
    from numpy.typing import NDArray

ARCHIVE_BYTES_MAX: Final = 1 << 30
CHUNKS_MAX: Final = 500_000
PASSAGES: Final = "passages.jsonl"
VECTORS: Final = "vectors.f32"
SEAL: Final = "seal.json"
SEAL_BYTES_MAX: Final = 4_096
DOCS: Final = "docs/"

# Precedes a text whose beginning would otherwise be read as front matter.
GUARD: Final = "---\n---\n"

_FORMAT: Final = 1
_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
# Neighbours overlap, but never as much as this.
_OVERLAP_FACTOR_MAX: Final = 8
_SIGNED_FOR: Final = b"kb portable pack 1\n"
_MEMBER_BYTES_MAX: Final = {MANIFEST_JSON: MANIFEST_BYTES_MAX, SEAL: SEAL_BYTES_MAX}
_CACHES: Final = (PASSAGES, VECTORS)


class Portable(Struct, frozen=True, kw_only=True):
    """Under `portable` in the manifest: how the chunks and vectors were made."""

    format: Annotated[int, Meta(ge=1)] = _FORMAT
    canonicalizer: str
    chunker: str
    model: str
    dim: Annotated[int, Meta(ge=1, le=65_536)]
    passages: Annotated[int, Meta(ge=0, le=CHUNKS_MAX)]


class PortableManifest(PackManifest, frozen=True, kw_only=True):
    """The manifest of a portable pack."""

    portable: Portable


class PortableChunk(Struct, frozen=True, kw_only=True):
    """A chunk by its place in its doc, in characters; the doc has its text."""

    start: Annotated[int, Meta(ge=0)]
    end: Annotated[int, Meta(ge=1)]
    heading: Annotated[tuple[Annotated[str, Meta(max_length=4_096)], ...], Meta(max_length=64)] = ()
    line: Annotated[int, Meta(ge=1)]
    page: Annotated[int, Meta(ge=1)] | None = None
    tokens: Annotated[int, Meta(ge=0, le=65_536)]
    entities: tuple[str, ...] = ()


class PortableDocChunks(Struct, frozen=True, kw_only=True):
    """The chunks of a doc: one line of the chunks' file."""

    doc: str
    """Its source path."""
    passages: tuple[PortableChunk, ...]


class Seal(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, omit_defaults=True):
    """The seal of an archive: the manifest's hash, and perhaps a signature."""

    manifest: str
    """SHA-256 of the manifest's bytes."""
    key: str = ""
    signature: str = ""
    """Ed25519, over a fixed line and `manifest`; empty if unsigned."""


class Archive(Struct, frozen=True, kw_only=True):
    """A portable pack that passed all checks."""

    pack: Pack
    manifest: bytes
    seal: bytes
    docs: dict[str, bytes]
    """By source path."""
    ready: dict[str, PrecomputedChunks]
    """The same."""
    key: str
    """The key that signed it; empty if unsigned."""

    @property
    def content_hash(self) -> str:
        """The hash of all its content, as 64 hex digits."""
        return self.pack.manifest.content_hash.removeprefix("sha256:")


class _PortableHeader(Struct, frozen=True, kw_only=True):
    portable: Portable


def is_pack_id(pack_id: str) -> bool:
    """Whether a portable pack may have this id, which names the folder where it is unpacked."""
    return _ID.fullmatch(pack_id) is not None


def members_of(
    manifest: PortableManifest,
    docs: dict[str, bytes],
    cuts: Iterable[PortableDocChunks],
    vectors: "NDArray[np.float32]",
    key: "SigningKey | None",
) -> Iterator[TarMember]:
    """The archive's members in order; sets the content hash in the manifest."""
    lines = b"".join(msgspec.json.encode(cut) + b"\n" for cut in cuts)
    rest = [TarMember(doc.source_path, docs[doc.source_path]) for doc in manifest.docs]
    rest += [TarMember(PASSAGES, lines), TarMember(VECTORS, vectors.astype("<f4").tobytes())]
    whole = msgspec.structs.replace(manifest, content_hash=_content_hash(rest))
    data = msgspec.json.format(msgspec.json.encode(whole), indent=2) + b"\n"
    seal = Seal(manifest=sha256_hex(data))
    if key is not None:
        signature = key.sign(_SIGNED_FOR + seal.manifest.encode()).signature
        seal = msgspec.structs.replace(seal, key=public_of(key), signature=_text_of(signature))
    yield from (TarMember(MANIFEST_JSON, data), *rest, TarMember(SEAL, msgspec.json.encode(seal)))


def _text_of(signature: bytes) -> str:
    import base64

    return base64.b64encode(signature).decode()


def _content_hash(members: Iterable[TarMember]) -> str:
    lines = (f"{sha256_hex(bytes(member.data))} {member.name}\n" for member in members)
    return "sha256:" + sha256_hex("".join(lines))


def read_archive(data: bytes, source: str) -> Archive:
    """The content of an archive, after all of it was checked; `source` names it in errors.

    Raises Refused, TooLarge or Unparsable; then nothing of it is returned.
    """
    if len(data) > ARCHIVE_BYTES_MAX:
        raise TooLarge(f"over the limit of {ARCHIVE_BYTES_MAX:,} bytes", source=source)
    members = unpacked(data, source, members_max=DOCS_MAX + 4, bytes_max=ARCHIVE_BYTES_MAX)
    for member in members:
        most = _MEMBER_BYTES_MAX.get(member.name, BODY_BYTES_MAX)
        if member.name not in _CACHES and len(member.data) > most:
            detail = f"{member.name} is over the limit of {most:,} bytes"
            raise TooLarge(detail, source=source)
    names = [member.name for member in members]
    if names[:1] != [MANIFEST_JSON] or names[-3:] != [*_CACHES, SEAL]:
        raise Unparsable("it is not a portable pack, or files are missing", source=source)
    manifest = bytes(members[0].data)
    seal = _seal(bytes(members[-1].data), manifest, source)
    pack, portable = _manifest(manifest, source)
    if pack.manifest.content_hash != _content_hash(members[1:-1]):
        raise Unparsable("its content does not match its hash", source=source)
    paths = [doc.source_path for doc in pack.manifest.docs]
    if paths != names[1:-3]:
        raise Unparsable("its docs do not match its manifest", source=source)
    docs = {member.name: bytes(member.data) for member in members[1:-3]}
    ready = _ready(docs, portable, members[-3].data, members[-2].data, source)
    return Archive(
        pack=pack,
        manifest=manifest,
        seal=bytes(members[-1].data),
        docs=docs,
        ready=ready,
        key=seal.key,
    )


def signer_of(data: bytes, manifest: bytes, source: str) -> str:
    """The key that signed a manifest by this seal; empty if unsigned.

    Raises Unparsable if the seal belongs to another manifest, Refused if the signature is wrong.
    """
    return _seal(data, manifest, source).key


def _seal(data: bytes, manifest: bytes, source: str) -> Seal:
    try:
        seal = decode_json(data, Seal)
    except (ValueError, RecursionError) as error:
        raise Unparsable("its seal is damaged", source=source) from error
    if msgspec.json.encode(seal) != data or seal.manifest != sha256_hex(manifest):
        raise Unparsable("its manifest does not match its seal", source=source)
    message = _SIGNED_FOR + seal.manifest.encode()
    if (seal.key or seal.signature) and not is_signed(seal.key, seal.signature, message):
        raise Refused(
            "its signature is wrong: somebody changed the archive, or another key signed it",
            source=source,
        )
    return seal


def _manifest(data: bytes, source: str) -> tuple[Pack, Portable]:
    try:
        portable = decode_json(data, _PortableHeader).portable
    except (ValueError, RecursionError) as error:
        raise Unparsable(
            f"its manifest is not that of a portable pack: {error}", source=source
        ) from error
    if portable.format != _FORMAT:
        detail = f"it has format {portable.format}, but this kb reads format {_FORMAT}"
        raise Unparsable(detail, source=source)
    try:
        pack = parsed(Path(MANIFEST_JSON), data)
    except Unparsable as error:
        raise Unparsable(f"its manifest: {error.reason}", source=source) from error
    if not is_pack_id(pack.manifest.pack_id):
        raise Refused("its pack id cannot name a folder", source=source)
    for doc in pack.manifest.docs:
        if not (is_plain(doc.source_path) and doc.source_path.startswith(DOCS)):
            raise Refused(f"{doc.source_path!r} is not a plain path in {DOCS}", source=source)
    return pack, portable


def _ready(
    docs: dict[str, bytes],
    portable: Portable,
    lines: bytes | memoryview,
    rows: bytes | memoryview,
    source: str,
) -> dict[str, PrecomputedChunks]:
    """The chunks and vectors of each doc, checked against its text."""
    import numpy as np

    try:
        cuts = json_decoder(PortableDocChunks).decode_lines(lines)
    except (ValueError, RecursionError) as error:
        raise Unparsable(f"{PASSAGES} cannot be read: {error}", source=source) from error
    total = sum(len(cut.passages) for cut in cuts)
    if [cut.doc for cut in cuts] != list(docs) or total != portable.passages:
        raise Unparsable("its passages do not match its docs", source=source)
    if len(rows) != total * portable.dim * 4:
        raise Unparsable("it does not have one vector for each passage", source=source)
    try:
        matrix = np.frombuffer(rows, dtype="<f4").reshape(total, portable.dim)
        vectors = checked(matrix, total, portable.dim)
    except EmbedError as error:
        raise Unparsable("its vectors do not have length 1", source=source) from error
    ready: dict[str, PrecomputedChunks] = {}
    first = 0
    for cut in cuts:
        last = first + len(cut.passages)
        markdown = _text(docs[cut.doc], cut.doc, source)
        ready[cut.doc] = PrecomputedChunks(
            markdown=markdown,
            chunker=portable.chunker,
            chunks=chunks_of(cut, markdown, source),
            model=portable.model,
            vectors=vectors[first:last],
        )
        first = last
    return ready


def _text(data: bytes, name: str, source: str) -> str:
    """A doc's canonical markdown."""
    try:
        return data.decode().removeprefix(GUARD)
    except UnicodeDecodeError as error:
        raise Unparsable(f"{name} is not UTF-8", source=source) from error


def chunks_of(cut: PortableDocChunks, markdown: str, source: str) -> tuple[ChunkDraft, ...]:
    """The chunks of a text by their places in it. Raises Unparsable if they are not in it."""
    previous_start = 0
    for chunk in cut.passages:
        if not previous_start <= chunk.start < chunk.end <= len(markdown):
            raise Unparsable(f"a passage of {cut.doc} is not in its text", source=source)
        previous_start = chunk.start
    if sum(chunk.end - chunk.start for chunk in cut.passages) > _OVERLAP_FACTOR_MAX * len(markdown):
        raise Unparsable(f"the passages of {cut.doc} repeat its text", source=source)
    return tuple(
        ChunkDraft(
            text=markdown[chunk.start : chunk.end],
            start=chunk.start,
            end=chunk.end,
            heading=chunk.heading,
            page=chunk.page,
            tokens=chunk.tokens,
        )
        for chunk in cut.passages
    )
