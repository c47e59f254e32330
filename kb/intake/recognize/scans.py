"""The ocr job: pictures and pages without text are read, and the doc gets a new version."""

import os
import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import msgspec

from kb.errors import Scanned, SourceError, StaleToken, Unparsable, Unreadable
from kb.intake.canonicalize import CanonicalizeInput, Parser
from kb.intake.ingest.request import read_anew
from kb.model.doc import Coverage, Doc
from kb.model.job import Claim
from kb.model.source import is_picture
from kb.model.text import Canonical
from kb.store import docs
from kb.store.content.files import ContentStore
from kb.store.content.originals import read_parsed
from kb.store.jobs import queue
from kb.store.kv import WriteTxn
from kb.store.meta import OCR, get_word, set_word
from kb.store.store import Store

if TYPE_CHECKING:
    from kb.intake.ingest.ingest import Ingestor
    from kb.intake.recognize.tesseract import Tesseract

PDF: Final = "application/pdf"
SLICE_MS: Final = 15_000
"""So long a job works; then it stands in line again, so that a stop or other jobs need not wait."""
PAGES_MAX: Final = 2_000
"""Later pages of a file are not read."""
_FILES_KEPT_MAX: Final = 64
_PAGE_MARK: Final = "\f"
_PAGE_BREAK: Final = "\n\f\n"


def waits(doc: Doc, engine: str) -> bool:
    """Whether pages of a doc have no text, and this engine has not looked at them."""
    coverage = doc.coverage
    if coverage is None or doc.status != "active":
        return False
    if doc.mime != PDF and not is_picture(doc.mime):
        return False
    # What was recognised by another engine counts as a page without text.
    return coverage.ocr != engine and bool(coverage.lacks_text or coverage.ocr_pages)


def stub_of(scan: Scanned, title: str) -> Canonical:
    """What a file of pictures is until they are read: its name, and how many pages it has."""
    return Canonical(
        markdown=f"{title}\n",
        title=title,
        mime=PDF,
        coverage=Coverage(pages=scan.pages, pages_with_text=0),
    )


def request_ocr(txn: WriteTxn, store: Store, doc: Doc) -> None:
    """Add a job that reads a doc's pages without text."""
    key = queue.dedupe_key("ocr", doc.doc_id)
    queue.enqueue(txn, store.clock, "ocr", doc.doc_id, key=key)


def follow_ocr(store: Store, engine: str) -> int:
    """Have docs that were there before the engine read by it; returns how many will be.

    `engine` is its fingerprint, empty where there is none. A look at all docs happens only when
    it is another one than the last time.
    """
    with store.read() as txn:
        if (get_word(txn, OCR) or "") == engine:
            return 0
    with store.write() as txn:
        set_word(txn, OCR, engine)
        found = [doc for doc in docs.all_latest(txn) if engine and waits(doc, engine)]
        for doc in found:
            request_ocr(txn, store, doc)
    return len(found)


