"""A store that is looked at from outside: by plain reads, in a process of its own."""

import os
import random
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final

import pytest
from child_processes import finished, start
from fakes import FakeClock

from kb.errors import StoreDamaged
from kb.store.codec import seal
from kb.store.lmdb_env import LmdbEnvironment
from kb.store.meta import get_word, set_word
from kb.store.store import Store
from kb.store.survey import StoreSurvey, survey_store
from kb.store.surveyor import main
from kb.store.tree import DataFile

SEED: Final = 20_261_122
PAGE: Final = 4096
WORDS: Final = 150


def word(number: int) -> str:
    """Some fill a page, and some have pages of their own."""
    return f"word {number} " * (number * 3)


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A closed store whose pages were used, freed and used again."""
    folder = tmp_path_factory.mktemp("sound")
    with Store.open(folder, FakeClock()) as store:
        for start in range(0, WORDS, 50):
            with store.write() as txn:
                for number in range(start, start + 50):
                    set_word(txn, str(number), word(number))
        for number in range(0, WORDS, 3):
            with store.write() as txn:
                txn.delete("meta", f"word:{number}".encode())
                txn.put("facets", b"kind\0%d" % number, b"")
    (folder / "lock.mdb").unlink()
    return folder


def survey(folder: Path) -> StoreSurvey:
    """As the child would, in this process: that nothing here can end it is what is tested."""
    return main(folder, pin=False, to=None)


def copied(folder: Path, to: Path) -> Path:
    shutil.copytree(folder, to)
    return to


def words_in(folder: Path) -> dict[int, str]:
    with Store.open(folder, FakeClock()) as store, store.read() as txn:
        found = {number: get_word(txn, str(number)) for number in range(WORDS)}
    return {number: text for number, text in found.items() if text}


def pages_of(folder: Path) -> int:
    return (folder / "data.mdb").stat().st_size // PAGE


def zero(folder: Path, page: int) -> None:
    with open(folder / "data.mdb", "r+b") as file:
        file.seek(page * PAGE)
        file.write(bytes(PAGE))


def test_a_sound_store_is_told_so(sound: Path) -> None:
    """The child says the same as a look in this process, and which file it looked at."""
    told = survey_store(sound)
    assert told == survey(sound)
    assert told.sound
    assert told.is_safe
    assert not told.needs_salvage
    assert (told.device, told.inode) == (
        (sound / "data.mdb").stat().st_dev,
        (sound / "data.mdb").stat().st_ino,
    )
    assert {table.name: table.readable for table in told.tables}["meta"] == 101
    assert not (sound / "lock.mdb").exists()


def _noting(problems: list[tuple[str, str]]) -> Callable[[str, str], None]:
    return lambda place, problem: problems.append((place, problem))


def test_histories_are_sound(tmp_path: Path) -> None:
    """Whatever is put and deleted, LMDB leaves what the survey expects: no false alarm."""
    rng = random.Random(SEED)
    env = LmdbEnvironment(tmp_path)
    tables = ("docs", "facets", "chunks", "log")
    keys: dict[str, set[bytes]] = {table: set() for table in tables}
    try:
        for _ in range(40):
            with env.write() as txn:
                for _ in range(rng.randint(1, 120)):
                    table = rng.choice(tables)
                    if keys[table] and rng.random() < 0.45:
                        key = rng.choice(sorted(keys[table]))
                        keys[table].discard(key)
                        txn.delete(table, key)
                        continue
                    key = rng.randbytes(rng.choice((1, 8, 30, 400)))
                    keys[table].add(key)
                    size = rng.choice((0, 10, 900, 2_030, 3_000, 9_000))
                    txn.put(table, key, seal(table, key, rng.randbytes(size)))
            problems: list[tuple[str, str]] = []
            fd = os.open(tmp_path / "data.mdb", os.O_RDONLY)
            file = DataFile(fd, _noting(problems))
            found = {table.name: len(list(file.records(table))) for table in file.tables()}
            os.close(fd)
            assert problems == []
            assert {name: found[name] for name in tables} == {n: len(k) for n, k in keys.items()}
    finally:
        env.close()


def test_a_zeroed_page_loses_what_stood_on_it_and_no_more(sound: Path, tmp_path: Path) -> None:
    """What is salvaged is what was there, less what is told of; what was removed stays so."""
    before = words_in(copied(sound, tmp_path / "whole"))
    whole = survey(sound)
    counts = {"untouched": 0, "whole": 0, "salvaged": 0}
    for page in range(pages_of(sound)):
        folder = copied(sound, tmp_path / f"{page}")
        zero(folder, page)
        to = tmp_path / f"{page}-new"
        to.mkdir()
        told = main(folder, pin=False, to=to)
        if told.sound:
            # Nothing leads to that page.
            assert told.tables == whole.tables
            counts["untouched"] += 1
            continue
        assert told.problems
        kept = words_in(to) if (to / "data.mdb").exists() else {}
        if any(problem.place == "root" for problem in told.problems):
            # The other root is of the change before, and the survey says that it may be.
            assert kept.keys() - before.keys() <= {WORDS - 3}
            counts["salvaged"] += 1
            continue
        assert kept.items() <= before.items()
        meta = [table for table in told.tables if table.name == "meta"]
        named = meta[0].records - meta[0].readable if meta else len(before) + 1
        # The word `format` is one more.
        assert len(before) - len(kept) in (named, named - 1)
        counts["whole" if len(kept) == len(before) else "salvaged"] += 1
        shutil.rmtree(folder)
    print(counts)
    assert counts["salvaged"] >= 20
    assert counts["untouched"] >= 5


def test_a_large_value_that_became_smaller_is_sound(tmp_path: Path) -> None:
    """Replaced in the same change, it keeps the pages that the larger one had."""
    env = LmdbEnvironment(tmp_path)
    with env.write() as txn:
        for size in (30_000, 5_000):
            txn.put("docs", b"key", seal("docs", b"key", bytes(size)))
    env.close()
    problems: list[tuple[str, str]] = []
    fd = os.open(tmp_path / "data.mdb", os.O_RDONLY)
    file = DataFile(fd, _noting(problems))
    found = {
        table.name: [record.value for record in file.records(table)] for table in file.tables()
    }
    os.close(fd)
    assert problems == []
    assert found["docs"] == [seal("docs", b"key", bytes(5_000))]


_READ_ALL: Final = """
import sys
from pathlib import Path
from kb.errors import KbError
from kb.store.kv import TABLES
from kb.store.lmdb_env import LmdbEnvironment
try:
    env = LmdbEnvironment(Path(sys.argv[1]))
    with env.read() as txn:
        rows = [(table, key) for table in TABLES for key, _ in txn.scan(table)]
        assert all(txn.get(table, key) is not None for table, key in rows)
    with env.write() as txn:
        for table, key in rows:
            txn.put(table, key, bytes(300))
    with env.write() as txn:
        for table, key in rows:
            txn.delete(table, key)
    env.close()
