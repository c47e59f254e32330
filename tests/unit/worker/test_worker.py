"""Jobs: claimed, done outside any transaction, committed with their result."""

# Long because each test is another way in which work goes on or ends.

import threading
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from homes import LEASE_MS, SmallHome

from kb.errors import EmbedError
from kb.intake.embed.hashing import HashingEmbedder
from kb.intake.embed.protocol import FloatMatrix
from kb.intake.worker.chunking import ChunkHandler
from kb.intake.worker.embedding import TEXTS_PER_LOOK, EmbedHandler
from kb.intake.worker.pool import PoolModels, WorkerPool
from kb.intake.worker.settings import WorkerSettings
from kb.intake.worker.stages import follow_stages
from kb.model.doc import Doc
from kb.model.embedder import EmbedderChoice, EmbedderSet, EmbedderSpec
from kb.model.job import Claim
from kb.model.text import Chunk
from kb.store import chunks, docs
from kb.store.jobs import queue
from kb.store.records import LEDGER


class Counting(HashingEmbedder):
    """Counts the texts that it embeds; may be made to fail, or to be slow."""

    def __init__(self, dim: int = 64, name: str = "counting") -> None:
        super().__init__(dim)
        self.name = name
        self.texts: list[str] = []
        self.batches: list[int] = []
        self.bad = ""
        self.started = threading.Event()
        self.goes_on = threading.Event()
        self.goes_on.set()

    @property
    def fingerprint(self) -> str:
        return f"{self.name}:{self.dim}"

    def embed_documents(self, texts: Sequence[str]) -> FloatMatrix:
        self.started.set()
        assert self.goes_on.wait(240)
        self.texts += texts
        self.batches.append(len(texts))
        vectors = super().embed_documents(texts)
        if self.bad == "nan":
            vectors = np.full_like(vectors, np.nan)
        elif self.bad == "size":
            vectors = vectors[:, :-1]
        elif self.bad == "error":
            raise EmbedError("the model is out of sorts")
        return vectors


class WorkHome(SmallHome):
    """A home whose model counts."""

    embedder: Counting  # type: ignore[assignment]

    def __init__(self, root: Path) -> None:
        super().__init__(root)
        self.embedder = Counting()
        self.next: Counting | None = None

    def models(self) -> EmbedderSet:
        choice = EmbedderChoice(kind="hashing")
        return EmbedderSet(active=spec_of(self.embedder), settings=choice)

    def passages(self, doc: Doc) -> list[Chunk]:
        with self.store.read() as txn:
            return chunks.of_source(txn, doc.source_no)

    def state(self, doc: Doc) -> str:
        with self.store.read() as txn:
            entry = LEDGER.get(txn, doc.doc_id.encode())
        assert entry is not None
        return entry.state

    def enqueue(self, kind: str, doc: Doc) -> None:
        model = self.embedder.fingerprint if kind == "embed" else ""
        with self.store.write() as txn:
            key = queue.dedupe_key(kind, doc.doc_id, model)  # type: ignore[arg-type]
            queue.enqueue(txn, self.clock, kind, doc.doc_id, key=key)  # type: ignore[arg-type]

    def claims(self, kind: str) -> list[Claim]:
        with self.store.write() as txn:
            return queue.claim(txn, self.clock, (kind,), limit=64, lease_ms=LEASE_MS)  # type: ignore[arg-type]

    def missing(self, model: str) -> int:
        with self.store.read() as txn:
            return sum(
                not chunks.has_vector(txn, model, chunk.text_hash)
                for doc in docs.all_latest(txn)
                for chunk in chunks.of_source(txn, doc.source_no)
            )

    def pool(self, **settings: int) -> WorkerPool:
        return WorkerPool(
            self.store,
            self.content,
            PoolModels(active=lambda: self.embedder, next=lambda: self.next),
            WorkerSettings(idle_ms=20, tokens_max=64, overlap_tokens=8, **settings),
        )


def spec_of(embedder: Counting) -> EmbedderSpec:
    choice = EmbedderChoice(kind="hashing", model=embedder.name)
    return EmbedderSpec(choice=choice, fingerprint=embedder.fingerprint, dim=embedder.dim)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[WorkHome]:
    home = WorkHome(tmp_path / "home")
    yield home
    home.close()


