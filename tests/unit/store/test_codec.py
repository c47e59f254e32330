"""The stored form of a record."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct

from kb.errors import StoreDamaged
from kb.store.codec import RECORD_VERSION, RecordTable, from_u64, seal, u64, unseal
from kb.store.memory import MemoryEnvironment
from kb.store.records import CHUNKS, DOCS, JOBS, JobRef, StoredValue

BODY = b"a body of some bytes"


def test_unseal_gives_back_what_was_sealed() -> None:
    """A body comes back whole from its table and key."""
    assert unseal("docs", b"k", seal("docs", b"k", BODY)) == BODY
    assert unseal("docs", b"k", seal("docs", b"k", b"")) == b""


def test_every_flipped_bit_is_found() -> None:
    """Whichever bit of a stored record flips, reading it is StoreDamaged and never a value."""
    stored = seal("docs", b"k", BODY)
    for bit in range(len(stored) * 8):
        flipped = bytearray(stored)
        flipped[bit // 8] ^= 1 << bit % 8
        with pytest.raises(StoreDamaged):
            unseal("docs", b"k", bytes(flipped))


def test_every_flipped_bit_of_a_typed_record_is_found() -> None:
    """The same through Records: a flipped bit never decodes to another record."""
    words = RecordTable("meta", StoredValue)
    with MemoryEnvironment().write() as txn:
        words.put(txn, b"k", StoredValue(number=7, text="seven"))
        stored = txn.get("meta", b"k")
        assert stored is not None
        for bit in range(len(stored) * 8):
            flipped = bytearray(stored)
            flipped[bit // 8] ^= 1 << bit % 8
            txn.put("meta", b"k", bytes(flipped))
            with pytest.raises(StoreDamaged):
                words.get(txn, b"k")


@pytest.mark.parametrize("length", range(len(seal("docs", b"k", BODY))))
def test_every_cut_is_found(length: int) -> None:
    """A record cut at any length is StoreDamaged."""
    with pytest.raises(StoreDamaged):
        unseal("docs", b"k", seal("docs", b"k", BODY)[:length])


@pytest.mark.parametrize("stored", [bytes(30), b"\xff" * 30, bytes(4096)])
def test_a_blank_page_is_found(stored: bytes) -> None:
    """Zeros and ones are no record."""
    with pytest.raises(StoreDamaged):
        unseal("docs", b"k", stored)


@pytest.mark.parametrize(("table", "key"), [("docs", b"k2"), ("docs", b"j"), ("chunks", b"k")])
def test_a_moved_record_is_refused(table: str, key: bytes) -> None:
    """A whole record that turns up under another key or in another table is StoreDamaged."""
    with pytest.raises(StoreDamaged, match="checksum"):
        unseal(table, key, seal("docs", b"k", BODY))


def test_another_version_is_refused_by_name() -> None:
    """A record of a version to come is StoreDamaged, and says which version."""
    stored = bytes([RECORD_VERSION + 1]) + seal("docs", b"k", BODY)[1:]
    with pytest.raises(StoreDamaged, match="record version 2"):
        unseal("docs", b"k", stored)


def test_the_error_names_table_and_key() -> None:
    """Damage is reported with its place, and with what to do."""
    with pytest.raises(StoreDamaged) as caught:
        unseal("jobs", b"\x01\x02", b"")
    assert str(caught.value).startswith("jobs/0102: the record is cut short; run `kb check`")


def test_a_record_of_another_shape_is_damage() -> None:
    """A sealed body that does not decode as the table's type is StoreDamaged."""
    with MemoryEnvironment().write() as txn:
        for body in (b"\xc0", b"\x80", b"not msgpack", b""):
            txn.put("jobs", b"k", seal("jobs", b"k", body))
            with pytest.raises(StoreDamaged, match="not the expected record"):
                JOBS.get(txn, b"k")


class _Wider(Struct, frozen=True, kw_only=True):
    job_id: str
    added_later: int = 3


def test_fields_may_be_added() -> None:
    """A field with a default may come or go: records of either shape are read by the other."""
    narrow, wide = RecordTable("jobs_ready", JobRef), RecordTable("jobs_ready", _Wider)
    with MemoryEnvironment().write() as txn:
        narrow.put(txn, b"k", JobRef(job_id="j1"))  # type: ignore[arg-type]
        assert wide.get(txn, b"k") == _Wider(job_id="j1")
        wide.put(txn, b"k", _Wider(job_id="j2", added_later=4))
        found = narrow.get(txn, b"k")
        assert found is not None
        assert found.job_id == "j2"


def test_scan_by_prefix_start_and_backwards() -> None:
    """A record scan keeps to its prefix, starts where asked, and goes either way."""
    words = RecordTable("meta", StoredValue)
    with MemoryEnvironment().write() as txn:
        for key in (b"a", b"b1", b"b2", b"b3", b"c"):
            words.put(txn, key, StoredValue(text=key.decode()))
        assert [r.text for _, r in words.scan(txn, b"b")] == ["b1", "b2", "b3"]
        assert [r.text for _, r in words.scan(txn, b"b", start=b"b2")] == ["b2", "b3"]
        assert [r.text for _, r in words.scan(txn, start=b"b3")] == ["b3", "c"]
        assert [r.text for _, r in words.scan(txn, b"b", reverse=True)] == ["b3", "b2", "b1"]
        assert words.delete(txn, b"a")
        assert not words.delete(txn, b"a")


def test_absent_is_none() -> None:
    """A key without a record is None, not an error."""
    with MemoryEnvironment().read() as txn:
        assert (DOCS.get(txn, b"d1"), CHUNKS.get(txn, u64(1))) == (None, None)


@settings(deadline=None, max_examples=50)
@given(st.lists(st.integers(0, 2**64 - 1), min_size=2))
def test_numbers_sort_as_their_bytes(numbers: list[int]) -> None:
    """Eight big-endian bytes sort as the numbers do, and give them back."""
    assert [from_u64(raw) for raw in sorted(map(u64, numbers))] == sorted(numbers)
