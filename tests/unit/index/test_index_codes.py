"""Eight bits find what the vectors themselves would have."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from index_home import DIM, FINGERPRINT, memory_store, put_many, vector_of
from numpy.typing import NDArray

from kb.search.index import codes, scan
from kb.search.index.dense import DenseIndex
from kb.search.index.files import CacheDamaged
from kb.search.index.segments import (
    Segment,
    SegmentWriter,
    map_segment,
    memory_segment,
    unit_rows,
    with_dead_rows,
)

Rows = NDArray[np.float32]
Numbers = NDArray[np.uint64]

ROWS = 17_084
SIZE = 24


def random(rng: np.random.Generator) -> Rows:
    return rng.standard_normal((ROWS, SIZE), dtype=np.float32)


def crowded(rng: np.random.Generator) -> Rows:
    """All within a hair of each other: far more of them than codes can tell apart."""
    return 1 + 1e-3 * random(rng)


def repeated(rng: np.random.Generator) -> Rows:
    rows = random(rng)
    rows[ROWS // 2 :] = rows[0]
    return rows


def spiky(rng: np.random.Generator) -> Rows:
    """One coordinate has nearly all of the length, and some rows have none."""
    rows = random(rng) ** 9
    rows[::50] = 0
    return rows


KINDS = (random, crowded, repeated, spiky)


def written(folder: Path, rows: Rows) -> Segment:
    nos = np.arange(1, len(rows) + 1, dtype="<u8")
    with SegmentWriter(folder, rows.shape[1]) as writer:
        writer.append(memory_segment(nos, nos, rows))
    return writer.finish()


def found(
    parts: list[Segment], query: Rows, limit: int, allowed: Numbers | None = None
) -> list[int]:
    rows = scan.candidate_rows(parts, query, limit, allowed, None)
    return scan.rank_exact(parts, rows, query, limit).nos


def best(rows: Rows, query: Rows, limit: int, among: NDArray[np.bool_] | None = None) -> list[int]:
    scores = scan.exact_cosines(rows, query)
    if among is not None:
        scores[~among] = -np.inf
    order: list[int] = np.lexsort((np.arange(len(rows)), -scores)).tolist()
    return [place + 1 for place in order[:limit]]


def queries(rows: Rows) -> list[Rows]:
    rng = np.random.default_rng(2)
    near = rows[rng.integers(len(rows), size=6)] + 0.05 * rng.standard_normal((6, SIZE))
    found = [scan.unit_vector(query) for query in (*near, np.eye(SIZE)[3], np.ones(SIZE))]
    return [query for query in found if query is not None]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("limit", [1, 200, ROWS - 5])
def test_the_best_are_those_of_a_full_look(
    tmp_path: Path, kind: Callable[[np.random.Generator], Rows], limit: int
) -> None:
    rows = unit_rows(kind(np.random.default_rng(1)))
    segment = written(tmp_path, rows)
    assert segment.codes is not None
    for query in queries(rows):
        assert found([segment], query, limit) == best(rows, query, limit)


@pytest.mark.parametrize("kind", KINDS)
def test_no_row_is_further_off_than_is_said(
    tmp_path: Path, kind: Callable[[np.random.Generator], Rows]
) -> None:
    rows = unit_rows(kind(np.random.default_rng(3)))
    segment = written(tmp_path, rows)
    assert segment.codes is not None
    for query in queries(rows):
        rough, error = segment.codes.products(query)
        off = segment.codes.error_bounds(slice(None), error)
        exact = rows[: segment.codes.rows].astype(np.float64) @ query.astype(np.float64)
        assert (np.abs(rough - exact) <= off + 1e-6).all()
        # A bound that any figure keeps would leave nothing out.
        assert off.max() < 0.1
        assert off.max() <= segment.codes.error_max(error) + 1e-6


def test_few_rows_must_be_looked_at_in_full(tmp_path: Path) -> None:
    rows = unit_rows(random(np.random.default_rng(4)))
    segment = written(tmp_path, rows)
    assert segment.codes is not None
    for query in queries(rows):
        rough, error = segment.codes.products(query)
        off = segment.codes.error_bounds(slice(None), error)
        hundredth = scan.exact_cosines(rows[[best(rows, query, 100)[-1] - 1]], query)
        assert 100 <= (rough + off >= hundredth).sum() < 400


def test_what_may_not_be_found_takes_no_place(tmp_path: Path) -> None:
    """Dead rows, rows of sources that are not allowed, and a second segment beside them."""
    rows = unit_rows(random(np.random.default_rng(5)))
    whole = written(tmp_path, rows[:-300])
    dead = np.zeros(len(whole.nos), dtype=np.bool_)
    dead[::3] = True
    later = np.arange(len(rows) - 299, len(rows) + 1, dtype="<u8")
    parts = [with_dead_rows(tmp_path, whole, dead), memory_segment(later, later, rows[-300:])]
    alive = np.ones(len(rows), dtype=np.bool_)
    alive[: len(dead)] = ~dead
    for share in (2, 40):
        allowed = np.arange(1, len(rows) + 1, share, dtype="<u8")
        among = alive & np.isin(np.arange(1, len(rows) + 1), allowed)
        for query in queries(rows):
            assert found(parts, query, 200) == best(rows, query, 200, alive)
            assert found(parts, query, 200, allowed) == best(rows, query, 200, among)


def test_a_short_segment_has_no_codes(tmp_path: Path) -> None:
    rows = unit_rows(random(np.random.default_rng(6))[: codes.ROWS_MIN - 1])
    assert written(tmp_path, rows).codes is None
    assert list(tmp_path.glob("cod-*")) == []


def test_the_product_is_the_graph_that_it_is_said_to_be() -> None:
    from onnx import TensorProto, helper

    node = helper.make_node("MatMulInteger", ["a", "b"], ["y"])
    kinds = {"a": TensorProto.UINT8, "b": TensorProto.INT8, "y": TensorProto.INT32}
    a, b, y = (helper.make_tensor_value_info(name, kind, None) for name, kind in kinds.items())
    graph = helper.make_graph([node], "g", [a, b], [y])
    opset = helper.make_opsetid("", 13)
    made = helper.make_model(graph, opset_imports=[opset], ir_version=8)
    assert onnx.load_model_from_string(codes.PRODUCT) == made


def test_codes_that_rot_are_named_and_written_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(codes, "ROWS_MIN", 2_048)
    store = memory_store()
    put_many(store, 2_500)
    index = DenseIndex(tmp_path / "dense", FINGERPRINT, DIM)
    index.catch_up(store, wait_s=5)
    (path,) = index.folder.glob("cod-*")
    content = bytearray(path.read_bytes())
    content[1_000] ^= 0xFF
    path.write_bytes(content)
    assert index.verify() == [f"dense: {path.name}"]
    assert index.catch_up(store, wait_s=5).rebuilt
    assert index.verify() == []
    query = vector_of("passage 7 of many")
    assert index.search(query, 1).scores == pytest.approx([1.0])
    assert [path.name for path in index.folder.glob("cod-*")] != [path.name]


def test_codes_of_another_length_are_damage(tmp_path: Path) -> None:
    rows = unit_rows(random(np.random.default_rng(7)))
    segment = written(tmp_path, rows)
    (path,) = tmp_path.glob("cod-*")
    path.write_bytes(path.read_bytes()[:-4])
    assert segment.entry is not None
    with pytest.raises(CacheDamaged):
        map_segment(tmp_path, segment.entry, SIZE)


class _SaturatedProduct:
    """The product of a processor that adds two products up in sixteen bits."""

    def run(self, _names: None, of: dict[str, NDArray[Any]]) -> list[NDArray[np.int32]]:
        """As the product of `PRODUCT`."""
        pairs = of["a"].reshape(-1, 1).astype(np.int32) * of["b"].astype(np.int32)
        sums = pairs.reshape(len(pairs), -1, 2, pairs.shape[-1]).sum(axis=2)
        return [np.clip(sums, -(1 << 15), (1 << 15) - 1).sum(axis=1, dtype=np.int32)]


def test_a_query_has_a_bit_less_where_products_overflow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = unit_rows(random(np.random.default_rng(6)))
    segment = written(tmp_path, rows)
    monkeypatch.setattr(codes, "_product", _SaturatedProduct)
    codes._query_levels.cache_clear()
    try:
        assert codes._query_levels(SIZE) == 63
        query = rows[7]
        assert found([segment], query, 20) == best(rows, query, 20)
    finally:
        codes._query_levels.cache_clear()