def paragraphs(count: int, changed: int = -1) -> str:
    return "# Long\n\n" + "\n\n".join(
        f"Paragraph {n} {'anew' if n == changed else 'once'} "
        + " ".join(f"word{n}x{m}" for m in range(50))
        for n in range(count)
    )


def test_idempotent_rerun_gives_the_same_passages(home: WorkHome) -> None:
    """The chunk job run again gives the same passages, ids and numbers, and no new vectors."""
    doc = home.add("a.md", paragraphs(6))
    before, embedded = home.passages(doc), list(home.embedder.texts)
    home.enqueue("chunk", doc)
    home.work()
    assert home.passages(doc) == before
    assert home.embedder.texts == embedded
    assert home.state(doc) == "indexing_complete"


def test_rerun_after_the_ledger_advanced_is_no_error(home: WorkHome) -> None:
    """Either job may run again on a doc that is done: nothing fails and nothing changes."""
    doc = home.add("a.md", paragraphs(3))
    assert home.state(doc) == "indexing_complete"
    before = home.passages(doc), home.count("vectors")
    for kind in ("chunk", "embed"):
        home.enqueue(kind, doc)
        home.work()
    with home.store.read() as txn:
        assert queue.counts(txn) == queue.JobCounts(ready=0, running=0, failed=0)
    assert (home.passages(doc), home.count("vectors")) == before
    assert home.state(doc) == "indexing_complete"


def test_passage_ids_do_not_depend_on_version(home: WorkHome) -> None:
    """The same file in another home, or at another version, has the same passage ids."""
    first = [chunk.chunk_id for chunk in home.passages(home.add("a.md", paragraphs(4)))]
    home.add("a.md", "something else")
    again = [chunk.chunk_id for chunk in home.passages(home.add("a.md", paragraphs(4)))]
    assert again == first
    other = [chunk.chunk_id for chunk in home.passages(home.add("b.md", paragraphs(4)))]
    assert set(other).isdisjoint(first)


def test_passage_ids_are_the_same_in_another_home(home: WorkHome, tmp_path: Path) -> None:
    """Nothing of the home, the clock or the order of work enters a passage's id."""
    home.add("first.md", "another doc before it")
    mine = [chunk.chunk_id for chunk in home.passages(home.add("a.md", paragraphs(4)))]
    other = WorkHome(tmp_path / "other")
    try:
        other.clock.jump(86_400_000)
        doc = other.add("a.md", paragraphs(4))
        assert [chunk.chunk_id for chunk in other.passages(doc)] == mine
    finally:
        other.close()


def test_an_edit_of_one_paragraph_embeds_only_what_it_touched(home: WorkHome) -> None:
    """Of twenty paragraphs one is edited: its passage and the one it overlaps into, no other."""
    doc = home.add("a.md", paragraphs(20))
    before = {chunk.chunk_id for chunk in home.passages(doc)}
    home.embedder.texts.clear()
    edited = home.add("a.md", paragraphs(20, changed=10))
    after = {chunk.chunk_id for chunk in home.passages(edited)}
    assert 1 <= len(home.embedder.texts) <= 3
    assert len(after - before) == len(home.embedder.texts)
    assert len(before & after) >= len(before) - 3


def test_equal_text_is_embedded_once(home: WorkHome) -> None:
    """The same text in many docs costs one vector."""
    for n in range(5):
        home.put(f"{n}.md", "# Same\n\nthe very same words")
    home.work()
    assert len(home.embedder.texts) == 1
    assert home.count("vectors") == 1


def test_a_new_title_embeds_anew(home: WorkHome) -> None:
    """The title stands in front of what is embedded, so a new one is embedded."""
    doc = home.add("a.md", "# Tea\n\ngreen words")
    home.embedder.texts.clear()
    home.add("a.md", "# Tea\n\ngreen words", title="Chai")
    assert home.embedder.texts == ["Chai > Tea\n# Tea\n\ngreen words"]
    assert len(home.passages(doc)) == 1
    assert home.missing(home.embedder.fingerprint) == 0


