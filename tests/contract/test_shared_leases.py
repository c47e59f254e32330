"""Leases of a home in a database are measured by the server's clock, whatever a machine's says."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from postgres_server import PostgresServer

from kb.errors import StaleToken
from kb.model.ids import DocId
from kb.model.job import Claim
from kb.store.content.database import DatabaseAddress
from kb.store.jobs import queue
from kb.store.postgres.postgres_env import PostgresEnvironment
from kb.store.postgres.server_clock import ServerTime
from kb.store.store import Store

LEASE_MS = 60_000
TEN_MINUTES_MS = 600_000


@contextmanager
def machine(address: DatabaseAddress, booted_ms: int) -> Iterator[Store]:
    """The home on a machine that was started some time ago, or has a clock that is off."""
    server_time = ServerTime(lambda: time.monotonic_ns() // 1_000_000 - booted_ms)
    env = PostgresEnvironment(address, server_time=server_time)
    with Store(env, env.clock) as store:
        yield store


def claim(store: Store, lease_ms: int = LEASE_MS) -> list[Claim]:
    with store.write() as txn:
        kinds = ("chunk",)
        return queue.claim(txn, store.clock, kinds, limit=1, lease_ms=lease_ms, holder="a/1/1")


def test_a_claim_of_another_machine_is_left(postgres: PostgresServer) -> None:
    """It is neither of an earlier boot nor expired; its holder renews it and finishes."""
    address = postgres.new_address()
    with machine(address, 0) as one, machine(address, TEN_MINUTES_MS) as two:
        with one.write() as txn:
            queue.enqueue(txn, one.clock, "chunk", DocId("d1"), key="chunk:d1")
        (held,) = claim(one)
        for store in (two, one, two):
            assert claim(store) == []
            with store.write() as txn:
                assert queue.reclaim(txn, store.clock) == []
        with one.write() as txn:
            queue.renew(txn, one.clock, held)
        with two.read() as txn:
            job = queue.get(txn, held.job.job_id)
            assert job is not None
            assert 0 < job.deadline_ms - two.clock.lease_ms() <= LEASE_MS
        with one.write() as txn:
            queue.finish(txn, held)


def test_a_lease_that_ended_is_free_for_all(postgres: PostgresServer) -> None:
    """Any machine gives the job out again, and who held it is refused."""
    address = postgres.new_address()
    with machine(address, 0) as one, machine(address, -TEN_MINUTES_MS) as two:
        with one.write() as txn:
            queue.enqueue(txn, one.clock, "chunk", DocId("d1"), key="chunk:d1")
        (late,) = claim(one, lease_ms=1)
        time.sleep(0.01)
        with two.write() as txn:
            assert queue.reclaim(txn, two.clock) == [late.job.job_id]
        (held,) = claim(two)
        assert held.token == late.token + 1
        with pytest.raises(StaleToken), one.write() as txn:
            queue.finish(txn, late)
        with two.write() as txn:
            queue.finish(txn, held)


def test_all_machines_say_one_time(postgres: PostgresServer) -> None:
    """What is stored is stamped by the server's clock; files keep that of the machine."""
    address = postgres.new_address()
    with machine(address, 0) as one, machine(address, TEN_MINUTES_MS) as two:
        for store in (one, two):
            with store.read():
                pass
        assert abs(one.clock.now_ms() - two.clock.now_ms()) < 5_000
        assert abs(one.clock.file_ms() - time.time() * 1000) < 5_000
