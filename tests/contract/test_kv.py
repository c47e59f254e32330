"""One suite over every environment: what LMDB promises, the others promise too."""

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from environments import ENGINES, environment_of, new_environment
from hypothesis import given, settings
from hypothesis import strategies as st

from kb.store.kv import KEY_BYTES_MAX, TABLES, Environment, prefix_stop

WAIT_S = 10


@pytest.fixture(params=ENGINES)
def env(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Environment]:
    made = new_environment(request, tmp_path)
    yield made
    made.close()


def put(env: Environment, *keys: bytes, table: str = "docs", value: bytes = b"v") -> None:
    with env.write() as txn:
        for key in keys:
            txn.put(table, key, value)


def keys_of(
    env: Environment, table: str = "docs", *bounds: bytes, reverse: bool = False
) -> list[bytes]:
    with env.read() as txn:
        return [key for key, _ in txn.scan(table, *bounds, reverse=reverse)]


def test_what_was_put_is_got(env: Environment) -> None:
    """A committed value is read back, also an empty one; an absent key is None."""
    with env.write() as txn:
        txn.put("docs", b"a", b"one")
        txn.put("docs", b"e", b"")
    with env.read() as txn:
        assert [txn.get("docs", key) for key in (b"a", b"e", b"x")] == [b"one", b"", None]


def test_put_replaces(env: Environment) -> None:
    """The last value put under a key is the one there is, and is counted once."""
    put(env, b"a", value=b"old")
    put(env, b"a", value=b"newer and longer")
    with env.read() as txn:
        assert (txn.get("docs", b"a"), txn.count("docs")) == (b"newer and longer", 1)


def test_writer_reads_its_own_writes(env: Environment) -> None:
    """Get, scan and count inside a write transaction see what it did so far."""
    put(env, b"a", b"b")
    with env.write() as txn:
        txn.put("docs", b"c", b"v")
        txn.delete("docs", b"a")
        assert txn.get("docs", b"c") == b"v"
        assert [key for key, _ in txn.scan("docs")] == [b"b", b"c"]
        txn.put("docs", b"aa", b"v")
        assert [key for key, _ in txn.scan("docs")] == [b"aa", b"b", b"c"]
        assert txn.count("docs") == 3


def test_a_kept_change_has_a_greater_number(env: Environment) -> None:
    """Reading changes no number, nor does a write that is given up."""
    first = env.last_txn()
    put(env, b"a")
    second = env.last_txn()
    assert second > first
    assert keys_of(env) == [b"a"]
    with pytest.raises(KeyError), env.write() as txn:
        txn.put("no table", b"b", b"v")
    assert env.last_txn() == second


def test_a_view_keeps_the_number_of_its_moment(env: Environment) -> None:
    """Whatever is kept while it is open; a change has its number while it is written."""
    put(env, b"a")
    with env.read() as before:
        number = before.last_txn()
        assert number == env.last_txn()
        with env.write() as txn:
            txn.put("docs", b"b", b"v")
            written = txn.last_txn()
        assert before.last_txn() == number
        assert [key for key, _ in before.scan("docs")] == [b"a"]
    with env.read() as after:
        assert after.last_txn() == written == env.last_txn() > number


def test_delete_says_whether_it_was_there(env: Environment) -> None:
    """Deleting a key is True once, then False."""
    put(env, b"a")
    with env.write() as txn:
        assert [txn.delete("docs", b"a"), txn.delete("docs", b"a")] == [True, False]
    assert keys_of(env) == []


def test_tables_are_apart(env: Environment) -> None:
    """Every table is there from the start, and one key in two tables is two records."""
    for number, table in enumerate(TABLES):
        put(env, b"k", table=table, value=b"%d" % number)
    with env.read() as txn:
        assert [txn.get(table, b"k") for table in TABLES] == [b"%d" % n for n in range(len(TABLES))]


def test_scan_is_in_byte_order(env: Environment) -> None:
    """Keys come in the order of their bytes, whatever order they were put in."""
    keys = [b"\xff", b"a", b"", b"aa", b"\0", b"b", b"a\0", b"\xff\xff"]
    put(env, *[key for key in keys if key])
    assert keys_of(env) == sorted(key for key in keys if key)


@pytest.mark.parametrize(
    ("start", "stop", "expected"),
    [
        (b"", None, b"bdfh"),
        (b"d", None, b"dfh"),
        (b"c", None, b"dfh"),
        (b"", b"f", b"bd"),
        (b"", b"g", b"bdf"),
        (b"d", b"h", b"df"),
        (b"d", b"d", b""),
        (b"h", b"b", b""),
        (b"i", None, b""),
        (b"", b"b", b""),
        (b"", b"z", b"bdfh"),
        (b"", b"", b""),
    ],
)
def test_scan_bounds(env: Environment, start: bytes, stop: bytes | None, expected: bytes) -> None:
    """A scan holds start <= key < stop, and backwards is the same the other way round."""
    put(env, b"b", b"d", b"f", b"h")
    with env.read() as txn:
        forward = b"".join(key for key, _ in txn.scan("docs", start, stop))
        backward = b"".join(key for key, _ in txn.scan("docs", start, stop, reverse=True))
    assert (forward, backward) == (expected, expected[::-1])


