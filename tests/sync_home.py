"""A home whose sources are kept current: real files and store, wired by App, a clock of our own."""

import atexit
import functools
import threading
from collections.abc import Sequence
from pathlib import Path

from fakes import FakeClock

from kb.home.app import App
from kb.intake.canonicalize import Parser
from kb.intake.embed.hashing import HashingEmbedder
from kb.intake.embed.protocol import FloatMatrix
from kb.intake.ingest.request import IngestOptions
from kb.intake.sync.add import AddOptions
from kb.intake.sync.origins import list_origins, resolve_origin
from kb.intake.sync.report import AddReport, SourceLine, SyncReport
from kb.intake.sync.sync_all import SyncOptions
from kb.intake.worker.chunking import ChunkHandler
from kb.intake.worker.embedding import EmbedHandler
from kb.model.config import EmbedSettings, FetchSettings, Settings
from kb.model.doc import OPERATOR, Doc
from kb.model.origin import Origin
from kb.model.search import Freshness
from kb.search.freshness import freshness_of
from kb.store import chunks, docs
from kb.store.jobs import queue

LEASE_MS = 60_000
# Later than any file of a test was written, so that its stamp can be trusted at once.
LATE_MS = 4_000_000_000_000
OUTCOMES = ("added", "updated", "unchanged", "resurrected", "skipped", "failed")


@functools.cache
def shared_parser() -> Parser:
    """One for all homes of this process, since its child takes half a second to start."""
    parser = Parser()
    atexit.register(parser.close)
    return parser


class CountingEmbedder(HashingEmbedder):
    """Counts the texts that it embedded."""

    embedded = 0

    def embed_documents(self, texts: Sequence[str]) -> FloatMatrix:
        self.embedded += len(texts)
        return super().embed_documents(texts)


class SyncHome:
    """One home, and what `add`, `sync-all` and the workers do in it, in this process."""

    def __init__(self, root: Path) -> None:
        self.clock = FakeClock(now_ms=LATE_MS)
        settings = Settings(
            embed=EmbedSettings(kind="hashing"),
            fetch=FetchSettings(allow=("127.0.0.1",), total_s=5.0, connect_s=2.0),
        )
        self.app = App.open(root / "home", settings, clock=self.clock)
        self.embedder = CountingEmbedder()
        self.parser = shared_parser()
        self._stop = threading.Event()

    def close(self) -> None:
        self.app.close()

    def add(
        self,
        *sources: object,
        ext: tuple[str, ...] = ("md", "txt"),
        ingest_options: IngestOptions = IngestOptions(),  # noqa: B008  frozen
        dry_run: bool = False,
    ) -> AddReport:
        options = AddOptions(
            recursive=True,
            extensions=ext,
            ingest_options=ingest_options,
            home=self.app.paths.root,
            dry_run=dry_run,
        )
        report = self.app.adder(self.parser, options).add([str(source) for source in sources])
        self.work()
        return report

    def sync(self, **options: object) -> SyncReport:
        said = {"interval_min": 0, "home": self.app.paths.root, **options}
        report = self.app.syncer(self.parser, SyncOptions(**said)).run()
        for part in (report, *report.sources):
            assert part.scanned == sum(getattr(part, name) for name in OUTCOMES)
        self.work()
        return report

    def line(self, **options: object) -> SourceLine:
        """Sync what must be one source."""
        (line,) = self.sync(**options).sources
        return line

    def work(self) -> None:
        """Do every job, in this thread."""
        chunking = ChunkHandler(self.app.store, self.app.content, lambda: self.embedder, 64, 8)
        embedding = EmbedHandler(self.app.store, lambda: self.embedder, self._stop)
        while True:
            with self.app.store.write() as txn:
                claims = queue.claim(
                    txn, self.clock, ("chunk", "embed"), limit=64, lease_ms=LEASE_MS
                )
            if not claims:
                return
            (chunking.work if claims[0].job.kind == "chunk" else embedding.work)(claims)

    def origins(self) -> list[Origin]:
        with self.app.store.read() as txn:
            return list_origins(txn)

    def origin(self, place: object) -> Origin:
        with self.app.store.read() as txn:
            return resolve_origin(txn, str(place), OPERATOR)

    def docs(self, *, status: str = "active") -> dict[str, Doc]:
        """Newest docs of a status, by the place they are at."""
        with self.app.store.read() as txn:
            return {doc.source: doc for doc in docs.all_latest(txn) if doc.status == status}

    def names(self) -> set[str]:
        """File names of the active docs."""
        return {Path(source).name for source in self.docs()}

    def passages(self, doc: Doc) -> list[str]:
        with self.app.store.read() as txn:
            numbers = chunks.numbers_of(txn, doc.source_no)
            return [passage.chunk_id for no in numbers if (passage := chunks.get(txn, no))]

    def freshness(self, doc: Doc) -> Freshness:
        with self.app.store.read() as txn:
            return freshness_of(txn, doc, self.app.store)

    def vectors(self) -> int:
        with self.app.store.read() as txn:
            return txn.count("vectors")

    def is_sound(self) -> bool:
        report = self.app.checker.run(repair=False)
        assert report.findings == ()
        return report.sound
