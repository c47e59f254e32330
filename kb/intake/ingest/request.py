"""The requests of the ingest, and their outcomes."""

import os
from typing import TYPE_CHECKING, Literal

from msgspec import Struct, structs

from kb.model.doc import Doc, Kind, PackPart, Visibility
from kb.model.entry import EntryMeta
from kb.model.ids import DocId, Lsid
from kb.model.mail import MailHead
from kb.model.source import whole_of
from kb.model.text import Canonical
from kb.store.link_names import PART

if TYPE_CHECKING:
    from kb.intake.chunks import PrecomputedChunks


IngestStatus = Literal["added", "updated", "unchanged", "resurrected"]


class FileStamp(Struct, frozen=True, kw_only=True):
    """The stat of a file, which shows without reading whether the file is unchanged."""

    size_bytes: int
    mtime_ns: int
    ctime_ns: int
    inode: int
    taken_ms: int
    """When the stat was taken, by the wall clock."""


class IngestOptions(Struct, frozen=True, kw_only=True):
    """What the caller sets for a source; None keeps the current value."""

    title: str | None = None
    tags: tuple[str, ...] | None = None
    visibility: Visibility | None = None
    visibility_first: Visibility | None = None
    """For a new source, if `visibility` is None; later a person's choice counts."""
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
    """All of the source's bytes, or the ends of a file that is read no further."""
    raw_sha256: str
    raw_bytes: int | None = None
    """How long the source is; None for as long as `raw`."""
    extension: str
    canonicalizer: str
    ingest_options: IngestOptions
    stamp: FileStamp | None = None
    read_after: DocId | None = None
    """The source's newest doc before the bytes were read, empty if there was none. If another
    version came since, these bytes may be the older ones. None skips that comparison."""
    revive: bool = True
    """Whether a doc that a person removed comes back."""
    charset: str | None = None
    """As the server declares it."""
    ready: "PrecomputedChunks | None" = None
    """Its chunks and their vectors, if they came with it."""
    keeps_raw: bool = True
    """Whether the home keeps a copy of the bytes."""
    wants_ocr: bool = False
    """Whether pages without text are to be read by OCR, in the background."""


def read_anew(
    doc: Doc, raw: bytes, canonical: Canonical, canonicalizer: str, *, wants_ocr: bool = False
) -> IngestRequest:
    """The request for what a doc's own bytes say, read in another way than before."""
    if whole_of(doc.place) is not None:
        canonical = part_of_mail(canonical, doc.mail, doc.date)
    return IngestRequest(
        lsid=doc.place,
        source=doc.source,
        kind=doc.kind,
        canonical=canonical,
        raw=raw,
        raw_bytes=doc.raw_bytes,
        raw_sha256=doc.raw_sha256,
        extension=os.path.splitext(doc.raw_path)[1].lstrip("."),
        canonicalizer=canonicalizer,
        ingest_options=IngestOptions(),
        read_after=doc.doc_id,
        revive=False,
        charset=doc.charset,
        wants_ocr=wants_ocr,
        keeps_raw=bool(doc.raw_path),
    )


def part_of_mail(canonical: Canonical, mail: MailHead | None, date: str | None) -> Canonical:
    """What an attachment says, with the people and the date of its mail, and a link to it."""
    head = structs.replace(mail, message_id="", earlier=()) if mail else None
    return structs.replace(
        canonical,
        links=(PART, *canonical.links),
        mail=canonical.mail or head,
        date=canonical.date or date,
    )


class StagedDoc(Struct, frozen=True, kw_only=True):
    """A request whose files are written, but not yet committed."""

    request: IngestRequest
    raw_path: str
    """Empty where no copy is kept."""
    md_path: str
    md_sha256: str
    links: tuple[str, ...] = ()
    """As in Doc."""


class IngestOutcome(Struct, frozen=True, kw_only=True):
    """The outcome of a request."""

    doc_id: DocId
    status: IngestStatus
