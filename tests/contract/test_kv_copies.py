"""Copies of an environment, and stores that an earlier program made."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from environments import ENGINES, new_environment

from kb.errors import StoreDamaged
from kb.store.kv import TABLES, Environment
from kb.store.lmdb_env import LmdbEnvironment


@pytest.fixture(params=ENGINES)
def env(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Environment]:
    made = new_environment(request, tmp_path)
    yield made
    made.close()


def test_a_copy_holds_what_was_committed(env: Environment, tmp_path: Path) -> None:
    """It is an LMDB environment of its own: no later write is in it, nor one not yet ended."""
    with env.write() as txn:
        txn.put("docs", b"a", b"one")
        txn.put("log", b"z", b"")
    folder = tmp_path / "copy"
    folder.mkdir()
    with env.write() as txn:
        txn.put("docs", b"b", b"two")
        env.copy_to(folder)
    copied = LmdbEnvironment(folder, read_only=True, locked=False)
    try:
        with copied.read() as txn:
            rows = {name: list(txn.scan(name)) for name in TABLES if txn.count(name)}
        assert rows == {"docs": [(b"a", b"one")], "log": [(b"z", b"")]}
    finally:
        copied.close()
    assert [path.name for path in folder.iterdir() if path.name != "lock.mdb"] == ["data.mdb"]


def test_a_table_that_an_old_store_lacks_reads_as_empty(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Opened for reading, nothing is made; without the table that all have, it is no store."""
    monkeypatch.setattr("kb.store.lmdb_env.TABLES", ("docs", "meta"))
    LmdbEnvironment(tmp_path).close()
    monkeypatch.setattr("kb.store.lmdb_env.TABLES", TABLES)
    old = LmdbEnvironment(tmp_path, read_only=True)
    with old.read() as txn:
        assert (txn.get("log", b"a"), txn.count("log"), list(txn.scan("log"))) == (None, 0, [])
        with pytest.raises(KeyError):
            txn.get("none", b"a")
    old.close()
    other = tmp_path / "other"
    other.mkdir()
    monkeypatch.setattr("kb.store.lmdb_env.TABLES", ("docs",))
    LmdbEnvironment(other).close()
    monkeypatch.setattr("kb.store.lmdb_env.TABLES", TABLES)
    with pytest.raises(StoreDamaged):
        LmdbEnvironment(other, read_only=True)
