"""The reread job: a doc whose parser has changed gets a new version, if it reads otherwise."""

import os
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from kb.errors import SourceError, StaleToken, Unreadable
from kb.intake.canonicalize import (
    CanonicalizeInput,
    Parser,
    detect_mime,
    fingerprint_of,
    parser_table,
    reads_as_before,
)
from kb.intake.ingest.request import IngestRequest, read_anew
from kb.intake.sync.export_names import NAMING_BYTES_MAX, ExportNames
from kb.intake.sync.parts import Attachments, without_records
from kb.intake.sync.pictures import Ocr, lacks_text, parsed
from kb.intake.sync.read import read_file
from kb.intake.sync.report import Tally
from kb.model.doc import Doc, Kind
from kb.model.ids import Lsid
from kb.model.job import Claim
from kb.model.source import file_of, path_of, whole_of
from kb.store import docs
from kb.store.content.files import ContentStore
from kb.store.content.originals import read_parsed
from kb.store.jobs import queue
from kb.store.kv import WriteTxn
from kb.store.meta import PARSERS, get_word, set_word
from kb.store.store import Store

if TYPE_CHECKING:
    from kb.intake.ingest.ingest import Ingestor

_BATCH_DOCS: Final = 128
# Members of collections have chunks, titles and rules of their own, which their sync knows.
_KINDS: frozenset[Kind] = frozenset(("file", "stdin", "url"))


def follow_parsers(store: Store) -> int:
    """Have docs read again that other parsers read; returns how many will be.

    A look at all docs happens only when the parsers are others than the last time.
    """
    parsers = parser_table().fingerprint
    with store.read() as txn:
        if get_word(txn, PARSERS) == parsers:
            return 0
    with store.write() as txn:
        set_word(txn, PARSERS, parsers)
        outdated = [doc for doc in docs.all_latest(txn) if _is_outdated(doc)]
        for doc in outdated:
            key = queue.dedupe_key("reread", doc.doc_id)
            queue.enqueue(txn, store.clock, "reread", doc.doc_id, key=key)
    return len(outdated)


def _is_outdated(doc: Doc) -> bool:
    is_ours = doc.status == "active" and doc.kind in _KINDS
    return is_ours and not reads_as_before(_file(doc))(doc)


def _file(doc: Doc) -> str | None:
    return doc.source if doc.kind == "file" else None


def _is_part(doc: Doc) -> bool:
    return file_of(doc.place) is not None


class RereadHandler:
    """Handles reread jobs for one home."""

    def __init__(
        self,
        store: Store,
        content: ContentStore,
        ingestor: "Callable[[], Ingestor]",
        parser: Callable[[], Parser],
        ocr: Callable[[], Ocr],
    ) -> None:
        self._store = store
        self._content = content
        self._ingestor = ingestor
        self._parser = parser
        self._ocr = ocr

    def work(self, claims: list[Claim]) -> None:
        """Read each doc again; one that cannot be read now stands as it is."""
        with self._parser() as parser:
            for claim in claims:
                try:
                    self._work_one(claim, parser)
                except StaleToken:
                    continue

    def _work_one(self, claim: Claim, parser: Parser) -> None:
        with self._store.read() as txn:
            doc = docs.if_latest(txn, claim.job.doc_id)
        request = self._request(doc, parser) if doc and _is_outdated(doc) else None
        if doc is None or request is None:
            with self._store.write() as txn:
                queue.finish(txn, claim)
            return
        ingestor = self._ingestor()
        attachments = Attachments(self._store, ingestor, parser, self._ocr(), Tally())
        parts = [] if _is_part(doc) else list(attachments.of(request))
        # The file comes last: until then the job is not done.
        ready = [*parts, without_records(request)]

        def finish(txn: WriteTxn) -> None:
            queue.finish(txn, claim)
            attachments.hide_gone(txn)

        for start in range(0, len(ready), _BATCH_DOCS):
            batch = [ingestor.stage(one) for one in ready[start : start + _BATCH_DOCS]]
            is_last = start + _BATCH_DOCS >= len(ready)
            ingestor.commit(batch, first=finish if is_last else None)

    def _beside(self, place: str) -> bytes:
        """What the home has of the file at a place, else the file. Raises SourceError."""
        with self._store.read() as txn:
            doc = docs.latest_of(txn, Lsid(place))
        if doc is not None and doc.status == "active":
            return read_parsed(self._content, doc)
        path = path_of(Lsid(place), self._content.machine)
        if path is None:
            raise Unreadable("it is on another machine", source=place)
        return read_file(path, NAMING_BYTES_MAX, 0, listed=True)[0]

    def _request(self, doc: Doc, parser: Parser) -> IngestRequest | None:
        """The doc as it reads now; None where it cannot be read, or would lose what OCR found."""
        ocr = self._ocr()
        if doc.coverage is not None and doc.coverage.ocr_pages and ocr != "there":
            return None
        file = os.path.basename(_file(doc) or "")
        # The place of a mail in a mailbox names neither its format nor itself.
        is_named = file and (not _is_part(doc) or whole_of(doc.place) is not None)
        name = file if is_named else doc.title
        try:
            raw = read_parsed(self._content, doc)
            mime = detect_mime(raw, file) if file and not _is_part(doc) else doc.mime
            source = CanonicalizeInput(data=raw, mime=mime, name=name, charset=doc.charset)
            canonical = parsed(parser, source, ocr, Tally())
            if file and not _is_part(doc):
                canonical = ExportNames(self._beside).named(canonical, doc.place)
        except SourceError:
            return None
        wants_ocr = lacks_text(canonical) and ocr == "there"
        return read_anew(doc, raw, canonical, fingerprint_of(mime), wants_ocr=wants_ocr)
