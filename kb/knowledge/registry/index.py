"""The index of a registry: its entries, and the hash and size of every file. Pure."""

import re
from typing import Annotated, Final

import msgspec
from msgspec import Meta, Struct

from kb.errors import TooLarge, Unparsable
from kb.knowledge.entries import is_id, is_version
from kb.model.decoding import decode_json
from kb.model.ids import sha256_hex

INDEX: Final = "index.json"
SIGNATURE: Final = "index.sig"
ENTRIES: Final = "entries/"
VECTORS: Final = "vectors/"
INDEX_BYTES_MAX: Final = 32 << 20
ENTRIES_MAX: Final = 20_000
ENTRY_BYTES_MAX: Final = 4 << 20
VECTORS_BYTES_MAX: Final = 32 << 20

_SCHEMA: Final = 1
_SETS_MAX: Final = 64
_SET_HEX: Final = 16
_SET: Final = re.compile(rf"[0-9a-f]{{{_SET_HEX}}}")

_Sha256 = Annotated[str, Meta(pattern=r"\A[0-9a-f]{64}\Z")]
_Line = Annotated[str, Meta(max_length=1_000)]


class VectorSet(Struct, frozen=True, kw_only=True):
    """How the chunks and vectors of one set of files were made."""

    model: _Line
    chunker: _Line
    dim: Annotated[int, Meta(ge=1, le=65_536)]

    @property
    def key(self) -> str:
        """Names the set: 16 hex digits of the hash of model and chunker."""
        return sha256_hex(f"{self.model}\0{self.chunker}")[:_SET_HEX]


class VectorFile(Struct, frozen=True, kw_only=True):
    """The chunks and vectors of one entry in one set."""

    path: str
    sha256: _Sha256
    size: Annotated[int, Meta(ge=1, le=VECTORS_BYTES_MAX)]


class IndexEntry(Struct, frozen=True, kw_only=True):
    """An entry as the index describes it."""

    zettel_id: str
    title: _Line
    entry_type: _Line
    version: str
    tags: Annotated[tuple[_Line, ...], Meta(max_length=100)] = ()
    path: str
    sha256: _Sha256
    size: Annotated[int, Meta(ge=1, le=ENTRY_BYTES_MAX)]
    vectors: Annotated[dict[str, VectorFile], Meta(max_length=_SETS_MAX)] = {}
    """By the key of their set."""


class Index(Struct, frozen=True, kw_only=True):
    """The entries of a registry, by id."""

    schema_version: int = _SCHEMA
    generated: _Line
    """ISO 8601, UTC."""
    fingerprints: Annotated[dict[str, VectorSet], Meta(max_length=_SETS_MAX)]
    """The sets of vectors by their keys."""
    entries: Annotated[tuple[IndexEntry, ...], Meta(max_length=ENTRIES_MAX)]


class _IndexVersion(Struct, frozen=True, kw_only=True):
    schema_version: int


def entry_path(zettel_id: str) -> str:
    """The path of an entry's file in a registry."""
    return f"{ENTRIES}{zettel_id}.md"


def vector_path(key: str, zettel_id: str) -> str:
    """The path of an entry's chunks and vectors of one set."""
    return f"{VECTORS}{key}/{zettel_id}.bin"


def encoded(index: Index) -> bytes:
    """The bytes of an index; equal indexes give equal bytes."""
    raw = msgspec.json.encode(index, order="deterministic")
    return msgspec.json.format(raw, indent=1) + b"\n"


def parse_index(data: bytes, source: str) -> Index:
    """The index in a file; `source` names it in errors.

    Its paths must be those that this module would choose, so none leads elsewhere. Raises TooLarge
    or Unparsable.
    """
    if len(data) > INDEX_BYTES_MAX:
        raise TooLarge(f"its index is over {INDEX_BYTES_MAX:,} bytes", source=source)
    try:
        head = decode_json(data, _IndexVersion)
        if head.schema_version != _SCHEMA:
            detail = (
                f"its index has format {head.schema_version}, but this kb reads format {_SCHEMA}"
            )
            raise Unparsable(detail, source=source)
        index = decode_json(data, Index)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise Unparsable(f"its index cannot be read: {error}", source=source) from error
    seen: set[str] = set()
    for entry in index.entries:
        if (wrong := _wrong(index, entry, seen)) is not None:
            raise Unparsable(f"its index: {wrong}", source=source)
        seen.add(entry.zettel_id)
    return index


def _wrong(index: Index, entry: IndexEntry, seen: set[str]) -> str | None:
    ident = entry.zettel_id
    if not is_id(ident):
        return f"{ident[:40]!r} is not a valid id"
    if ident in seen:
        return f"it has {ident} twice"
    if not is_version(entry.version):
        return f"{ident} has no semantic version"
    if entry.path != entry_path(ident):
        return f"the path of {ident} is not in the folder of entries"
    for key, file in entry.vectors.items():
        if key not in index.fingerprints or not _SET.fullmatch(key):
            return f"{ident} has vectors of a set that the index does not name"
        if file.path != vector_path(key, ident):
            return f"the vectors of {ident} are not in the folder of vectors"
    return None
