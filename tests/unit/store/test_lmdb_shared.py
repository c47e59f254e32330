"""One process opens a store as often as it likes, and so does a child of it."""

import gc
import os
import subprocess
import sys
import threading
from pathlib import Path

import lmdb
import pytest

from kb.store.lmdb_env import LmdbEnvironment

_FORK = """
import os, sys
from pathlib import Path
from kb.errors import WrongProcess
from kb.store.lmdb_env import LmdbEnvironment

folder = Path(sys.argv[1])
env = LmdbEnvironment(folder)
with env.write() as txn:
    txn.put("docs", b"parent", b"1")
child = os.fork()
if child == 0:
    try:
        with env.read():
            pass
    except WrongProcess:
        own = LmdbEnvironment(folder)
        with own.write() as txn:
            txn.put("docs", b"child", b"2")
        own.close()
        env.close()
        os._exit(0)
    os._exit(1)
assert os.waitpid(child, 0)[1] == 0
with env.write() as txn:
    print(txn.get("docs", b"parent"), txn.get("docs", b"child"))
env.close()
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    place = tmp_path / "store"
    place.mkdir()
    return place


def test_a_store_is_opened_twice_in_one_process(folder: Path) -> None:
    """Both see what either writes, and each is closed by itself."""
    first, second = LmdbEnvironment(folder), LmdbEnvironment(folder)
    with first.write() as txn:
        txn.put("docs", b"k", b"v")
    first.close()
    first.close()
    with pytest.raises(ValueError, match="closed"), first.read():
        pass
    with second.read() as txn:
        assert txn.get("docs", b"k") == b"v"
    second.close()


def test_threads_open_a_store_that_others_write_to(folder: Path) -> None:
    """Nobody waits for the writer to open it: a thread that opens one would stop the other."""
    first = LmdbEnvironment(folder)
    opened: list[LmdbEnvironment] = []
    with first.write() as txn:
        txn.put("docs", b"k", b"v")
        threads = [
            threading.Thread(target=lambda: opened.append(LmdbEnvironment(folder)), daemon=True)
            for _ in range(4)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(timeout=30)
    assert len(opened) == 4
    for other in opened:
        with other.read() as view:
            assert view.get("docs", b"k") == b"v"
        other.close()
    first.close()


def test_one_that_nobody_closes_is_let_go(folder: Path) -> None:
    """What is collected is closed, as far as nobody else has it open."""
    kept = LmdbEnvironment(folder)
    dropped = LmdbEnvironment(folder)
    shared = dropped._env
    del dropped
    gc.collect()
    with kept.write() as txn:
        txn.put("docs", b"k", b"v")
    del kept
    gc.collect()
    with pytest.raises(lmdb.Error):
        shared.begin()


def test_after_the_last_is_closed_another_file_is_opened(folder: Path) -> None:
    """A store that replaces another at its place is not taken for it."""
    first = LmdbEnvironment(folder)
    with first.write() as txn:
        txn.put("docs", b"k", b"v")
    os.rename(folder, folder.with_name("away"))
    folder.mkdir()
    other = LmdbEnvironment(folder)
    with other.read() as txn:
        assert txn.get("docs", b"k") is None
    with first.read() as txn:
        assert txn.get("docs", b"k") == b"v"
    other.close()
    first.close()


def test_a_child_opens_what_its_parent_has_open(folder: Path) -> None:
    """After a fork the parent's cannot be used, a new one can, and the parent goes on."""
    done = subprocess.run(
        [sys.executable, "-c", _FORK, folder], capture_output=True, text=True, timeout=60
    )
    assert (done.stdout, done.stderr) == ("b'1' b'2'\n", "")
