"""Whatever happens to a cache's files: no crash, no wrong answer, level again after a catch-up."""

import json
import os
import random
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "unit" / "index"))

from index_home import (
    DIM,
    FINGERPRINT,
    LOCAL,
    disk_store,
    memory_store,
    put,
    put_many,
    remove,
    vector_of,
)

from kb.search.index.dense import DenseIndex
from kb.search.index.lexical import LexicalIndex
from kb.store.store import Store

WORDS = ("alpha", "beta", "gamma", "passage", "many", "7", "伊利")
SEED = 20_240_607
HELPERS = Path(__file__).parents[1] / "unit" / "index"


class Caches:
    """Both caches of a home."""

    def __init__(self, home: Path) -> None:
        self.folder = home / "index"
        self.lexical = LexicalIndex(self.folder / "lexical", LOCAL)
        self.dense = DenseIndex(self.folder / "dense", FINGERPRINT, DIM)

    def level(self, store: Store) -> None:
        for cache in (self.lexical, self.dense):
            outcome = cache.catch_up(store, wait_s=30)
            assert (outcome.behind, outcome.problem) == (0, None)

    def answers(self) -> list[list[int]]:
        """What is found; sets of words' hits, for scores shift with the rows that died."""
        words = [sorted(self.lexical.search(word, 1_000).nos) for word in WORDS]
        return words + [self.dense.search(vector_of(word), 10).nos for word in WORDS]

    def close(self) -> None:
        self.lexical.close()
        self.dense.close()


def fresh_answers(store: Store, folder: Path) -> list[list[int]]:
    caches = Caches(folder)
    caches.level(store)
    return caches.answers()


def first_state(store: Store) -> None:
    put_many(store, 60)
    put(store, "a", ["alpha beta", "gamma 伊利"])
    put(store, "b", ["beta beta"])


def second_state(store: Store) -> None:
    remove(store, "b")
    put(store, "a", ["alpha beta", "gamma delta", "alpha again"], title="Beta")
    put(store, "c", ["gamma in c"])
    for n in range(20):
        remove(store, f"many/{n}")


