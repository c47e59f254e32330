"""The change log."""

import pytest
from msgspec import structs

from kb.model.job import LogEntry
from kb.store import log
from kb.store.codec import u64
from kb.store.kv import WriteTxn
from kb.store.memory import MemoryEnvironment


def fill(txn: WriteTxn, count: int) -> None:
    for number in range(1, count + 1):
        log.append(txn, [number], words=True)


def seqs(txn: WriteTxn, watermark: int) -> list[int]:
    return [seq for seq, _ in log.since(txn, watermark)]


def test_entries_come_in_order_with_what_they_said() -> None:
    """Each append is one entry under the next number, saying which caches must look."""
    with MemoryEnvironment().write() as txn:
        log.append(txn, [3, 1], words=True)
        log.append(txn, iter([2]), vectors=True)
        assert [(seq, structs.replace(entry, nonce=0)) for seq, entry in log.since(txn, 0)] == [
            (1, LogEntry(nos=(3, 1), words=True, vectors=False)),
            (2, LogEntry(nos=(2,), words=False, vectors=True)),
        ]


def test_two_histories_are_told_apart() -> None:
    """An entry that says the same at the same place in another history has other bytes."""
    stored = []
    for _ in range(2):
        with MemoryEnvironment().write() as txn:
            log.append(txn, [3, 1], words=True)
            stored.append(txn.get("log", u64(1)))
    assert stored[0] != stored[1]


def test_what_is_drawn_decides_the_bytes() -> None:
    """With the same draw, equal entries have equal bytes."""
    stored = []
    for _ in range(2):
        with MemoryEnvironment().write() as txn:
            log.append(txn, [3, 1], words=True, draw=bytes)
            stored.append(txn.get("log", u64(1)))
    assert stored[0] == stored[1]


def test_nothing_is_written_for_none() -> None:
    """An append of no passages writes nothing and takes no number."""
    with MemoryEnvironment().write() as txn:
        log.append(txn, [], words=True)
        assert (log.last_seq(txn), seqs(txn, 0)) == (0, [])


def test_an_empty_log() -> None:
    """Before the first entry the last is 0 and the first is 1."""
    with MemoryEnvironment().read() as txn:
        assert (log.first_seq(txn), log.last_seq(txn)) == (1, 0)


@pytest.mark.parametrize(("watermark", "expected"), [(0, [1, 2, 3]), (1, [2, 3]), (3, []), (9, [])])
def test_since_is_after_the_watermark(watermark: int, expected: list[int]) -> None:
    """Entries up to and with the watermark are left out."""
    with MemoryEnvironment().write() as txn:
        fill(txn, 3)
        assert seqs(txn, watermark) == expected


def test_more_than_a_byte_of_numbers_stays_in_order() -> None:
    """Order holds across 255 to 256."""
    with MemoryEnvironment().write() as txn:
        fill(txn, 300)
        assert seqs(txn, 250) == list(range(251, 301))


@pytest.mark.parametrize(
    ("through", "limit", "dropped", "first"),
    [(2, 10, 2, 3), (4, 3, 3, 4), (0, 10, 0, 1), (5, 10, 5, 6), (99, 10, 5, 6), (5, 0, 0, 1)],
)
def test_truncate_is_bounded(through: int, limit: int, dropped: int, first: int) -> None:
    """The oldest entries go, up to and with `through`, at most `limit`; numbers go on after."""
    with MemoryEnvironment().write() as txn:
        fill(txn, 5)
        assert log.truncate(txn, through, limit) == dropped
        assert (log.first_seq(txn), log.last_seq(txn)) == (first, 5)
        log.append(txn, [9], words=True)
        assert log.last_seq(txn) == 6
