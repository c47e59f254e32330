"""Ingest a source again from its raw file, after its doc was overwritten or lost."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from kb.errors import KbError, StoreDamaged
from kb.intake.canonicalize import CanonicalizeInput, Parser, detect_mime, fingerprint_of
from kb.intake.ingest.ingest import Ingestor
from kb.intake.ingest.request import IngestOptions, IngestRequest
from kb.model.doc import SourceStamp
from kb.model.ids import Lsid, sha256_hex
from kb.model.source import file_of, path_of, source_of, whole_of
from kb.store import chunks, log
from kb.store.codec import u64
from kb.store.content.files import ContentStore
from kb.store.keys import lsid_key
from kb.store.kv import ReadTxn, WriteTxn
from kb.store.records import DOCS, LEDGER, LSIDS, SEEN, SOURCE_DOCS, VERSIONS
from kb.store.store import Store
from kb.upkeep.check.lookup import find

RECOVERED = "recovered"
"""The tag of docs that were ingested again from their raw bytes."""


class SourceLocation(Struct, frozen=True):
    """A place of a source, and the stamp of its file when it was ingested."""

    place: Lsid
    seen: SourceStamp | None


def is_overwritten(txn: ReadTxn, source_no: int) -> bool:
    """Whether the newest doc of a source belongs to another source."""
    pointer = find(VERSIONS, txn, u64(source_no))
    doc = find(DOCS, txn, pointer.doc_id.encode()) if pointer else None
    return doc is not None and doc.source_no != source_no


def locations_of(txn: ReadTxn, source_no: int) -> Iterator[SourceLocation]:
    """The places of a source, with the stamps of their files."""
    for key, ref in LSIDS.scan(txn):
        if ref.source_no == source_no:
            yield SourceLocation(ref.lsid, find(SEEN, txn, key))


def recover_overwritten(
    store: Store, content: ContentStore, parser: Parser, source_no: int
) -> None:
    """Ingest an overwritten source again as a new one, from the raw bytes in the home.

    Its former visibility is unknown, so the doc is private, with the tag `recovered`. If the raw
    bytes are missing, the source's records are removed, so that its file can be added again.
    """
    with store.read() as txn:
        if not is_overwritten(txn, source_no):
            return
        locations = list(locations_of(txn, source_no))
    recover_source(store, content, parser, source_no, locations)


def recover_source(
    store: Store,
    content: ContentStore,
    parser: Parser,
    source_no: int,
    locations: list[SourceLocation],
) -> int:
    """Replace a source's records by new sources at `locations`; returns how many were ingested."""
    ingestor = Ingestor(store, content)
    requests = [_request_for(content, parser, location) for location in locations]
    staged = [ingestor.stage(request) for request in requests if request is not None]

    def release(txn: WriteTxn) -> None:
        removed = chunks.delete_all(txn, source_no)
        log.append(txn, [chunk.no for chunk in removed], words=True, vectors=True)
        for key, _ in list(SOURCE_DOCS.scan(txn, u64(source_no))):
            ref = find(SOURCE_DOCS, txn, key)
            doc = find(DOCS, txn, ref.doc_id.encode()) if ref else None
            if doc is not None and doc.source_no == source_no:
                DOCS.delete(txn, doc.doc_id.encode())
                LEDGER.delete(txn, doc.doc_id.encode())
            SOURCE_DOCS.delete(txn, key)
        VERSIONS.delete(txn, u64(source_no))
        for location in locations:
            LSIDS.delete(txn, lsid_key(location.place))
            SEEN.delete(txn, lsid_key(location.place))

    ingestor.commit(staged, first=release)
    return len(staged)


def _request_for(
    content: ContentStore, parser: Parser, location: SourceLocation
) -> IngestRequest | None:
    path = path_of(location.place)
    if location.seen is None or path is None:
        return None
    digest = location.seen.raw_sha256
    for raw_file in sorted((content.paths.root / "raw" / digest[:2]).glob(f"{digest}.*")):
        with contextlib.suppress(OSError, KbError):
            return request_from_raw(raw_file, parser, location.place, source_of(location.place))
    return None


def request_from_raw(raw_file: Path, parser: Parser, place: Lsid, source: str) -> IngestRequest:
    """The ingest request for a file in raw/. Raises OSError, and KbError if it is unusable."""
    raw, digest = raw_file.read_bytes(), raw_file.stem
    if sha256_hex(raw) != digest:
        raise StoreDamaged("the file is not what was written", place=f"raw/{raw_file.name}")
    # The name of a raw file is its hash, so the type is detected with the source's name.
    is_mail = file_of(place) is not None and whole_of(place) is None
    name = raw_file.name if is_mail else os.path.basename(source)
    mime = detect_mime(raw, name)
    canonical = parser.parse(CanonicalizeInput(data=raw, mime=mime, name=name))
    return IngestRequest(
        lsid=place,
        source=source,
        kind="file",
        canonical=canonical,
        raw=raw,
        raw_sha256=digest,
        extension=raw_file.suffix.lstrip("."),
        canonicalizer=fingerprint_of(mime),
        ingest_options=IngestOptions(visibility="private", tags=(RECOVERED,)),
    )
