"""Taking in again a source whose doc was overwritten by that of another source with its id."""

import os
from collections.abc import Iterator

from msgspec import Struct

from kb.canonicalize import FINGERPRINT, CanonicalizeInput, Parser, detect_mime
from kb.check.lookup import find
from kb.content.files import ContentStore
from kb.errors import KbError
from kb.ingest.ingest import Ingestor
from kb.ingest.request import IngestRequest, Wishes
from kb.model.doc import Seen
from kb.model.ids import Lsid, sha256_hex
from kb.model.source import display_name, path_of
from kb.store import chunks, log
from kb.store.codec import u64
from kb.store.keys import lsid_key
from kb.store.kv import ReadTxn, WriteTxn
from kb.store.records import DOCS, LSIDS, SEEN, SOURCE_DOCS, VERSIONS
from kb.store.store import Store

RECOVERED = "recovered"
"""The tag of docs that were taken in again from their raw bytes."""


class _Name(Struct, frozen=True):
    place: Lsid
    seen: Seen | None


def is_overwritten(txn: ReadTxn, source_no: int) -> bool:
    """Whether the newest doc of a source is another source's."""
    pointer = find(VERSIONS, txn, u64(source_no))
    doc = find(DOCS, txn, pointer.doc_id.encode()) if pointer else None
    return doc is not None and doc.source_no != source_no


def names_of(txn: ReadTxn, source_no: int) -> Iterator[_Name]:
    """The places of a source, with what their files were when they were taken in."""
    for key, ref in LSIDS.scan(txn):
        if ref.source_no == source_no:
            yield _Name(ref.lsid, find(SEEN, txn, key))


def bring_back(store: Store, content: ContentStore, parser: Parser, source_no: int) -> None:
    """Give a source a birth of its own, from the raw bytes that the home still holds.

    Who saw it is not known any more: the doc is private, and has the tag `recovered`. Where the
    bytes are gone, the source's remains are removed, so that its file can be added again.
    """
    with store.read() as txn:
        if not is_overwritten(txn, source_no):
            return
        names = list(names_of(txn, source_no))
    ingestor = Ingestor(store, content)
    requests = [_request(content, parser, name) for name in names]
    staged = [ingestor.stage(request) for request in requests if request is not None]

    def release(txn: WriteTxn) -> None:
        gone = chunks.delete_all(txn, source_no)
        log.append(txn, [chunk.no for chunk in gone], words=True, vectors=True)
        for key, _ in list(SOURCE_DOCS.scan(txn, u64(source_no))):
            SOURCE_DOCS.delete(txn, key)
        VERSIONS.delete(txn, u64(source_no))
        for name in names:
            LSIDS.delete(txn, lsid_key(name.place))
            SEEN.delete(txn, lsid_key(name.place))

    ingestor.commit(staged, first=release)


def _request(content: ContentStore, parser: Parser, name: _Name) -> IngestRequest | None:
    path = path_of(name.place)
    if name.seen is None or path is None:
        return None
    digest = name.seen.raw_sha256
    for found in sorted((content.paths.root / "raw" / digest[:2]).glob(f"{digest}.*")):
        try:
            raw = found.read_bytes()
            if sha256_hex(raw) != digest:
                continue
            mime = detect_mime(raw, path.name)
            source = CanonicalizeInput(data=raw, mime=mime, name=os.path.basename(path))
            canonical = parser.parse(source)
        except (OSError, KbError):
            continue
        return IngestRequest(
            lsid=name.place,
            source=display_name(path),
            kind="file",
            canonical=canonical,
            raw=raw,
            raw_sha256=digest,
            extension=found.suffix.lstrip("."),
            canonicalizer=FINGERPRINT,
            wishes=Wishes(visibility="private", tags=(RECOVERED,)),
        )
    return None