def test_scan_of_an_empty_table(env: Environment) -> None:
    """Nothing comes from a table that holds nothing, either way."""
    assert keys_of(env) == keys_of(env, reverse=True) == []


@pytest.mark.parametrize("prefix", [b"a", b"a\xff", b"\xff", b"\xff\xff", b"a\xff\xff"])
def test_prefix_stop_bounds_a_prefix(env: Environment, prefix: bytes) -> None:
    """From a prefix to its stop lie the keys that start with it, and no others."""
    tails = [b"", b"\0", b"a", b"\xff", b"\xff\xff"]
    keys = {head + tail for head in (b"a", b"b", b"a\xff", b"\xff", b"`") for tail in tails}
    put(env, *keys)
    with env.read() as txn:
        found = [key for key, _ in txn.scan("docs", prefix, prefix_stop(prefix))]
    assert found == sorted(key for key in keys if key.startswith(prefix))


_KEYS = st.binary(min_size=1, max_size=3)
_ROWS = st.dictionaries(_KEYS, st.binary(max_size=4), max_size=12)


@pytest.fixture(scope="module")
def shared_envs(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[list[Environment]]:
    made = [environment_of(engine, request, tmp_path_factory.mktemp(engine)) for engine in ENGINES]
    yield made
    for env in made:
        env.close()


@settings(max_examples=60, deadline=None)
@given(rows=_ROWS, start=st.binary(max_size=3), stop=st.none() | st.binary(max_size=3))
def test_all_scan_like_a_sorted_dict(
    shared_envs: list[Environment],
    rows: dict[bytes, bytes],
    start: bytes,
    stop: bytes | None,
) -> None:
    """Whatever the rows and bounds, every environment answers as a sorted dictionary would."""
    expected = sorted((k, v) for k, v in rows.items() if k >= start and (stop is None or k < stop))
    for made in shared_envs:
        with made.write() as txn:
            for key in [key for key, _ in txn.scan("docs")]:
                txn.delete("docs", key)
            for key, value in rows.items():
                txn.put("docs", key, value)
            assert list(txn.scan("docs", start, stop)) == expected
            assert list(txn.scan("docs", start, stop, reverse=True)) == expected[::-1]
            assert txn.count("docs") == len(rows)


def test_deleting_what_a_finished_scan_found(env: Environment) -> None:
    """Keys collected by a scan can all be deleted after it, in the same transaction."""
    put(env, *[b"%03d" % n for n in range(500)])
    with env.write() as txn:
        for key in [key for key, _ in txn.scan("docs", b"100", b"400")]:
            assert txn.delete("docs", key)
    assert keys_of(env) == [b"%03d" % n for n in range(500) if not 100 <= n < 400]


def test_a_read_view_does_not_move(env: Environment) -> None:
    """A view opened before a commit keeps showing what was; one opened after shows what is."""
    put(env, b"a", value=b"old")
    with env.read() as before:
        put(env, b"a", value=b"new")
        put(env, b"b")
        assert (before.get("docs", b"a"), before.get("docs", b"b")) == (b"old", None)
        assert ([key for key, _ in before.scan("docs")], before.count("docs")) == ([b"a"], 1)
        with env.read() as after:
            assert (after.get("docs", b"a"), after.count("docs")) == (b"new", 2)


def test_a_view_does_not_see_an_open_write(env: Environment) -> None:
    """What the writer has not committed nobody else sees."""
    with env.write() as txn:
        txn.put("docs", b"a", b"v")
        with env.read() as view:
            assert view.get("docs", b"a") is None


@pytest.mark.parametrize("error", [RuntimeError, KeyboardInterrupt, GeneratorExit])
def test_an_exception_keeps_nothing(env: Environment, error: type[BaseException]) -> None:
    """A block left by any exception leaves every table as it was, and the lock free."""
    put(env, b"a")

    def fail_half_way() -> None:
        with env.write() as txn:
            txn.put("docs", b"b", b"v")
            txn.put("chunks", b"b", b"v")
            txn.delete("docs", b"a")
            raise error

    with pytest.raises(error):
        fail_half_way()
    assert (keys_of(env), keys_of(env, "chunks")) == ([b"a"], [])
    put(env, b"c")
    assert keys_of(env) == [b"a", b"c"]


def in_thread(work: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def test_one_writer_at_a_time(env: Environment) -> None:
    """A second writer waits for the first to end, then builds on what it left; readers go on."""
    asked, entered = threading.Event(), threading.Event()

    def second() -> None:
        asked.set()
        with env.write() as txn:
            entered.set()
            txn.put("docs", b"seen", txn.get("docs", b"first") or b"nothing")

    with env.write() as txn:
        thread = in_thread(second)
        assert asked.wait(WAIT_S)
        txn.put("docs", b"first", b"v")
        with env.read() as view:
            assert view.count("docs") == 0
        assert not entered.is_set()
    thread.join(WAIT_S)
    with env.read() as view:
        assert view.get("docs", b"seen") == b"v"


def test_no_increment_is_lost(env: Environment) -> None:
    """Four threads that each count up 25 times together count to 100."""

    def count_up() -> None:
        for _ in range(25):
            with env.write() as txn:
                txn.put("meta", b"n", b"%d" % (int(txn.get("meta", b"n") or b"0") + 1))

    threads = [in_thread(count_up) for _ in range(4)]
    for thread in threads:
        thread.join(WAIT_S)
    with env.read() as txn:
        assert txn.get("meta", b"n") == b"100"


@pytest.mark.parametrize("size", [1, KEY_BYTES_MAX])
def test_keys_within_the_limit_are_kept(env: Environment, size: int) -> None:
    """Keys of one byte and of 511 are like any other."""
    put(env, b"k" * size)
    assert keys_of(env) == [b"k" * size]


@pytest.mark.parametrize("size", [0, KEY_BYTES_MAX + 1])
def test_keys_past_the_limit_are_refused(env: Environment, size: int) -> None:
    """An empty key and one of 512 bytes cannot be put: ValueError, and the rest is dropped too."""
    with pytest.raises(ValueError, match="a key has 1 to 511 bytes"):
        put(env, b"ok", b"k" * size)
    assert keys_of(env) == []


@pytest.mark.parametrize("size", [0, KEY_BYTES_MAX + 1, 5000])
def test_keys_past_the_limit_are_merely_absent(env: Environment, size: int) -> None:
    """Looking for, deleting or scanning from a key that cannot be finds nothing, and no error."""
    key = b"k" * size
    put(env, b"a")
    with env.write() as txn:
        assert (txn.get("docs", key), txn.delete("docs", key)) == (None, False)
        assert list(txn.scan("docs", key or b"b")) == []
        assert [k for k, _ in txn.scan("docs", b"", key or b"b", reverse=True)] == [b"a"]


def test_an_unknown_table_is_refused(env: Environment) -> None:
    """Every call on a table that is not declared is a KeyError."""
    with env.write() as txn:
        calls: list[Callable[[], object]] = [
            lambda: txn.get("nope", b"k"),
            lambda: txn.put("nope", b"k", b"v"),
            lambda: txn.delete("nope", b"k"),
            lambda: txn.count("nope"),
            lambda: list(txn.scan("nope")),
            lambda: txn.get_many("nope", [b"k"]),
            lambda: txn.scan_many("nope", [(b"", None)], 1),
        ]
        for call in calls:
            with pytest.raises(KeyError):
                call()


@pytest.mark.parametrize("size", [4095, 4096, 70_000, 3 << 20])
def test_large_values(env: Environment, size: int) -> None:
    """Values up to a few megabytes come back byte for byte, beside small neighbours."""
    value = bytes(range(256)) * (size // 256) + b"x" * (size % 256)
    put(env, b"big", value=value)
    put(env, b"a", b"z", value=b"small")
    with env.read() as txn:
        assert dict(txn.scan("docs")) == {b"a": b"small", b"big": value, b"z": b"small"}


def test_a_value_outlives_its_transaction(env: Environment) -> None:
    """What was read are bytes of one's own: a later overwrite does not reach them."""
    put(env, b"a", value=b"x" * 5000)
    with env.read() as txn:
        value = txn.get("docs", b"a")
    put(env, b"a", value=b"y" * 5000)
    assert value == b"x" * 5000


def test_a_view_cannot_write(env: Environment) -> None:
    """A read transaction has no put and no delete."""
    with env.read() as txn:
        assert not hasattr(txn, "put")
        assert not hasattr(txn, "delete")


@pytest.mark.parametrize("mode", ["read", "write"])
def test_a_transaction_ends_with_its_block(env: Environment, mode: str) -> None:
    """After its block every call is a ValueError, also on a scan that was begun inside it."""
    put(env, b"a", b"b", b"c")
    with env.read() if mode == "read" else env.write() as txn:
        begun = txn.scan("docs")
        assert next(begun)[0] == b"a"
    not_begun = txn.scan("docs")
    for call in (
        lambda: txn.get("docs", b"a"),
        lambda: txn.count("docs"),
        lambda: txn.get_many("docs", [b"a"]),
        lambda: next(begun),
        lambda: next(not_begun),
    ):
        with pytest.raises(ValueError, match="after its block"):
            call()


def test_a_closed_environment_refuses(env: Environment) -> None:
    """After close every use is a ValueError, and closing again does nothing."""
    env.close()
    env.close()
    for use in (env.size_bytes, env.reap_readers, env.read().__enter__, env.write().__enter__):
        with pytest.raises(ValueError, match="closed"):
            use()


def test_size_grows_with_what_is_put(env: Environment) -> None:
    """Bytes in use cover what was put."""
    before = env.size_bytes()
    put(env, b"a", value=b"x" * 1_000_000)
    assert env.size_bytes() >= before + 1_000_000


def test_nothing_to_reap_while_all_live(env: Environment) -> None:
    """Live readers keep their slots."""
    with env.read() as txn:
        assert (env.reap_readers(), txn.count("docs")) == (0, 0)
