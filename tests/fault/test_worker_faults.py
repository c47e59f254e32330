"""Jobs that cannot be done, workers that die of them, and clocks that are set."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import pytest
from child_processes import finished
from crash_rig import Rig
from fakes import FakeClock
from homes import SmallHome

from kb.errors import EmbedError
from kb.home.app import App
from kb.intake.embed.hashing import HashingEmbedder
from kb.intake.embed.protocol import FloatMatrix
from kb.intake.worker.pool import PoolModels, WorkerPool
from kb.intake.worker.settings import WorkerSettings
from kb.model.config import load
from kb.store.jobs import queue

WORDS: Final = ("quince", "medlar", "damson", "sorb")
POISON: Final = "hemlock"


def text(word: str) -> str:
    return f"# About {word}\n\nHere stands {word}, among words that all files have.\n"


@pytest.fixture
def rig(tmp_path: Path) -> Rig:
    return Rig(tmp_path)


# Clocks that are set.


def test_a_wall_clock_set_back_keeps_leases(tmp_path: Path) -> None:
    """Setting the wall clock, either way, neither ends a lease nor keeps it for longer."""
    home = SmallHome(tmp_path)
    home.put("note.md", text("quince"))
    for jump_ms in (-86_400_000, 2 * 86_400_000):
        with home.store.write() as txn:
            (claim,) = queue.claim(txn, home.clock, ("chunk",), limit=1, lease_ms=1_000)
            home.clock.jump(jump_ms)
            assert queue.reclaim(txn, home.clock) == []
            home.clock.advance(1_000)
            assert queue.reclaim(txn, home.clock) == [claim.job.job_id]
    home.work()
    assert home.check().sound
    home.close()


# Jobs that cannot be done.


class Choking(HashingEmbedder):
    """Cannot embed what holds POISON; refuses it with an error, or waits to be let on."""

    def __init__(self, *, poisoned: bool = True) -> None:
        super().__init__()
        self.poisoned = poisoned
        self.at_work = threading.Event()
        self.goes_on = threading.Event()
        self.goes_on.set()

    def embed_documents(self, texts: Sequence[str]) -> FloatMatrix:
        self.at_work.set()
        assert self.goes_on.wait(240)
        if self.poisoned and any(POISON in said for said in texts):
            raise EmbedError("not a number in vector 0")
        return super().embed_documents(texts)


@contextmanager
def working(app: App, embedder: Choking) -> Iterator[WorkerPool]:
    settings = WorkerSettings(idle_ms=10)
    pool = WorkerPool(app.store, app.content, PoolModels(active=lambda: embedder), settings)
    pool.start()
    try:
        yield pool
    finally:
        assert pool.shutdown()


def app_of(rig: Rig, clock: FakeClock) -> App:
    return App.open(rig.home, load([], rig.cfg), clock=clock)


def poisoned(rig: Rig) -> None:
    rig.write({f"{word}.md": text(word) for word in (*WORDS, POISON)})
    assert rig.call("add", "-r", rig.sources, "--no-wait").code == 0


def retried(app: App, clock: FakeClock, embedder: Choking) -> None:
    """Work, and let every back-off pass, until nothing waits for another try."""
    with working(app, embedder) as pool:
        while True:
            pool.drain()
            with app.store.read() as txn:
                wait_ms = queue.due_in_ms(txn, clock)
            if wait_ms is None:
                return
            clock.advance(wait_ms)


def test_a_poisonous_doc_stops_at_the_last_attempt(rig: Rig) -> None:
    """It is tried so often and no more, is named with its reason, and keeps nobody else back."""
    poisoned(rig)
    clock, embedder = FakeClock(), Choking()
    with app_of(rig, clock) as app:
        retried(app, clock, embedder)
    doc = rig.docs()[f"{POISON}.md"]["doc_id"]
    stats = rig.stats()
    assert stats["jobs"] == {"ready": 0, "running": 0, "failed": 1}
    (letter,) = stats["dead_letters"]
    assert (letter["doc_id"], letter["kind"], letter["attempts"]) == (doc, "embed", 5)
    assert letter["reason"] == "not a number in vector 0"
    assert stats["ledger"] == {"indexing_complete": len(WORDS), "pending": 1}
    # By words it is found all the same.
    everything = (*WORDS, POISON)
    assert rig.found(everything) == {word: [f"{word}.md"] for word in everything}
    rig.check()


def test_a_doc_that_is_tried_again(rig: Rig) -> None:
    """`kb worker --retry-failed` brings a dead letter back, and with its cause gone it is done."""
    poisoned(rig)
    clock, embedder = FakeClock(), Choking()
    with app_of(rig, clock) as app:
        retried(app, clock, embedder)
    assert rig.stats()["jobs"]["failed"] == 1
    rig.drain("--retry-failed")
    rig.check()


# A worker that a text kills; each process takes up what the one before left.
_DEADLY: Final = """
import os, sys, time
from pathlib import Path
from crash_rig import CFG
from kb.home.app import App
from kb.model.config import load
from kb.intake.embed.hashing import HashingEmbedder
from kb.intake.worker.pool import PoolModels, WorkerPool
from kb.intake.worker.settings import WorkerSettings

class Deadly(HashingEmbedder):
    def embed_documents(self, texts):
        if any("hemlock" in text for text in texts):
            time.sleep(0.05)
            os._exit(66)
        return super().embed_documents(texts)

with App.open(Path(sys.argv[1]), load([], CFG)) as app:
    models, settings = PoolModels(active=Deadly), WorkerSettings(idle_ms=10, threads=4)
    pool = WorkerPool(app.store, app.content, models, settings)
    pool.start()
    pool.drain()
    pool.shutdown()
"""


def test_a_doc_that_kills_its_worker(rig: Rig) -> None:
    """It takes so many workers with it and no more, and no other doc comes to harm by it."""
    poisoned(rig)
    codes = [finished(_DEADLY, rig.home).returncode for _ in range(6)]
    assert codes == [66] * 5 + [0]
    stats = rig.stats()
    (letter,) = stats["dead_letters"]
    assert letter["doc_id"] == rig.docs()[f"{POISON}.md"]["doc_id"]
    assert (letter["attempts"], letter["reason"]) == (5, queue.LEASE_LOST)
    assert stats["ledger"] == {"indexing_complete": len(WORDS), "pending": 1}
    rig.check()


def test_a_shutdown_is_bounded(rig: Rig) -> None:
    """With a batch in hand it returns after its time, and says whether all was given back."""
    poisoned(rig)
    with App.open(rig.home, load([], rig.cfg)) as app:
        embedder = Choking(poisoned=False)
        embedder.goes_on.clear()
        pool = WorkerPool(
            app.store, app.content, PoolModels(active=lambda: embedder), WorkerSettings(idle_ms=10)
        )
        pool.start()
        assert embedder.at_work.wait(120)
        assert not pool.shutdown(0.3)
        threading.Timer(0.3, embedder.goes_on.set).start()
        assert pool.shutdown(120)
    rig.drain()
    rig.check()
