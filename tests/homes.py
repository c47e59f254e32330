"""A whole small home in a folder: real store, files and caches; a clock and a model of our own."""

import threading
from pathlib import Path

from fakes import FakeClock

from kb.intake.canonicalize import CanonicalizeInput, canonicalize, fingerprint_of
from kb.intake.embed.hashing import HashingEmbedder
from kb.intake.ingest.ingest import Ingestor
from kb.intake.ingest.request import FileStamp, IngestOptions, IngestRequest, StagedDoc
from kb.intake.worker.chunking import ChunkHandler
from kb.intake.worker.embedding import EmbedHandler
from kb.model.config import CompactSettings
from kb.model.doc import Doc
from kb.model.ids import DocId, Lsid, sha256_hex
from kb.model.job import JobKind
from kb.search.index.dense import DenseIndex
from kb.search.index.lexical_indexes import LexicalIndexes
from kb.store import docs
from kb.store.bucket.place import BucketPlace
from kb.store.bucket_content import BucketContent, use_bucket
from kb.store.content.database import DatabaseAddress
from kb.store.content.files import ContentFiles, ContentStore
from kb.store.content.layout import HomePaths
from kb.store.jobs import queue
from kb.store.store import Store
from kb.upkeep.check import CheckReport, HomeChecker
from kb.upkeep.compactor import Compactor, CompactReport

LEASE_MS = 60_000
WAIT_S = 5.0
DAY_MIN = 24 * 60


class SmallHome:
    """One home and everything that works on it, in this process."""

    def __init__(
        self,
        root: Path,
        address: DatabaseAddress | None = None,
        bucket: BucketPlace | None = None,
    ) -> None:
        """In a folder, with its store at `address` and large originals in `bucket` if given."""
        self.root = root
        self.clock = FakeClock()
        self.paths = HomePaths(root)
        self.paths.make()
        self.content: ContentStore
        if address is None:
            self.store = Store.open(self.paths.store, self.clock)
            self.content = ContentFiles(self.paths)
        else:
            self.store = Store.open_database(address, self.clock)
            self.content = BucketContent(self.store, self.paths)
        if bucket is not None:
            use_bucket(self.store, bucket)
        self.ingestor = Ingestor(self.store, self.content)
        self.embedder = HashingEmbedder(64)
        self.lexical = LexicalIndexes(self.paths.index / "lexical")
        self.dense = DenseIndex(
            self.paths.index / "dense", self.embedder.fingerprint, self.embedder.dim
        )
        self._stop = threading.Event()

    def close(self) -> None:
        self.lexical.close()
        self.dense.close()
        self.store.close()

    def request(self, name: str, text: str, title: str | None = None) -> IngestRequest:
        raw = text.encode()
        source = CanonicalizeInput(data=raw, mime="text/markdown", name=name)
        now_ms = self.clock.now_ms()
        return IngestRequest(
            lsid=Lsid(f"file:///notes/{name}"),
            source=f"/notes/{name}",
            kind="file",
            canonical=canonicalize(source),
            raw=raw,
            raw_sha256=sha256_hex(raw),
            extension="md",
            canonicalizer=fingerprint_of("text/markdown"),
            ingest_options=IngestOptions(title=title),
            stamp=FileStamp(size_bytes=len(raw), mtime_ns=1, ctime_ns=1, inode=1, taken_ms=now_ms),
        )

    def stage(self, name: str, text: str) -> StagedDoc:
        return self.ingestor.stage(self.request(name, text))

    def commit(self, staged: StagedDoc) -> DocId:
        return self.ingestor.commit([staged])[0].doc_id

    def put(self, name: str, text: str, title: str | None = None) -> Doc:
        """Take a doc in; its jobs wait."""
        doc_id = self.commit(self.ingestor.stage(self.request(name, text, title)))
        doc = self.doc(doc_id)
        assert doc is not None
        return doc

    def add(self, name: str, text: str, title: str | None = None) -> Doc:
        """Take a doc in and do its jobs."""
        doc = self.put(name, text, title)
        self.work()
        return doc

    def work(self, *kinds: JobKind) -> None:
        """Do every job of these kinds, in this thread."""
        chunking = ChunkHandler(self.store, self.content, lambda: self.embedder, 64, 8)
        embedding = EmbedHandler(self.store, lambda: self.embedder, self._stop)
        while True:
            with self.store.write() as txn:
                asked = kinds or ("chunk", "embed")
                claims = queue.claim(txn, self.clock, asked, limit=64, lease_ms=LEASE_MS)
            if not claims:
                return
            (chunking.work if claims[0].job.kind == "chunk" else embedding.work)(claims)

    def doc(self, doc_id: DocId) -> Doc | None:
        with self.store.read() as txn:
            return docs.get(txn, doc_id)

    def file(self, relative: str) -> Path:
        return self.root / relative

    def files(self) -> set[str]:
        """Content files that lie in the home."""
        found = (p for folder in ("raw", "md") for p in (self.root / folder).rglob("*"))
        return {p.relative_to(self.root).as_posix() for p in found if p.is_file()}

    def count(self, table: str) -> int:
        with self.store.read() as txn:
            return txn.count(table)

    def wait_min(self, minutes: int) -> None:
        self.clock.advance(minutes * 60_000)

    def compact(
        self, *, grace_min: int = 60, dry_run: bool = False, tombstone_days: int = 30
    ) -> CompactReport:
        settings = CompactSettings(tombstone_days=tombstone_days)
        compactor = Compactor(
            self.store, self.content, lambda: self.lexical, lambda: self.dense, settings
        )
        return compactor.run(grace_min=grace_min, dry_run=dry_run)

    def check(self, *, repair: bool = False) -> CheckReport:
        checker = HomeChecker(
            self.store,
            self.content,
            self.lexical,
            self.dense,
            self.embedder.fingerprint,
            self.embedder.dim,
        )
        return checker.run(repair=repair)

    def found(self, query: str) -> list[int]:
        """Numbers of the sources whose passages hold the query's words, sorted."""
        self.lexical.catch_up(self.store, wait_s=WAIT_S)
        with self.store.read() as txn:
            from kb.store import chunks

            hits = self.lexical.search(query, 50, docs.audiences(txn))
            passages = [chunks.get(txn, no) for no in hits.nos]
        return sorted({passage.source_no for passage in passages if passage})