@pytest.mark.parametrize("bad", ["nan", "size", "error"])
def test_what_is_no_vector_is_an_error_and_no_row(home: WorkHome, bad: str) -> None:
    """NaN, a wrong size or an error: the job fails with its reason, and no vector is kept."""
    doc = home.put("a.md", "# Tea\n\nwords")
    home.embedder.bad = bad
    home.work()
    assert home.count("vectors") == 0
    assert home.state(doc) == "pending"
    with home.store.read() as txn:
        (job,) = queue.pending(txn, "embed")
    assert job.attempts == 1
    assert job.last_error
    home.embedder.bad = ""
    home.clock.advance(600_000)
    home.work()
    assert home.missing(home.embedder.fingerprint) == 0
    assert home.state(doc) == "indexing_complete"


def test_a_job_that_keeps_failing_ends_with_its_reason(home: WorkHome) -> None:
    """After its attempts a job is a dead letter that says why; it can be tried again."""
    home.put("a.md", "# Tea\n\nwords")
    home.embedder.bad = "error"
    for _ in range(5):
        home.work()
        home.clock.advance(600_000)
    with home.store.read() as txn:
        (dead,) = queue.failed(txn)
    assert dead.last_error == "the model is out of sorts"
    home.embedder.bad = ""
    with home.store.write() as txn:
        assert queue.retry_failed(txn) == 1
    home.work()
    assert home.missing(home.embedder.fingerprint) == 0


def test_a_missing_file_fails_its_own_job_alone(home: WorkHome) -> None:
    """A doc whose markdown is gone cannot be cut; the docs claimed with it are."""
    bad, good = home.put("a.md", "lost words"), home.put("b.md", "kept words")
    home.file(bad.md_path).unlink()
    home.work()
    assert len(home.passages(good)) == 1
    with home.store.read() as txn:
        (job,) = queue.pending(txn, "chunk")
    assert job.doc_id == bad.doc_id
    assert job.last_error


def test_another_chunker_cuts_anew(home: WorkHome) -> None:
    """Under a new chunker every doc is cut again; what is cut as before costs no vector."""
    doc = home.add("a.md", paragraphs(3))
    models, before = home.models(), home.passages(doc)
    follow_stages(home.store, chunker="1", models=models)
    assert follow_stages(home.store, chunker="2", models=models) == 1
    home.embedder.texts.clear()
    home.work()
    assert home.passages(doc) == before
    assert home.embedder.texts == []


def test_a_superseded_doc_is_not_cut(home: WorkHome) -> None:
    """A job of a version that was overtaken does nothing, and is done."""
    old = home.put("a.md", "old words")
    claims = home.claims("chunk")
    new = home.put("a.md", "new words")
    ChunkHandler(home.store, home.content, lambda: home.embedder, 64, 8).work(claims)
    assert home.passages(new) == []
    home.work()
    assert [chunk.text.strip() for chunk in home.passages(new)] == ["new words"]
    assert home.found("old") == []
    assert home.state(old) == "indexing_complete"


def test_a_lost_lease_writes_nothing(home: WorkHome) -> None:
    """A worker whose lease ran out and was taken by another cannot write passages or finish."""
    doc = home.put("a.md", "words")
    lost = home.claims("chunk")
    home.clock.advance(LEASE_MS + 1)
    with home.store.write() as txn:
        queue.reclaim(txn, home.clock)
    home.claims("chunk")
    ChunkHandler(home.store, home.content, lambda: home.embedder, 64, 8).work(lost)
    assert home.passages(doc) == []
    with home.store.read() as txn:
        assert queue.counts(txn).running == 1


def test_vectors_are_made_longest_first_in_bounded_batches(home: WorkHome) -> None:
    """Between two looks at whether to stop, so many texts are embedded and no more."""
    for n in range(150):
        home.put(f"{n}.md", f"# N\n\nnote{n} " + "word " * (n % 7))
    home.work("chunk")
    home.work("embed")
    assert max(home.embedder.batches) <= TEXTS_PER_LOOK
    assert len(home.embedder.texts) == 150


