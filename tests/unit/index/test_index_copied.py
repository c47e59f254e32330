"""A home that was copied, or came to another disk: its caches are as good there."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from index_home import DIM, FINGERPRINT, LOCAL, memory_store, put, vector_of

from kb.search.index.dense import DenseIndex
from kb.search.index.files import sha256_file
from kb.search.index.lexical import LexicalIndex
from kb.store.content.lock import file_lock

Opened = Callable[[Path], DenseIndex | LexicalIndex]


def dense(folder: Path) -> DenseIndex:
    return DenseIndex(folder, FINGERPRINT, DIM)


def lexical(folder: Path) -> LexicalIndex:
    return LexicalIndex(folder, LOCAL)


def found(index: DenseIndex | LexicalIndex) -> list[int]:
    if isinstance(index, DenseIndex):
        return index.search(vector_of("one"), 1).nos
    return index.search("one", 1).nos


@pytest.mark.parametrize("opened", [dense, lexical])
def test_a_copy_is_read_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, opened: Opened
) -> None:
    """Not at every start, and not rebuilt; where nothing can be written, once to a process."""
    store = memory_store()
    one, _ = put(store, "a", ["one", "two"])
    assert opened(tmp_path / "old").catch_up(store, wait_s=5).problem is None
    shutil.copytree(tmp_path / "old", tmp_path / "new")
    read: list[str] = []

    def counted(path: Path) -> str:
        read.append(path.name)
        return sha256_file(path)

    monkeypatch.setattr("kb.search.index.files.sha256_file", counted)
    index = opened(tmp_path / "new")
    with file_lock(index.lock_path, 0):
        assert index.catch_up(store, wait_s=0).problem is None
        assert read
        read.clear()
        assert not index.catch_up(store, wait_s=0).rebuilt
        assert index.has_new_marks
    assert read == []
    assert not index.catch_up(store, wait_s=0).rebuilt
    assert not index.has_new_marks
    read.clear()
    other = opened(tmp_path / "new")
    for each in (other, index):
        assert not each.catch_up(store, wait_s=0).rebuilt
        assert found(each) == [one]
    assert read == []
    assert not other.has_new_marks


@pytest.mark.parametrize("opened", [dense, lexical])
def test_a_copy_that_is_not_whole_is_made_anew(tmp_path: Path, opened: Opened) -> None:
    """That it has been copied hides no damage."""
    store = memory_store()
    one, _ = put(store, "a", ["one", "two"])
    opened(tmp_path / "old").catch_up(store, wait_s=5)
    shutil.copytree(tmp_path / "old", tmp_path / "new")
    files = [path for path in (tmp_path / "new").rglob("*") if path.is_file()]
    largest = max(files, key=lambda path: (path.suffix in (".store", ".bin"), path.stat().st_size))
    content = bytearray(largest.read_bytes())
    content[len(content) // 2] ^= 1
    largest.write_bytes(content)
    index = opened(tmp_path / "new")
    assert index.catch_up(store, wait_s=5).rebuilt
    assert found(index) == [one]
