"""How does a fetched page become a doc? Parsed, staged, and committed with what is known of it."""

from collections.abc import Callable
from typing import Final

from msgspec import Struct, structs

from kb.intake.canonicalize import (
    CanonicalizeInput,
    Parser,
    fingerprint_of,
    keeps_raw,
    reads_as_before,
)
from kb.intake.crawl.book import PageBook
from kb.intake.crawl.options import TakeOptions
from kb.intake.ingest.ingest import Ingestor
from kb.intake.ingest.request import IngestRequest, StagedDoc
from kb.intake.sync.items import extension_of
from kb.intake.sync.pictures import Ocr, lacks_text, parsed, refuse_named_at_address
from kb.intake.sync.report import Tally
from kb.model.doc import Doc
from kb.model.file_kinds import is_named
from kb.model.ids import DocId
from kb.model.site import SitePage
from kb.model.text import Canonical
from kb.store import docs
from kb.store.kv import WriteTxn
from kb.store.store import Store

BATCH_PAGES: Final = 16
_BATCH_BYTES: Final = 16 << 20
_BATCH_MS: Final = 1_000


class PageBytes(Struct, frozen=True, kw_only=True):
    """The bytes of a page, and what they are."""

    data: bytes
    raw_sha256: str
    mime: str
    charset: str | None
    name: str


class PageTaker:
    """Takes the pages of one source into the store, in batches."""

    def __init__(
        self,
        store: Store,
        ingestor: Ingestor,
        parser: Parser,
        book: PageBook,
        options: TakeOptions,
        ocr: Ocr,
    ) -> None:
        self.tally = Tally()
        self.options = options
        self.renew: Callable[[WriteTxn], bool] = lambda _: True
        """Runs in every transaction that writes pages; it says whether the source is still held."""
        self._store = store
        self._ingestor = ingestor
        self._parser = parser
        self._ocr: Ocr = ocr
        self.book = book
        """What is known of the pages."""
        self._batch: list[tuple[SitePage, StagedDoc]] = []
        self._flushed_ms = store.clock.lease_ms()
        self._is_held = True

    @property
    def is_held(self) -> bool:
        """Whether the source was still this process's when it was last written."""
        return self._is_held

    def stays_out(self, page: SitePage) -> bool:
        """Whether a person removed its doc, and this call does not bring it back."""
        if self.options.revive:
            return False
        with self._store.read() as txn:
            return self.book.was_removed(txn, page)

    def kept(self, page: SitePage, file: str | None = None) -> Doc | None:
        """The doc of a page, or of this file, that needs no bytes while the source is the same."""
        with self._store.read() as txn:
            if self.book.doc(txn, page) is None:
                return None
            return self._ingestor.same_bytes(
                txn,
                self.book.lsid(page.url),
                page.raw_sha256,
                self.options.ingest_options,
                reads_as_before(file),
            )

    def read(self, page: PageBytes, *, takes_pictures: bool = False) -> Canonical:
        """The page as markdown. Raises a SourceError, as `Parser.parse` does.

        A picture, or another file known by its name, is what it says of itself, where it is taken
        at all: words in pictures are not read, as no copy of them is kept.
        """
        source = CanonicalizeInput(
            data=page.data, mime=page.mime, name=page.name, charset=page.charset
        )
        if not is_named(page.mime):
            return parsed(self._parser, source, self._ocr, self.tally)
        if not takes_pictures:
            refuse_named_at_address(page.mime, page.name)
        return self._parser.parse(source)

    def take(self, page: SitePage, read: PageBytes, canonical: Canonical) -> None:
        """Stage a page that is to be a doc; `page` is what will be known of it then."""
        for warning in canonical.warnings:
            self.tally.note(page.url, "added", warning)
        if self.options.dry_run:
            self._foresee(page, read)
            self.book.put(structs.replace(page, doc="own"))
            return
        lsid = self.book.lsid(page.url)
        with self._store.read() as txn:
            newest = docs.latest_of(txn, lsid)
        request = IngestRequest(
            lsid=lsid,
            source=page.url,
            kind="url",
            canonical=canonical,
            raw=read.data,
            raw_sha256=read.raw_sha256,
            extension=extension_of(None, read.mime),
            canonicalizer=fingerprint_of(read.mime),
            ingest_options=self.options.ingest_options,
            read_after=newest.doc_id if newest else DocId(""),
            revive=self.options.revive or page.doc == "dropped",
            charset=read.charset,
            keeps_raw=keeps_raw(read.mime),
            wants_ocr=keeps_raw(read.mime) and lacks_text(canonical) and self._ocr == "there",
        )
        self.book.put(structs.replace(page, doc="own"))
        self._batch.append((page, self._ingestor.stage(request)))

    def flush_if_due(self) -> None:
        """Commit what is staged if it is much, or waits for long."""
        waited_ms = self._store.clock.lease_ms() - self._flushed_ms
        raw_bytes = sum(len(staged.request.raw) for _, staged in self._batch)
        if len(self._batch) >= BATCH_PAGES or raw_bytes >= _BATCH_BYTES or waited_ms >= _BATCH_MS:
            self.flush()

    def flush(self) -> None:
        """Commit what is staged and what is known of pages, in one transaction."""
        self._flushed_ms = self._store.clock.lease_ms()
        if self.options.dry_run:
            return
        batch, self._batch = self._batch, []
        if batch:
            outcomes = self._ingestor.commit([staged for _, staged in batch], self._write)
            self.book.written()
            for (page, _), outcome in zip(batch, outcomes, strict=True):
                if outcome is None:
                    reason = "another call has just taken it in"
                    self.tally.left(page.url, "skipped", reason)
                else:
                    self.tally.took(page.url, outcome.doc_id, outcome.status)
        elif self.book.is_dirty:
            self.book.commit(self._renew)

    def _write(self, txn: WriteTxn) -> None:
        self._renew(txn)
        self.book.write(txn)

    def _renew(self, txn: WriteTxn) -> None:
        self._is_held = self.renew(txn)

    def _foresee(self, page: SitePage, read: PageBytes) -> None:
        with self._store.read() as txn:
            current = docs.latest_of(txn, self.book.lsid(page.url))
        if current is None:
            self.tally.took(page.url, DocId(""), "added")
        elif current.raw_sha256 == read.raw_sha256:
            is_active = current.status == "active"
            self.tally.took(page.url, current.doc_id, "unchanged" if is_active else "resurrected")
        else:
            self.tally.took(page.url, current.doc_id, "updated")
