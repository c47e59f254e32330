"""A home's caches write where they lie, and through no link."""

from pathlib import Path

import pytest
from index_home import DIM, FINGERPRINT, LOCAL, memory_store, put

from kb.search.index.dense import DenseIndex
from kb.search.index.lexical import LexicalIndex


@pytest.mark.parametrize("kind", ["dense", "lexical"])
def test_a_folder_that_is_a_link_is_not_written_to(tmp_path: Path, kind: str) -> None:
    """The cache is kept in memory, says why, and where the link leads nothing is made."""
    store = memory_store()
    put(store, "one", ["one"])
    (tmp_path / "outside").mkdir()
    index = (
        DenseIndex(tmp_path / "caches", FINGERPRINT, DIM)
        if kind == "dense"
        else LexicalIndex(tmp_path / "caches", LOCAL)
    )
    folder = index.lock_path.parent
    folder.parent.mkdir(parents=True, exist_ok=True)
    folder.symlink_to(tmp_path / "outside")
    state = index.catch_up(store, wait_s=1.0)
    assert "the folder of a cache is a link" in (state.problem or "")
    assert list((tmp_path / "outside").iterdir()) == []
    index.close()
