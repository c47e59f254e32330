"""Every environment answers many look-ups at once, and scans of any length whole."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from environments import ENGINES, new_environment

from kb.store.kv import Environment


@pytest.fixture(params=ENGINES)
def env(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Environment]:
    made = new_environment(request, tmp_path)
    yield made
    made.close()


def put(env: Environment, *keys: bytes) -> None:
    with env.write() as txn:
        for key in keys:
            txn.put("docs", key, b"v")


def test_many_are_got_at_once(env: Environment) -> None:
    """The values come in the order of the keys, None for one that is absent, also of own writes."""
    put(env, *[b"%04d" % n for n in range(2500)])
    keys = [b"%04d" % n for n in range(2499, -1, -2)]
    with env.read() as txn:
        assert txn.get_many("docs", keys) == [b"v"] * len(keys)
        assert txn.get_many("docs", []) == []
        assert txn.get_many("docs", [b"0001", b"x", b"", b"0001"]) == [b"v", None, None, b"v"]
    with env.write() as txn:
        txn.put("docs", b"0001", b"new")
        txn.delete("docs", b"0002")
        assert txn.get_many("docs", [b"0001", b"0002", b"0003"]) == [b"new", None, b"v"]
        assert txn.get_many("docs", [b"0003", b"0004"]) == [b"v", b"v"]


def test_what_is_expected_is_what_is_there(env: Environment) -> None:
    """Saying which keys come next changes no answer, nor hides what a writer does then."""
    put(env, b"a", b"b", b"c")
    with env.read() as txn:
        txn.expect("docs", (key for key in (b"a", b"x")))
        put(env, b"x")
        assert [txn.get("docs", key) for key in (b"a", b"b", b"x")] == [b"v", b"v", None]
    with env.write() as txn:
        txn.expect("docs", [b"a", b"b", b"y"])
        txn.put("docs", b"y", b"new")
        assert (txn.delete("docs", b"a"), txn.delete("docs", b"a")) == (True, False)
        assert [txn.get("docs", key) for key in (b"a", b"b", b"y")] == [None, b"v", b"new"]
        txn.expect("docs", [b"%05d" % n for n in range(10_000)])
        assert [txn.get("docs", key) for key in (b"a", b"b", b"y")] == [None, b"v", b"new"]


def test_many_ranges_are_scanned_at_once(env: Environment) -> None:
    """Each range gives its first pairs in order; a writer sees what it wrote."""
    put(env, *[b"%03d" % n for n in range(100)])
    ranges = [(b"010", b"012"), (b"x", None), (b"098", None), (b"", b"000"), (b"", None)]
    with env.read() as txn:
        keys = [[key for key, _ in pairs] for pairs in txn.scan_many("docs", ranges, 3)]
        assert txn.scan_many("docs", [], 3) == []
    assert keys == [[b"010", b"011"], [], [b"098", b"099"], [], [b"000", b"001", b"002"]]
    with env.write() as txn:
        txn.put("docs", b"010a", b"v")
        assert txn.scan_many("docs", ranges[:1], 2) == [[(b"010", b"v"), (b"010a", b"v")]]


def test_a_long_scan_is_whole(env: Environment) -> None:
    """However many batches it takes, each pair comes once, large values among small ones."""
    rows = {b"%05d" % n: b"x" * (1_000_000 if n % 1000 == 7 else 5) for n in range(5000)}
    with env.write() as txn:
        for key, value in rows.items():
            txn.put("docs", key, value)
    with env.read() as txn:
        assert list(txn.scan("docs")) == sorted(rows.items())
        assert list(txn.scan("docs", b"00003", b"04990", reverse=True)) == [
            pair for pair in sorted(rows.items(), reverse=True) if b"00003" <= pair[0] < b"04990"
        ]
