"""Whoever waits for jobs has them taken up at once, however long workers rest."""

import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from homes import SmallHome

from kb.intake.worker.pool import PoolModels, WorkerPool
from kb.intake.worker.settings import WorkerSettings
from kb.store.jobs import queue

REST_MS = 120_000
END_S = 30.0


@pytest.fixture
def home(tmp_path: Path) -> Iterator[SmallHome]:
    home = SmallHome(tmp_path / "home")
    yield home
    home.close()


def test_a_drain_wakes_those_who_rest(home: SmallHome) -> None:
    """Jobs that come while all workers rest are done when somebody waits for them."""
    settings = WorkerSettings(idle_ms=REST_MS, tokens_max=64, overlap_tokens=8)
    pool = WorkerPool(home.store, home.content, PoolModels(active=lambda: home.embedder), settings)
    pool.start()
    resting_s = time.monotonic() + END_S
    while len(pool._woken._waiters) < settings.threads:  # type: ignore[attr-defined]
        assert time.monotonic() < resting_s
        time.sleep(0.01)
    home.put("a.md", "# Tea\n\nGreen tea.")
    drain = threading.Thread(target=pool.drain)
    drain.start()
    end_s = time.monotonic() + END_S
    while left(home):
        assert time.monotonic() < end_s
        time.sleep(0.01)
    assert pool.shutdown()
    drain.join(timeout=END_S)
    assert (drain.is_alive(), pool.has_ended) == (False, True)


def left(home: SmallHome) -> int:
    """Jobs that are still to do or in hand."""
    with home.store.read() as txn:
        counts = queue.counts(txn)
    return counts.ready + counts.running