class ScanHandler:
    """Handles ocr jobs for one home. What it has read of a file it keeps in memory."""

    def __init__(
        self,
        store: Store,
        content: ContentStore,
        ingestor: "Callable[[], Ingestor]",
        parser: Callable[[], Parser],
        engine: "Callable[[], Tesseract | None]",
        *,
        slice_ms: int = SLICE_MS,
    ) -> None:
        self._store = store
        self._content = content
        self._ingestor = ingestor
        self._parser = parser
        self._engine = engine
        self._slice_ms = slice_ms
        self._lock = threading.Lock()
        self._read: OrderedDict[str, dict[int, str]] = OrderedDict()

    def work(self, claims: list[Claim]) -> None:
        """Do each job for a while; one that is not at its end is asked for again."""
        for claim in claims:
            try:
                self._work_or_fail(claim)
            except StaleToken:
                continue

    def _work_or_fail(self, claim: Claim) -> None:
        try:
            self._work_one(claim)
        except SourceError as error:
            with self._store.write() as txn:
                queue.fail(txn, self._store.clock, claim, error.reason, permanent=True)

    def _work_one(self, claim: Claim) -> None:
        engine = self._engine()
        with self._store.read() as txn:
            doc = docs.if_latest(txn, claim.job.doc_id)
        if engine is None or doc is None or not waits(doc, engine.fingerprint):
            with self._store.write() as txn:
                queue.finish(txn, claim)
            return
        try:
            raw = read_parsed(self._content, doc)
        except Unreadable:
            # The next sync brings it as it is then, or removes it.
            with self._store.write() as txn:
                queue.finish(txn, claim)
            return
        name = os.path.basename(doc.source) or doc.source
        with self._parser() as parser:
            canonical, pages = _as_read(parser, doc, raw, name)
            blank = [n for n, text in enumerate(pages[:PAGES_MAX]) if not text]
            texts = self._texts(f"{doc.raw_sha256}:{engine.fingerprint}")
            until_ms = self._store.clock.lease_ms() + self._slice_ms
            for number in (n for n in blank if n not in texts):
                # At least one page each time, so that there is an end.
                texts[number] = _page_text(engine, parser, doc, raw, number)
                if self._store.clock.lease_ms() > until_ms:
                    break
        if any(number not in texts for number in blank):
            self._again(claim, doc)
            return
        self._commit(claim, doc, raw, _whole(canonical, pages, texts, engine.fingerprint))

    def _texts(self, key: str) -> dict[int, str]:
        with self._lock:
            texts = self._read.setdefault(key, {})
            self._read.move_to_end(key)
            if len(self._read) > _FILES_KEPT_MAX:
                self._read.popitem(last=False)
            return texts

    def _again(self, claim: Claim, doc: Doc) -> None:
        """End the job and ask for another, which goes on where this one ends."""
        with self._store.write() as txn:
            queue.finish(txn, claim)
            request_ocr(txn, self._store, doc)

    def _commit(self, claim: Claim, doc: Doc, raw: bytes, canonical: Canonical) -> None:
        ingestor = self._ingestor()
        request = read_anew(doc, raw, canonical, doc.canonicalizer)
        staged = ingestor.stage(request)
        ingestor.commit([staged], first=lambda txn: queue.finish(txn, claim))


def _as_read(parser: Parser, doc: Doc, raw: bytes, name: str) -> tuple[Canonical, list[str]]:
    """The doc as its parser reads it without OCR, and the text of each page."""
    source = CanonicalizeInput(data=raw, mime=doc.mime, name=name, charset=doc.charset)
    try:
        canonical = parser.parse(source)
    except Scanned as scan:
        stub = msgspec.structs.replace(stub_of(scan, doc.title), date=doc.date)
        return stub, [""] * scan.pages
    if is_picture(doc.mime):
        return canonical, [""]
    return canonical, [page.strip("\n") for page in canonical.markdown.split(_PAGE_MARK)]


def _page_text(engine: "Tesseract", parser: Parser, doc: Doc, raw: bytes, number: int) -> str:
    """The text of one page; empty for one that cannot be drawn, takes too long, or is noise.

    Raises Unsupported where no page could be read: a language is not installed.
    """
    from kb.intake.canonicalize.pdf.noise import is_noise

    name = doc.source
    try:
        is_whole = is_picture(doc.mime)
        text = engine.read(raw if is_whole else parser.page_picture(raw, name, number), name)
    except Unparsable:
        return ""
    return "" if is_noise(text) else text


def _whole(canonical: Canonical, pages: list[str], texts: dict[int, str], engine: str) -> Canonical:
    """The doc with the texts that were recognised in their places."""
    filled = [text or texts.get(number, "") for number, text in enumerate(pages)]
    recognised = tuple(number + 1 for number, text in sorted(texts.items()) if text)
    before = canonical.coverage or Coverage(pages=len(pages), pages_with_text=0)
    coverage = Coverage(
        pages=before.pages,
        pages_with_text=sum(map(bool, filled)),
        ocr=engine,
        ocr_pages=recognised,
    )
    if not recognised:
        return msgspec.structs.replace(canonical, coverage=coverage)
    if is_picture(canonical.mime):
        filled = [f"{filled[0]}\n\n{canonical.markdown}"]
    markdown = _PAGE_BREAK.join(filled).rstrip("\n") + "\n"
    return msgspec.structs.replace(canonical, markdown=markdown, coverage=coverage, by_name=False)
