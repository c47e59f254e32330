"""What nodes keep of themselves in a home that machines share."""

from pathlib import Path

import pytest
from fakes import FakeClock

from kb.model.node import FOLLOWER_TTL_MS, WORKER_TTL_MS
from kb.store import log
from kb.store.memory import MemoryEnvironment
from kb.store.nodes import WorkerReport, follow, live_followers, live_workers
from kb.store.records import FOLLOWERS, WORKERS
from kb.store.store import Store
from kb.upkeep.compactor.caches import truncate_log


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture
def store(clock: FakeClock) -> Store:
    store = Store(MemoryEnvironment(), clock)
    store.node = "ada"
    return store


def fill_log(store: Store, entries: int) -> None:
    with store.write() as txn:
        for number in range(entries):
            log.append(txn, [number + 1], words=True)


def first_seq(store: Store) -> int:
    with store.read() as txn:
        return log.first_seq(txn)


def test_the_log_is_kept_for_the_slowest_cache(
    store: Store, clock: FakeClock, tmp_path: Path
) -> None:
    """It is cut behind the slowest live one of another node, and no more once that is gone."""
    fill_log(store, 10)
    store.node = "bob"
    assert follow(store, "/caches/words", 4)
    assert follow(store, "/caches/vectors", 6)
    store.node = "ada"
    assert follow(store, str(tmp_path / "words"), 2)
    assert truncate_log(store, 9, tmp_path) == 3
    assert first_seq(store) == 4
    clock.advance(FOLLOWER_TTL_MS + 1)
    assert follow(store, str(tmp_path / "words"), 9)
    with store.read() as txn:
        assert [row.node for row in live_followers(txn, clock.now_ms())] == ["ada"]
        assert txn.count(FOLLOWERS.name) == 1
    assert truncate_log(store, 9, tmp_path) == 5


def test_a_home_in_a_folder_has_no_rows(store: Store) -> None:
    """There nothing registers, and the log is cut as far as its own caches are."""
    store.node = ""
    fill_log(store, 3)
    assert not follow(store, "/caches/words", 1)
    with store.write() as txn:
        WorkerReport(store).add(txn, "model", 5)
    with store.read() as txn:
        assert (txn.count(FOLLOWERS.name), txn.count(WORKERS.name)) == (0, 0)
    assert truncate_log(store, 3, Path("/caches")) == 2


def test_workers_say_what_they_embed(store: Store, clock: FakeClock) -> None:
    """Their row has the texts since they last had nothing to do, and goes when they are gone."""
    report = WorkerReport(store)
    report.begin()
    for _ in range(3):
        clock.advance(6_000)
        with store.write() as txn:
            report.add(txn, "model", 64)
    with store.read() as txn:
        (row,) = live_workers(txn, clock.now_ms())
    assert (row.node, row.texts, row.seen_ms - row.since_ms) == ("ada", 192, 18_000)
    clock.advance(WORKER_TTL_MS + 1)
    with store.read() as txn:
        assert live_workers(txn, clock.now_ms()) == []
    report.begin()
    with store.write() as txn:
        report.add(txn, "model", 8)
    with store.read() as txn:
        (row,) = live_workers(txn, clock.now_ms())
        assert (row.texts, txn.count(WORKERS.name)) == (8, 1)
