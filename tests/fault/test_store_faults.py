"""LMDB under full disks, kills, forks and damaged files."""

# Long because each fault needs its own child process, told in full.

import contextlib
import os
import random
import shutil
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from child_processes import finished, start
from fakes import FakeClock

from kb.errors import KbError, StoreBusy, StoreDamaged, StoreFull
from kb.model import failpoints
from kb.store import lmdb_env, pages
from kb.store.lmdb_env import LmdbEnvironment
from kb.store.meta import get_word, set_word
from kb.store.store import Store

SEED = 20_240_611
WORDS = 400
KILLS = 20
PAGE = 4096


def word(number: int) -> str:
    return f"word {number} " * (number % 90)


@pytest.fixture
def env(tmp_path: Path) -> Iterator[LmdbEnvironment]:
    made = LmdbEnvironment(tmp_path / "store")
    yield made
    made.close()


@pytest.fixture(autouse=True)
def _folder(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()


def put(env: LmdbEnvironment, key: bytes, value: bytes) -> None:
    with env.write() as txn:
        txn.put("docs", key, value)


def get(env: LmdbEnvironment, key: bytes) -> bytes | None:
    with env.read() as txn:
        return txn.get("docs", key)


# Forks, readers and writers that die.

_FORK = """
import os, sys
from pathlib import Path
from kb.errors import WrongProcess
from kb.store.lmdb_env import LmdbEnvironment

env = LmdbEnvironment(Path(sys.argv[1]))
pid = os.fork()
if pid == 0:
    refused = 0
    for use in (env.read().__enter__, env.write().__enter__, env.size_bytes, env.reap_readers):
        try:
            use()
        except WrongProcess:
            refused += 1
    env.close()
    os._exit(refused)
print(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
with env.write() as txn:
    txn.put("docs", b"k", b"parent")
with env.read() as txn:
    print(txn.get("docs", b"k"))
"""


def test_a_forked_child_is_refused(tmp_path: Path) -> None:
    """Every use in a forked child is WrongProcess, and its close does not harm the parent."""
    assert finished(_FORK, tmp_path / "store").stdout.splitlines() == ["4", "b'parent'"]


_HOLD = """
import sys
from pathlib import Path
from kb.store.lmdb_env import LmdbEnvironment

env = LmdbEnvironment(Path(sys.argv[1]))
with env.write() if sys.argv[2] == "write" else env.read() as txn:
    if sys.argv[2] == "write":
        txn.put("docs", b"k", b"half")
    print("holding", flush=True)
    sys.stdin.readline()
"""


def test_a_killed_reader_keeps_its_slot_until_reaped(env: LmdbEnvironment, tmp_path: Path) -> None:
    """The slot of a reader that was killed is freed by reap_readers, once, and not before."""
    with start(_HOLD, tmp_path / "store", "read") as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "holding\n"
        assert env.reap_readers() == 0
        child.kill()
    assert [env.reap_readers(), env.reap_readers()] == [1, 0]


def test_a_killed_writer_frees_the_lock(env: LmdbEnvironment, tmp_path: Path) -> None:
    """After a writer was killed inside its transaction the next one goes on from before it."""
    put(env, b"k", b"before")
    with start(_HOLD, tmp_path / "store", "write") as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "holding\n"
        child.kill()
    put(env, b"other", b"after")
    assert (get(env, b"k"), get(env, b"other")) == (b"before", b"after")


def test_readers_without_a_slot_are_told(env: LmdbEnvironment) -> None:
    """When all reader slots are taken the next reader gets StoreBusy, and later a slot."""
    with contextlib.ExitStack() as stack:
        for _ in range(510):
            stack.enter_context(env.read())
        with pytest.raises(StoreBusy):
            stack.enter_context(env.read())
    assert get(env, b"k") is None


_COUNT = """
import sys
from pathlib import Path
from kb.store.lmdb_env import LmdbEnvironment

TABLES = ("docs", "chunks", "jobs", "log", "meta")
env = LmdbEnvironment(Path(sys.argv[1]))
with env.read() as txn:
    number = txn.count("docs")
while True:
    number += 1
    with env.write() as txn:
        for table in TABLES:
            txn.put(table, number.to_bytes(8, "big"), b"%d" % number * 50)
    print(number, flush=True)
"""


def test_twenty_kills_lose_nothing_acknowledged(tmp_path: Path) -> None:
    """What a killed writer acknowledged is all there, in all five tables, and nothing is half."""
    rng = random.Random(SEED)
    acknowledged = 0
    for _ in range(KILLS):
        with start(_COUNT, tmp_path / "store") as child:
            assert child.stdout is not None
            for _ in range(rng.randrange(1, 60)):
                acknowledged = int(child.stdout.readline())
            child.kill()
            rest = child.stdout.read().split()
            acknowledged = int(rest[-1]) if rest else acknowledged
        env = LmdbEnvironment(tmp_path / "store")
        with env.read() as txn:
            rows = [dict(txn.scan(t)) for t in ("docs", "chunks", "jobs", "log", "meta")]
        env.close()
        assert rows == [rows[0]] * 5, f"seed {SEED}"
        assert len(rows[0]) in (acknowledged, acknowledged + 1), f"seed {SEED}"
        assert all(
            value == b"%d" % int.from_bytes(key, "big") * 50 for key, value in rows[0].items()
        )


@pytest.mark.parametrize(("point", "kept"), [("before", 2), ("after", 3)])
def test_the_commit_is_the_one_point(tmp_path: Path, point: str, kept: int) -> None:
    """A kill just before a commit keeps none of it, one just after keeps all of it."""
    armed = f"store.{point}_commit=kill@3"
    child = finished(_COUNT, tmp_path / "store", KB_FAILPOINTS=armed)
    assert (child.returncode, child.stdout.split()) == (-signal.SIGKILL, ["1", "2"])
    env = LmdbEnvironment(tmp_path / "store")
    with env.read() as txn:
        assert [txn.count(t) for t in ("docs", "chunks", "jobs", "log", "meta")] == [kept] * 5
    env.close()


# Full disks.

_FILL = """
import resource, sys
from pathlib import Path
from kb.errors import KbError
from kb.store.lmdb_env import LmdbEnvironment

env = LmdbEnvironment(Path(sys.argv[1]))
with env.write() as txn:
    txn.put("docs", b"k", b"before")
limit = env.size_bytes() + int(sys.argv[2])
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, resource.RLIM_INFINITY))
try:
    with env.write() as txn:
        txn.put("docs", b"k", b"never")
        txn.put("chunks", b"big", bytes(1_000_000))
    print("kept")
except KbError as error:
    print(type(error).__name__)
with env.read() as txn:
    print(txn.get("docs", b"k"), txn.count("chunks"))
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
with env.write() as txn:
    txn.put("docs", b"k", b"later")
with env.read() as txn:
    print(txn.get("docs", b"k"))
"""


@pytest.mark.parametrize("room_bytes", [0, PAGE, PAGE * 3 + 100, 500_000])
def test_a_disk_that_fills_up_on_commit(tmp_path: Path, room_bytes: int) -> None:
    """Wherever the room ends it is StoreFull, the previous state is whole, and it goes on after."""
    child = finished(_FILL, tmp_path / "store", room_bytes)
    assert child.stdout.splitlines() == ["StoreFull", "b'before' 0", "b'later'"]
    assert sorted(os.listdir(tmp_path / "store")) == ["data.mdb", "lock.mdb"]


def test_a_map_that_fills_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A full map is StoreFull too, keeps the previous state, and takes what still fits."""
    monkeypatch.setattr(lmdb_env, "_MAP_BYTES", (1 << 20,))
    env = LmdbEnvironment(tmp_path / "store")
    put(env, b"k", b"before")
    with pytest.raises(StoreFull):
        put(env, b"big", bytes(2 << 20))
    put(env, b"k2", b"fits")
    assert (get(env, b"k"), get(env, b"k2"), get(env, b"big")) == (b"before", b"fits", None)
    env.close()


_GROW = """
import sys
from pathlib import Path
from kb.store.lmdb_env import LmdbEnvironment

with LmdbEnvironment(Path(sys.argv[1])).write() as txn:
    txn.put("docs", b"big", bytes(4 << 20))
"""


@pytest.mark.parametrize("mode", ["read", "write"])
def test_a_file_that_outgrew_our_map(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    """Where another process made the file larger than our map, we follow and read it."""
    monkeypatch.setattr(lmdb_env, "_MAP_BYTES", (1 << 20,))
    env = LmdbEnvironment(tmp_path / "store")
    assert finished(_GROW, tmp_path / "store").returncode == 0
    with env.read() if mode == "read" else env.write() as txn:
        assert txn.get("docs", b"big") == bytes(4 << 20)
    env.close()


@pytest.mark.parametrize(
    ("point", "action", "error", "kept"),
    [
        ("before", "enospc", StoreFull, b"old"),
        ("before", "eio", StoreDamaged, b"old"),
        ("after", "eio", StoreDamaged, b"new"),
    ],
)
def test_an_error_at_the_commit(
    env: LmdbEnvironment,
    monkeypatch: pytest.MonkeyPatch,
    point: str,
    action: str,
    error: type[KbError],
    kept: bytes,
) -> None:
    """An operating-system error around the commit is a KbError, and the state is one or other."""
    put(env, b"k", b"old")
    with monkeypatch.context() as patch:
        patch.setattr(failpoints, "_armed", {f"store.{point}_commit": (action, 1)})
        patch.setattr(failpoints, "_hits", {})
        with pytest.raises(error):
            put(env, b"k", b"new")
    assert get(env, b"k") == kept
    put(env, b"k", b"newest")
    assert get(env, b"k") == b"newest"


# Homes that cannot be written.

_UNPRIVILEGED = """
import os, sys
from pathlib import Path
from kb.errors import KbError
from kb.store.store import Store
from kb.store.meta import get_word, set_word
import kb.store.lmdb_env

if os.getuid() == 0:
    os.setgid(65534)
    os.setuid(65534)

def attempt(work):
    try:
        print(work())
    except KbError as error:
        print(type(error).__name__)

folder = Path(sys.argv[1])

def read():
    with Store.open(folder, read_only=True) as store, store.read() as txn:
        return get_word(txn, "w")

def write_through_read_only():
    with Store.open(folder, read_only=True) as store, store.write() as txn:
        set_word(txn, "w", "never")

def write():
    with Store.open(folder) as store, store.write() as txn:
        set_word(txn, "w", "never")

def make():
    Store.open(folder / "new").close()

for work in (read, write_through_read_only, write, make):
    attempt(work)
"""


def test_a_folder_that_cannot_be_written_is_read() -> None:
    """A read-only folder opens for reading; writing and making there are ReadOnlyHome."""
    folder = Path(tempfile.mkdtemp())
    try:
        with Store.open(folder, FakeClock()) as store, store.write() as txn:
            set_word(txn, "w", "a word")
        for file in folder.iterdir():
            file.chmod(0o444)
        folder.chmod(0o555)
        lines = finished(_UNPRIVILEGED, folder).stdout.splitlines()
        assert lines == ["a word", "ReadOnlyHome", "ReadOnlyHome", "ReadOnlyHome"]
    finally:
        folder.chmod(0o755)
        shutil.rmtree(folder)


# Damaged files.


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A closed store of WORDS words in several commits."""
    folder = tmp_path_factory.mktemp("sound")
    with Store.open(folder, FakeClock()) as store:
        for start_at in range(0, WORDS, 100):
            with store.write() as txn:
                for number in range(start_at, start_at + 100):
                    set_word(txn, str(number), word(number))
    (folder / "lock.mdb").unlink()
    return folder


# Reads each word: counts those that are right, absent and refused; a wrong one ends it with 9.
_READ_ALL = """
import sys
from pathlib import Path
from fakes import FakeClock
from kb.errors import StoreDamaged
from kb.store.meta import get_word
from kb.store.store import Store

right = absent = refused = 0
try:
    store = Store.open(Path(sys.argv[1]), FakeClock(), read_only=sys.argv[2] == "ro")
    with store.read() as txn:
        for number in range(int(sys.argv[3])):
            try:
                found = get_word(txn, str(number))
            except StoreDamaged:
                refused += 1
                continue
            wanted = f"word {number} " * (number % 90)
            if found not in (wanted, ""):
                sys.exit(9)
            right += found == wanted
            absent += found != wanted
    store.close()
except StoreDamaged:
    refused += 1
print(right, absent, refused)
"""


def read_all(folder: Path, mode: str = "rw") -> tuple[int, list[int]]:
    child = finished(_READ_ALL, folder, mode, WORDS)
    assert child.stderr == ""
    return child.returncode, [int(text) for text in child.stdout.split()]


def damaged(sound: Path, tmp_path: Path) -> Path:
    folder = tmp_path / "damaged"
    shutil.copytree(sound, folder)
    return folder


def test_a_sound_store_reads_whole(sound: Path, tmp_path: Path) -> None:
    """Undamaged, every word is right: the counterpart of what follows."""
    assert read_all(damaged(sound, tmp_path)) == (0, [WORDS, 0, 0])


@pytest.mark.parametrize("attempt", range(12))
def test_a_zeroed_page_gives_no_wrong_value(sound: Path, tmp_path: Path, attempt: int) -> None:
    """With any page zeroed, values are right, refused or missing, or the child dies."""
    folder = damaged(sound, tmp_path)
    data = bytearray((folder / "data.mdb").read_bytes())
    page = random.Random(SEED + attempt).randrange(len(data) // PAGE)
    data[page * PAGE : (page + 1) * PAGE] = bytes(PAGE)
    (folder / "data.mdb").write_bytes(data)
    assert read_all(folder)[0] != 9, f"page {page}"


@pytest.mark.parametrize("attempt", range(12))
def test_flipped_bytes_give_no_wrong_value(sound: Path, tmp_path: Path, attempt: int) -> None:
    """With bytes flipped anywhere the same holds."""
    folder = damaged(sound, tmp_path)
    data = bytearray((folder / "data.mdb").read_bytes())
    rng = random.Random(SEED * 2 + attempt)
    for _ in range(20):
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    (folder / "data.mdb").write_bytes(data)
    assert read_all(folder)[0] != 9, f"seed {SEED * 2 + attempt}"


def test_a_flipped_byte_of_a_value_is_found(sound: Path, tmp_path: Path) -> None:
    """A byte flipped inside a stored word makes that word StoreDamaged and spares the others."""
    folder = damaged(sound, tmp_path)
    data = (folder / "data.mdb").read_bytes()
    assert b"word 89 word 89" in data
    (folder / "data.mdb").write_bytes(data.replace(b"word 89 word 89", b"word 89 word 88"))
    assert read_all(folder) == (0, [WORDS - 1, 0, 1])


@pytest.mark.parametrize("mode", ["ro", "rw"])
@pytest.mark.parametrize("part", [0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.99])
def test_a_cut_file_is_told_when_opened(
    sound: Path, tmp_path: Path, mode: str, part: float
) -> None:
    """A data file cut anywhere is StoreDamaged at open, not a bus error at some read."""
    folder = damaged(sound, tmp_path)
    os.truncate(folder / "data.mdb", int((folder / "data.mdb").stat().st_size * part))
    returncode, counts = read_all(folder, mode)
    assert (returncode, counts) in ((0, [0, 0, 1]), (0, [WORDS, 0, 0]))


def test_every_cut_page_is_noticed(sound: Path, tmp_path: Path) -> None:
    """At whatever page the file ends, it is cut where and only where a word would be unreadable."""
    folder = damaged(sound, tmp_path)
    size = (folder / "data.mdb").stat().st_size
    verdicts = []
    for length in range(size, 2 * PAGE, -PAGE):
        os.truncate(folder / "data.mdb", length)
        verdicts.append(pages.tree_is_truncated(folder / "data.mdb", 0))
    assert verdicts == sorted(verdicts)
    assert not verdicts[0]
    # Free pages may lie at the end; more than a few would mean that cuts go unnoticed.
    assert verdicts.count(False) <= 10


def test_no_data_file_is_cut(tmp_path: Path) -> None:
    """What is too short for a header, or has none, is left to LMDB to refuse."""
    for body in (b"", b"x" * 100, bytes(3 * PAGE)):
        (tmp_path / "data.mdb").write_bytes(body)
        assert not pages.tree_is_truncated(tmp_path / "data.mdb", 0)


def test_garbage_is_refused(tmp_path: Path) -> None:
    """A file that is no LMDB store is StoreDamaged."""
    (tmp_path / "store" / "data.mdb").write_bytes(random.Random(SEED).randbytes(10 * PAGE))
    with pytest.raises(StoreDamaged):
        LmdbEnvironment(tmp_path / "store")


def churn(env: LmdbEnvironment, rng: random.Random) -> None:
    """Put much and take it back within one transaction: its pages are counted, not written."""
    with env.write() as txn:
        keys = [rng.randbytes(200) for _ in range(300)]
        for key in keys:
            txn.put("docs", key, rng.randbytes(900))
        for key in keys:
            txn.delete("docs", key)


def test_a_file_is_as_long_as_lmdb_counts(env: LmdbEnvironment, tmp_path: Path) -> None:
    """After every commit the file covers all pages counted, so that a short one is suspect."""
    rng = random.Random(SEED)
    for _ in range(5):
        churn(env, rng)
        assert (tmp_path / "store" / "data.mdb").stat().st_size >= env.size_bytes()


def test_a_short_but_whole_file_opens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A file shorter than LMDB counts whose tree is whole is not taken for damage."""
    monkeypatch.setattr(pages, "pad", lambda *_: None)
    env = LmdbEnvironment(tmp_path / "store")
    put(env, b"k", b"v" * 10_000)
    churn(env, random.Random(SEED))
    size_bytes = env.size_bytes()
    env.close()
    assert (tmp_path / "store" / "data.mdb").stat().st_size < size_bytes
    again = LmdbEnvironment(tmp_path / "store")
    assert get(again, b"k") == b"v" * 10_000
    again.close()


def test_padding_never_shortens(tmp_path: Path) -> None:
    """A file is made longer with zeros or left as it is."""
    file = tmp_path / "file"
    file.write_bytes(b"abc")
    for size, expected in ((2, b"abc"), (5, b"abc\0\0"), (0, b"abc\0\0")):
        pages.pad(file, size)
        assert file.read_bytes() == expected


def test_words_survive_reopening(sound: Path, tmp_path: Path) -> None:
    """A store that was closed reads the same in the process that opens it next."""
    with Store.open(damaged(sound, tmp_path), FakeClock()) as store, store.read() as txn:
        assert [get_word(txn, str(n)) for n in range(WORDS)] == [word(n) for n in range(WORDS)]
