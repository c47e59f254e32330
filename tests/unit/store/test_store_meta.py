"""Counters, words and the store's own stamp."""

from pathlib import Path

import pytest
from fakes import FakeClock

from kb.errors import NotFound, StoreTooNew
from kb.store.memory import MemoryEnvironment
from kb.store.meta import get_word, last_number, next_number, next_numbers, set_word
from kb.store.store import FORMAT, Store


def test_counters_start_at_one_and_never_repeat() -> None:
    """Numbers come from 1 without gaps, and each counter counts alone."""
    with MemoryEnvironment().write() as txn:
        assert last_number(txn, "chunk") == 0
        assert [next_number(txn, "chunk") for _ in range(3)] == [1, 2, 3]
        assert next_number(txn, "job") == 1
        assert (last_number(txn, "chunk"), last_number(txn, "job")) == (3, 1)


def test_numbers_in_a_row() -> None:
    """Taking several gives the first; the next one follows the last; taking none takes none."""
    with MemoryEnvironment().write() as txn:
        assert next_numbers(txn, "chunk", 5) == 1
        assert next_numbers(txn, "chunk", 0) == 6
        assert next_number(txn, "chunk") == 6


def test_an_aborted_number_is_given_again() -> None:
    """A number taken in a transaction that was dropped was never given out."""
    env = MemoryEnvironment()
    with pytest.raises(RuntimeError), env.write() as txn:
        raise RuntimeError(next_number(txn, "chunk"))
    with env.write() as txn:
        assert next_number(txn, "chunk") == 1


def test_words() -> None:
    """A word is kept under its name, is empty before, and is not taken for a counter."""
    with MemoryEnvironment().write() as txn:
        assert get_word(txn, "model") == ""
        set_word(txn, "model", "naïve-模型")
        assert get_word(txn, "model") == "naïve-模型"
        assert last_number(txn, "model") == 0


def test_a_new_store_is_stamped(tmp_path: Path) -> None:
    """Opening makes the folder and its format stamp; reopening finds both."""
    folder = tmp_path / "home" / "store"
    for _ in range(2):
        with Store.open(folder, FakeClock()) as store, store.read() as txn:
            assert get_word(txn, "format") == FORMAT
    assert folder.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("options", [{"create": False}, {"read_only": True}])
def test_a_store_that_is_not_there(tmp_path: Path, options: dict[str, bool]) -> None:
    """Without leave to make it, an absent store is NotFound, and no folder is left behind."""
    with pytest.raises(NotFound):
        Store.open(tmp_path / "store", FakeClock(), **options)
    assert list(tmp_path.iterdir()) == []


def test_another_format_is_refused(tmp_path: Path) -> None:
    """A store of a format to come is refused, and left as it was."""
    with Store.open(tmp_path, FakeClock()) as store, store.write() as txn:
        set_word(txn, "format", "3")
    for read_only in (False, True):
        with pytest.raises(StoreTooNew, match=r"format 3; this one reads format 2\); update kb"):
            Store.open(tmp_path, FakeClock(), read_only=read_only)


def test_closing_twice_is_harmless() -> None:
    """A store may be closed inside its own block."""
    with Store(MemoryEnvironment(), FakeClock()) as store:
        assert (store.size_bytes(), store.reap_readers()) == (0, 0)
        store.close()
