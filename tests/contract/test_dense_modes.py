"""Exact scan and graph, one contract: the same answers while the graph searches wide enough."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "unit" / "index"))

from index_home import DIM, FINGERPRINT, memory_store, put, put_many, remove, similar, vector_of

from kb.search.index.dense import DenseIndex
from kb.store.store import Store

ROWS = 800
WIDE = 4_000


@pytest.fixture
def store() -> Store:
    store = memory_store()
    put_many(store, ROWS)
    return store


@pytest.fixture
def exact(tmp_path: Path) -> DenseIndex:
    return DenseIndex(tmp_path / "exact", FINGERPRINT, DIM, mode="exact")


@pytest.fixture
def graph(tmp_path: Path) -> DenseIndex:
    return DenseIndex(tmp_path / "graph", FINGERPRINT, DIM, mode="hnsw", ef=WIDE)


def assert_same(exact: DenseIndex, graph: DenseIndex, **filters: frozenset[int]) -> None:
    for n in range(20):
        query = vector_of(f"query {n}")
        assert graph.search(query, 25, **filters) == exact.search(query, 25, **filters)


def level(store: Store, *indexes: DenseIndex) -> None:
    for index in indexes:
        assert index.catch_up(store, wait_s=5).behind == 0


def test_without_a_graph_the_rows_are_scanned(
    store: Store, exact: DenseIndex, graph: DenseIndex
) -> None:
    """Catching up never waits for a graph to be built."""
    level(store, exact, graph)
    assert graph.stats().mode == "exact"
    assert_same(exact, graph)


def test_same_answers(store: Store, exact: DenseIndex, graph: DenseIndex) -> None:
    """Of a graph over all rows."""
    level(store, exact, graph)
    assert graph.merge(wait_s=1) is None
    assert graph.stats().mode == "hnsw"
    assert_same(exact, graph)


def test_same_answers_under_filters(store: Store, exact: DenseIndex, graph: DenseIndex) -> None:
    """By source, by passage, by both."""
    level(store, exact, graph)
    assert graph.build_hnsw(wait_s=1) is None
    for filters in (
        {"allowed": frozenset(range(1, ROWS, 7))},
        {"allowed": frozenset([3])},
        {"restrict_nos": frozenset(range(1, ROWS, 3))},
        {"allowed": frozenset(range(1, ROWS, 7)), "restrict_nos": frozenset(range(1, 99))},
    ):
        assert_same(exact, graph, **filters)


def test_same_answers_with_a_tail_and_with_deletions(
    store: Store, exact: DenseIndex, graph: DenseIndex
) -> None:
    """Rows that came after the graph are scanned, those that went since are left out."""
    level(store, exact, graph)
    assert graph.build_hnsw(wait_s=1) is None
    for n in range(0, ROWS, 2):
        remove(store, f"many/{n}")
    put(store, "many/1", ["another text in its place"])
    for n in range(40):
        put(store, f"new{n}", [f"query {n}"])
        level(store, exact, graph)
    assert graph.stats().mode == "hnsw"
    assert_same(exact, graph)
    assert graph.search(vector_of("query 3"), 1).scores == pytest.approx([1.0])


def test_a_worn_graph_is_made_again(store: Store, exact: DenseIndex, graph: DenseIndex) -> None:
    """By `merge`, past a fifth of dead or of later rows; not before."""
    level(store, exact, graph)
    graph.merge(wait_s=1)
    first = sorted(graph.folder.glob("hnsw-*"))
    put(store, "a", ["one"])
    level(store, exact, graph)
    graph.merge(wait_s=1)
    assert sorted(graph.folder.glob("hnsw-*")) == first
    for n in range(ROWS // 3):
        remove(store, f"many/{n}")
    level(store, exact, graph)
    graph.merge(wait_s=1)
    assert sorted(graph.folder.glob("hnsw-*")) != first
    assert graph.stats().dead_rows == 0
    assert_same(exact, graph)


def test_auto_takes_the_graph_from_the_crossover_on(tmp_path: Path, store: Store) -> None:
    """And scans below it."""
    for rows, mode in ((ROWS + 1, "exact"), (ROWS, "hnsw")):
        index = DenseIndex(tmp_path / mode, FINGERPRINT, DIM, crossover_rows=rows)
        level(store, index)
        index.merge(wait_s=1)
        assert index.stats().mode == mode


def test_a_graph_survives_reopening(
    tmp_path: Path, store: Store, exact: DenseIndex, graph: DenseIndex
) -> None:
    """It is loaded, not built again."""
    level(store, exact, graph)
    graph.merge(wait_s=1)
    again = DenseIndex(tmp_path / "graph", FINGERPRINT, DIM, mode="hnsw", ef=WIDE)
    level(store, again)
    assert again.stats().mode == "hnsw"
    assert_same(exact, again)


@pytest.mark.parametrize("damage", ["flip", "truncate", "zero", "delete"])
def test_a_damaged_graph_is_not_loaded(
    tmp_path: Path, store: Store, exact: DenseIndex, graph: DenseIndex, damage: str
) -> None:
    """The scan answers in its place, and `merge` makes it again."""
    level(store, exact, graph)
    graph.merge(wait_s=1)
    graph.close()
    (path,) = graph.folder.glob("hnsw-*")
    content = bytearray(path.read_bytes())
    if damage == "flip":
        content[20] ^= 4
    path.write_bytes(
        {"truncate": content[:100], "zero": bytes(len(content))}.get(damage, bytes(content))
    )
    if damage == "delete":
        path.unlink()
    again = DenseIndex(tmp_path / "graph", FINGERPRINT, DIM, mode="hnsw", ef=WIDE)
    level(store, again)
    assert_same(exact, again)
    assert again.verify() == [f"dense: {path.name}"]
    again.merge(wait_s=1)
    assert again.verify() == []
    assert_same(exact, again)


def test_few_rows_or_none(tmp_path: Path) -> None:
    """A limit beyond the rows brings all of them."""
    store = memory_store()
    index = DenseIndex(tmp_path / "few", FINGERPRINT, DIM, mode="hnsw")
    level(store, index)
    assert index.merge(wait_s=1) is None
    assert index.search(vector_of("x"), 5).nos == []
    nos = put(store, "a", ["one", "two"])
    level(store, index)
    index.merge(wait_s=1)
    assert sorted(index.search(vector_of("x"), 5).nos) == nos
    assert not np.isnan(similar(index, vector_of("x"), nos)).any()


def test_a_home_with_a_graph_works_without_its_library(
    tmp_path: Path,
    store: Store,
    exact: DenseIndex,
    graph: DenseIndex,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """All is scanned, dead rows go, no call fails; with the library back there is a graph again."""
    level(store, exact, graph)
    graph.merge(wait_s=1)
    assert list(graph.folder.glob("hnsw-*"))
    monkeypatch.setattr("kb.search.index.hnsw.is_available", lambda: False)
    monkeypatch.setitem(sys.modules, "hnswlib", None)
    for mode in ("hnsw", "auto"):
        again = DenseIndex(tmp_path / "graph", FINGERPRINT, DIM, mode=mode, crossover_rows=1)
        level(store, again)
        assert again.stats().mode == "exact"
        assert again.verify() == []
        assert_same(exact, again)
        assert again.merge(wait_s=1) is None
        problem = again.build_hnsw(wait_s=1)
        assert problem is not None
        assert "pip install 'kb-search[hnsw]'" in problem
    put(store, "a", ["one"])
    for n in range(ROWS // 3):
        remove(store, f"many/{n}")
    level(store, exact, again)
    assert again.merge(wait_s=1) is None
    assert again.stats().dead_rows == 0
    assert_same(exact, again)
    monkeypatch.undo()
    back = DenseIndex(tmp_path / "graph", FINGERPRINT, DIM, mode="hnsw", ef=WIDE)
    level(store, back)
    assert back.merge(wait_s=1) is None
    assert back.stats().mode == "hnsw"
    assert_same(exact, back)
