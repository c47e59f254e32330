"""The requests of the ingest, and their outcomes."""

from typing import Literal

from msgspec import Struct

from kb.intake.chunks import PrecomputedChunks
from kb.model.doc import Kind, PackPart, Visibility
from kb.model.entry import EntryMeta
from kb.model.ids import DocId, Lsid
from kb.model.text import Canonical

IngestStatus = Literal["added", "updated", "unchanged", "resurrected"]


class FileStamp(Struct, frozen=True, kw_only=True):
    """The stat of a file, by which an unchanged file is recognised without reading it."""

    size_bytes: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    taken_ms: int
    """When it was taken, by the wall clock."""


class IngestOptions(Struct, frozen=True, kw_only=True):
    """What the caller sets for a source; None keeps the current value."""

    title: str | None = None
    tags: tuple[str, ...] | None = None
    visibility: Visibility | None = None
    visibility_first: Visibility | None = None
    """For a source that is new, where `visibility` says nothing: what a person said since holds."""
    owner: str | None = None
    entry: EntryMeta | None = None
    pack: PackPart | None = None


class IngestRequest(Struct, frozen=True, kw_only=True):
    """A canonicalised source, to be staged."""

    lsid: Lsid
    source: str
    kind: Kind
    canonical: Canonical
    raw: bytes
    raw_sha256: str
    extension: str
    canonicalizer: str
    ingest_options: IngestOptions
    stamp: FileStamp | None = None
    read_after: DocId | None = None
    """The source's newest doc before the bytes were read, empty where there was none: if another
    has come since, these bytes may be the older ones. None asks for no such comparison."""
    revive: bool = True
    """Whether what a person removed comes back by this."""
    charset: str | None = None
    """As the server that the bytes are from declares it."""
    ready: PrecomputedChunks | None = None
    """Its chunks and their vectors, where they came with it."""


class StagedDoc(Struct, frozen=True, kw_only=True):
    """A request whose files are written; only the transaction is missing."""

    request: IngestRequest
    raw_path: str
    md_path: str
    md_sha256: str


class IngestOutcome(Struct, frozen=True, kw_only=True):
    """The outcome of a request."""

    doc_id: DocId
    status: IngestStatus