except KbError:
    pass
"""


def damages(rng: random.Random, size: int) -> Iterator[tuple[int, bytes]]:
    """Some bytes, and where they go."""
    page = rng.randrange(size // PAGE) * PAGE
    for _ in range(rng.choice((1, 1, 1, 4))):
        # Heads are short and matter most.
        at = rng.choice((rng.randrange(8, 64), rng.randrange(16), rng.randrange(PAGE)))
        yield page + at, rng.choice((bytes(1), b"\xff", rng.randbytes(1), rng.randbytes(8)))


def test_what_is_called_safe_does_not_end_a_process(sound: Path, tmp_path: Path) -> None:
    """After any damage that the survey calls safe, LMDB reads and writes every record."""
    rng = random.Random(SEED)
    size = (sound / "data.mdb").stat().st_size
    safe = 0
    for attempt in range(150):
        folder = copied(sound, tmp_path / f"{attempt}")
        with open(folder / "data.mdb", "r+b") as file:
            for at, data in damages(rng, size):
                file.seek(at)
                file.write(data[: size - at])
        told = survey(folder)
        if told.is_safe and safe < 25:
            safe += 1
            ended = finished(_READ_ALL, folder)
            assert (ended.returncode, ended.stderr) == (0, ""), attempt
        shutil.rmtree(folder)
    assert safe >= 10


@pytest.mark.parametrize("part", [0.0, 0.001, 0.1, 0.5, 0.9, 0.95])
def test_a_cut_file_is_not_sound(sound: Path, tmp_path: Path, part: float) -> None:
    """However much is missing, the survey says so and names the pages."""
    folder = copied(sound, tmp_path / "cut")
    os.truncate(folder / "data.mdb", int((sound / "data.mdb").stat().st_size * part))
    told = survey_store(folder)
    assert not told.sound
    assert not told.is_safe
    assert told.problems


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    """A folder, a pipe and nothing are told of at once, and none is waited for."""
    for name, make in (
        ("nothing", lambda path: None),
        ("folder", lambda path: path.mkdir()),
        ("pipe", os.mkfifo),
    ):
        (tmp_path / name).mkdir()
        make(tmp_path / name / "data.mdb")
        with pytest.raises(StoreDamaged, match=r"data\.mdb"):
            survey_store(tmp_path / name)


def test_garbage_has_no_root(tmp_path: Path) -> None:
    """Bytes that never were a store reach nothing."""
    (tmp_path / "data.mdb").write_bytes(random.Random(SEED).randbytes(20 * PAGE))
    told = survey_store(tmp_path)
    assert (told.sound, told.is_safe, told.has_root, told.docs_lost) == (False, False, False, None)


def test_a_reader_that_crashes_is_told_of(
    sound: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Whatever ends the child, the one that asks goes on."""
    crash = tmp_path / "python"
    for name in ("ABRT", "BUS", "SEGV"):
        crash.write_text(f"#!/bin/sh\nkill -{name} $$\n")
        crash.chmod(0o700)
        monkeypatch.setattr("sys.executable", str(crash))
        told = survey_store(sound)
        assert [found.problem for found in told.problems] == [f"its reader crashed (SIG{name})"]
        assert not told.sound


def test_a_store_that_is_written_to_is_sound(tmp_path: Path) -> None:
    """Beside a writer one moment is looked at, and no page of it is used again meanwhile."""
    code = """
import sys
from pathlib import Path
from kb.store.meta import set_word
from kb.store.store import Store
with Store.open(Path(sys.argv[1])) as store:
    print("open", flush=True)
    number = 0
    while True:
        number += 1
        with store.write() as txn:
            for word in range(40):
                set_word(txn, str((number * 7 + word) % 400), "text " * (number % 300))
"""
    writer = start(code, tmp_path)
    try:
        assert writer.stdout is not None
        assert writer.stdout.readline() == "open\n"
        for _ in range(5):
            told = survey_store(tmp_path, beside_writers=True)
            assert told.problems == ()
            assert told.sound
    finally:
        writer.kill()
        writer.communicate()