def test_stopping_keeps_what_is_embedded_and_gives_the_jobs_back(home: WorkHome) -> None:
    """Told to stop in the middle, the worker commits what it has; the rest waits, uncounted."""
    for n in range(150):
        home.put(f"{n}.md", f"# N\n\nnote {n}")
    home.work("chunk")
    stop = threading.Event()

    class Stopping(Counting):
        def embed_documents(self, texts: Sequence[str]) -> FloatMatrix:
            stop.set()
            return super().embed_documents(texts)

    home.embedder = Stopping()
    claims = home.claims("embed")
    EmbedHandler(home.store, lambda: home.embedder, stop).work(claims)
    kept = home.count("vectors")
    assert 0 < kept <= TEXTS_PER_LOOK
    with home.store.read() as txn:
        assert queue.counts(txn).running == 0
        assert {job.attempts for job in queue.pending(txn, "embed")} == {0}
    home.embedder = Counting()
    home.work()
    assert home.count("vectors") == 150
    assert len(home.embedder.texts) == 150 - kept


def test_the_pool_drains(home: WorkHome) -> None:
    """Draining returns when every job is done, by however many threads."""
    added = [home.put(f"{n}.md", f"# N\n\nnote {n}") for n in range(100)]
    pool = home.pool(threads=3)
    pool.start()
    pool.drain()
    assert pool.shutdown(wait_s=120)
    assert home.missing(home.embedder.fingerprint) == 0
    assert {home.state(doc) for doc in added} == {"indexing_complete"}


def test_shutdown_exits_in_bounded_time(home: WorkHome) -> None:
    """An idle pool ends; a busy one is waited for so long, and it says that it was busy."""
    idle = home.pool()
    idle.start()
    assert idle.shutdown(wait_s=120)
    home.put("a.md", "words")
    home.embedder.goes_on.clear()
    busy = home.pool()
    busy.start()
    assert home.embedder.started.wait(120)
    assert not busy.shutdown(wait_s=0.1)
    home.embedder.goes_on.set()
    assert busy.shutdown(wait_s=120)


def test_a_surprise_in_one_job_does_not_end_the_pool(
    home: WorkHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An exception that nobody foresaw fails the jobs in hand with its name; work goes on."""
    whole = ChunkHandler.work
    calls: list[int] = []

    def work(self: ChunkHandler, claims: list[Claim]) -> None:
        calls.append(len(claims))
        if len(calls) == 1:
            raise ZeroDivisionError("surprise")
        whole(self, claims)

    monkeypatch.setattr(ChunkHandler, "work", work)
    home.put("a.md", "words")
    pool = home.pool(threads=1)
    pool.start()
    deadline = time.monotonic() + 120
    while not calls and time.monotonic() < deadline:
        time.sleep(0.01)
    pool.drain()
    with home.store.read() as txn:
        (job,) = queue.pending(txn, "chunk")
    assert job.last_error == "ZeroDivisionError: surprise"
    home.clock.advance(600_000)
    pool.drain()
    pool.shutdown(wait_s=120)
    assert home.missing(home.embedder.fingerprint) == 0
    assert home.count("jobs") == 0


class _Turns:
    """A lock that says who waits for it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.waiting = threading.Semaphore(0)

    def __enter__(self) -> None:
        self.waiting.release()
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


def test_threads_embed_the_text_of_two_docs_once(home: WorkHome) -> None:
    """A text that two batches miss at the same moment is embedded by the first, for both."""
    same = paragraphs(4)
    found = [home.put(name, same) for name in ("a.md", "b.md")]
    home.work("chunk")
    handler = EmbedHandler(home.store, lambda: home.embedder, threading.Event())
    turns = _Turns()
    handler._one_at_a_time = turns  # type: ignore[assignment]
    home.embedder.goes_on.clear()
    threads = [
        threading.Thread(target=handler.work, args=([claim],)) for claim in home.claims("embed")
    ]
    assert len(threads) == 2
    for thread in threads:
        thread.start()
        assert turns.waiting.acquire(timeout=240)
    home.embedder.goes_on.set()
    for thread in threads:
        thread.join()
    assert len(home.embedder.texts) == len(set(home.embedder.texts)) > 1
    assert [home.state(doc) for doc in found] == ["indexing_complete"] * 2
    assert home.missing(home.embedder.fingerprint) == 0
    assert not handler._uncommitted