def truncated(path: Path, _: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


def emptied(path: Path, _: Path) -> None:
    os.truncate(path, 0)


def zeroed(path: Path, _: Path) -> None:
    path.write_bytes(bytes(path.stat().st_size))


def flipped(path: Path, _: Path) -> None:
    rng = random.Random(f"{SEED} {path.name}")
    content = bytearray(path.read_bytes())
    if content:
        content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    path.write_bytes(content)


def deleted(path: Path, _: Path) -> None:
    path.unlink()


def older(path: Path, old: Path) -> None:
    if old.exists():
        shutil.copy2(old, path)


DAMAGES = (truncated, emptied, zeroed, flipped, deleted, older)
# To a process that has the file mapped, the others are as one of these.
UNDER_A_READER = (emptied, flipped, deleted)


def wait_for_first_look() -> None:
    """Return when the engine has ended the look that it takes on its own after every open.

    A thread of its own reads the segments' ends then, whatever the reader is set to. A file that
    is emptied in those few milliseconds ends the process, and nothing here could prevent it.
    """
    deadline = time.monotonic() + 120
    quiet = 0
    while quiet < 3:
        assert time.monotonic() < deadline, "the engine's own look does not end"
        names = {read_quietly(task / "comm") for task in Path("/proc/self/task").iterdir()}
        quiet = 0 if "watch-callbacks" in names else quiet + 1
        time.sleep(0.01)


def read_quietly(path: Path) -> str:
    try:
        return path.read_text().strip()
    except OSError:
        return ""


@pytest.mark.skipif(not Path("/proc/self/task").is_dir(), reason="threads are told by /proc")
@pytest.mark.parametrize(
    ("damage", "open_before"),
    [*((damage, False) for damage in DAMAGES), *((damage, True) for damage in UNDER_A_READER)],
)
def test_each_damaged_file_in_turn(
    tmp_path: Path, damage: Callable[[Path, Path], None], open_before: bool
) -> None:
    """Answers are those of a fresh rebuild, by a process that had the caches open or had not."""
    store = memory_store()
    caches = Caches(tmp_path)
    first_state(store)
    caches.level(store)
    shutil.copytree(caches.folder, tmp_path / "older")
    second_state(store)
    caches.level(store)
    caches.close()
    shutil.copytree(caches.folder, tmp_path / "sound")
    expected = fresh_answers(store, tmp_path / "fresh")
    assert caches.answers() == expected
    files = [path for path in (tmp_path / "sound").rglob("*") if path.is_file()]
    assert len(files) > 10
    for file in files:
        name = file.relative_to(tmp_path / "sound")
        caches.close()
        shutil.rmtree(caches.folder)
        shutil.copytree(tmp_path / "sound", caches.folder)
        if open_before:
            caches.level(store)
            wait_for_first_look()
            if not (caches.folder / name).exists():
                continue
        damage(caches.folder / name, tmp_path / "older" / name)
        if not open_before:
            caches = Caches(tmp_path)
        caches.level(store)
        assert caches.answers() == expected, f"{damage.__name__} {name}"


def test_the_whole_cache_put_back_to_an_older_copy(tmp_path: Path) -> None:
    """It follows the log from where the copy stood."""
    store = memory_store()
    caches = Caches(tmp_path)
    first_state(store)
    caches.level(store)
    caches.close()
    shutil.copytree(caches.folder, tmp_path / "older")
    second_state(store)
    caches.level(store)
    caches.close()
    shutil.rmtree(caches.folder)
    shutil.copytree(tmp_path / "older", caches.folder)
    caches.level(store)
    assert caches.answers() == fresh_answers(store, tmp_path / "fresh")


class Unreadable:
    """A searcher whose files turned out to be damaged."""

    def search(self, *_: object, **__: object) -> None:
        raise ValueError("Data corrupted")

    doc_freq = search


def test_an_index_that_cannot_be_read_when_asked(tmp_path: Path) -> None:
    """It is made again, once, and asked again."""
    store = memory_store()
    caches = Caches(tmp_path)
    first_state(store)
    caches.level(store)
    expected = caches.answers()
    view = caches.lexical._snapshot
    assert view is not None
    caches.lexical._snapshot = msgspec.structs.replace(view, searcher=Unreadable())
    assert caches.answers() == expected


CHILD = """
import json, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from index_home import DIM, FINGERPRINT, LOCAL, disk_store
from kb.search.index.dense import DenseIndex
from kb.search.index.lexical import LexicalIndex
home = Path(sys.argv[1])
with disk_store(home) as store:
    if sys.argv[3] != "0":
        import resource
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]),) * 2)
    outcomes = [
        cache.catch_up(store, wait_s=60)
        for cache in (
            LexicalIndex(home / "index" / "lexical", LOCAL),
            DenseIndex(home / "index" / "dense", FINGERPRINT, DIM),
        )
    ]
print(json.dumps([[o.applied, o.rebuilt, o.behind, o.problem] for o in outcomes]))
"""


def child(home: Path, failpoints: str = "", file_bytes_max: int = 0) -> "subprocess.Popen[bytes]":
    return subprocess.Popen(
        [sys.executable, "-c", CHILD, str(home), str(HELPERS), str(file_bytes_max)],
        env={**os.environ, "KB_FAILPOINTS": failpoints},
        stdout=subprocess.PIPE,
    )


def outcomes_of(process: "subprocess.Popen[bytes]") -> list[tuple[int, bool, int, str | None]]:
    with process:
        out, _ = process.communicate(timeout=120)
        assert process.returncode == 0
    return [tuple(outcome) for outcome in json.loads(out)]


POINTS = (
    "lexical.before_commit",
    "lexical.after_commit",
    "lexical.after_manifest",
    "dense.after_segment",
    "dense.before_rename",
    "dense.after_rename",
)


@pytest.mark.parametrize("point", POINTS)
@pytest.mark.parametrize("rebuild", [True, False], ids=["rebuild", "follow"])
def test_a_kill_at_each_durable_step(tmp_path: Path, point: str, rebuild: bool) -> None:
    """The next process ends level, and rebuilds only what had never been recorded."""
    with disk_store(tmp_path) as store:
        caches = Caches(tmp_path)
        first_state(store)
        if not rebuild:
            caches.level(store)
            caches.close()
        second_state(store)
        with child(tmp_path, f"{point}=kill") as process:
            process.communicate(timeout=120)
        assert process.returncode == -9
        lexical, dense = outcomes_of(child(tmp_path))
        assert (lexical[2:], dense[2:]) == ((0, None), (0, None))
        if not rebuild:
            assert not lexical[1]
            assert not dense[1]
        caches.level(store)
        assert caches.answers() == fresh_answers(store, tmp_path / "fresh")
        for cache in (caches.lexical, caches.dense):
            assert cache.verify() == []
        assert len(list(caches.lexical.folder.glob("g-*"))) == 1
        assert len(list(caches.dense.folder.glob("seg-*"))) == caches.dense.stats().segments


@pytest.mark.parametrize(
    ("point", "action"),
    [(point, ("enospc", "eio")[number % 2]) for number, point in enumerate(POINTS)],
)
def test_a_failing_disk_leaves_the_cache_as_it_was(tmp_path: Path, point: str, action: str) -> None:
    """The outcome says so; what was there before still answers; a later catch-up succeeds."""
    with disk_store(tmp_path) as store:
        caches = Caches(tmp_path)
        first_state(store)
        caches.level(store)
        caches.close()
        second_state(store)
        outcomes = dict(
            zip(
                ("lexical", "dense"), outcomes_of(child(tmp_path, f"{point}={action}")), strict=True
            )
        )
        _, _, behind, problem = outcomes.pop(point.partition(".")[0])
        assert problem is not None
        assert behind == 0 or not point.endswith(("after_manifest", "after_rename"))
        ((_, _, behind, problem),) = outcomes.values()
        assert (behind, problem) == (0, None)
        caches.level(store)
        assert caches.answers() == fresh_answers(store, tmp_path / "fresh")


@pytest.mark.parametrize("file_bytes_max", [64, 700, 3_000])
def test_files_that_may_not_grow(tmp_path: Path, file_bytes_max: int) -> None:
    """A full disk is told, not raised; the home works again when there is room."""
    with disk_store(tmp_path) as store:
        first_state(store)
        put(store, "long", ["long passage " * 400 + str(n) for n in range(50)])
        for _, _, behind, problem in outcomes_of(child(tmp_path, "", file_bytes_max)):
            assert problem is not None or behind == 0
        caches = Caches(tmp_path)
        caches.level(store)
        assert caches.answers() == fresh_answers(store, tmp_path / "fresh")


def test_processes_that_catch_up_at_once(tmp_path: Path) -> None:
    """One does it, the others find it done."""
    with disk_store(tmp_path) as store:
        first_state(store)
        processes = [child(tmp_path) for _ in range(4)]
        outcomes = [outcomes_of(process) for process in processes]
        assert all(o[2:] == (0, None) for pair in outcomes for o in pair)
        for cache in (0, 1):
            assert sum(pair[cache][1] for pair in outcomes) == 1
        caches = Caches(tmp_path)
        caches.level(store)
        assert caches.answers() == fresh_answers(store, tmp_path / "fresh")


def test_searching_while_another_thread_catches_up(tmp_path: Path) -> None:
    """Every answer is that of some moment: what was there throughout is always found."""
    store = memory_store()
    caches = Caches(tmp_path)
    (needle,) = put(store, "needle", ["alpha needle"])
    caches.level(store)
    done = threading.Event()
    missed: list[str] = []

    def ask() -> None:
        while not done.is_set():
            if needle not in caches.lexical.search("needle", 5).nos:
                missed.append("lexical")
            if needle not in caches.dense.search(vector_of("alpha needle"), 1).nos:
                missed.append("dense")

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for n in range(12):
            put(store, f"s{n}", [f"alpha {n}", "beta"])
            caches.level(store)
            if n % 5 == 4:
                caches.lexical.catch_up(store, wait_s=5, rebuild=True)
                caches.dense.catch_up(store, wait_s=5, rebuild=True)
    finally:
        done.set()
        for thread in threads:
            thread.join()
    assert missed == []
