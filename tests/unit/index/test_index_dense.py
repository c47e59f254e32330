"""The dense cache follows the log."""

from pathlib import Path

import numpy as np
import pytest
from index_home import (
    DIM,
    FINGERPRINT,
    memory_store,
    put,
    put_many,
    remove,
    similar,
    source_no,
    text_hash,
    truncate_log,
    vector_of,
)

from kb.search.index.dense import DenseIndex
from kb.search.index.segments import SegmentWriter, memory_segment, unit_rows, write_merged
from kb.store import chunks, log
from kb.store.store import Store


@pytest.fixture
def store() -> Store:
    return memory_store()


def new_index(folder: Path, **options: object) -> DenseIndex:
    return DenseIndex(folder / "dense", FINGERPRINT, DIM, **options)


@pytest.fixture
def index(tmp_path: Path) -> DenseIndex:
    return new_index(tmp_path)


def caught_up(index: DenseIndex, store: Store) -> DenseIndex:
    outcome = index.catch_up(store, wait_s=5)
    assert (outcome.behind, outcome.problem) == (0, None)
    return index


def test_the_nearest_come_first(index: DenseIndex, store: Store) -> None:
    """By cosine, whatever the query's length."""
    a, b, c = put(store, "a", ["one", "two", "three"])
    caught_up(index, store)
    query = vector_of("one") * 3 + vector_of("three")
    hits = index.search(query, 3)
    assert (hits.nos[0], hits.nos[1]) == (a, c)
    assert b in hits.nos
    assert hits.scores == sorted(hits.scores, reverse=True)
    assert hits.scores == similar(index, query, hits.nos).tolist()


@pytest.mark.parametrize("query", [np.zeros(DIM), np.full(DIM, np.nan), np.full(DIM, np.inf)])
def test_a_query_without_direction_finds_nothing(
    index: DenseIndex, store: Store, query: np.ndarray
) -> None:
    """It is no error."""
    put(store, "a", ["one"])
    caught_up(index, store)
    assert index.search(query, 3).nos == []
    assert np.isnan(similar(index, query, [1])).all()


def test_equal_vectors_tie_and_go_by_number(index: DenseIndex, store: Store) -> None:
    """Wherever in the segments they lie."""
    put_many(store, 40)
    nos = [put(store, name, ["same text"])[0] for name in "abcdefgh"]
    caught_up(index, store)
    put_many(store, 3)
    later = [put(store, name, ["same text"])[0] for name in "ijk"]
    caught_up(index, store)
    hits = index.search(vector_of("same text"), 5)
    assert hits.nos == nos[:5]
    assert len(set(hits.scores)) == 1
    assert index.search(vector_of("same text"), 11).nos == nos + later


def test_vectors_that_come_later_are_taken_up(index: DenseIndex, store: Store) -> None:
    """A passage is found once the log says that its vector is there."""
    (no,) = put(store, "a", ["late"], embed=False)
    assert caught_up(index, store).count == 0
    with store.write() as txn:
        chunks.put_vector(txn, FINGERPRINT, text_hash("late"), vector_of("late"))
        log.append(txn, [no], vectors=True)
    assert caught_up(index, store).search(vector_of("late"), 1).nos == [no]


def test_a_changed_title_replaces_the_vector(index: DenseIndex, store: Store) -> None:
    """The number stays, one row stands for it."""
    (no,) = put(store, "a", ["text"], title="Old")
    caught_up(index, store)
    assert put(store, "a", ["text"], title="New") == [no]
    caught_up(index, store)
    assert index.count == 1
    assert similar(index, vector_of("New\ntext"), [no])[0] == pytest.approx(1, abs=1e-6)


def test_an_unchanged_vector_is_not_written_again(index: DenseIndex, store: Store) -> None:
    """Being looked at leaves a row where it is."""
    put(store, "a", ["one", "two"])
    caught_up(index, store)
    files = sorted(path.name for path in index.folder.glob("seg-*"))
    put(store, "a", ["one", "two"])
    caught_up(index, store)
    assert sorted(path.name for path in index.folder.glob("seg-*")) == files
    assert index.stats().dead_rows == 0


def test_removed_passages_are_not_found(index: DenseIndex, store: Store) -> None:
    """Nor do they have a similarity."""
    put_many(store, 30)
    (no,) = put(store, "a", ["one"])
    caught_up(index, store)
    remove(store, "a")
    caught_up(index, store)
    assert no not in index.search(vector_of("one"), 31).nos
    assert np.isnan(similar(index, vector_of("one"), [no])).all()
    assert index.count == 30


def test_vectors_and_similarities_of_what_is_missing(index: DenseIndex, store: Store) -> None:
    """Zero and absent; NaN."""
    (no,) = put(store, "a", ["one"])
    caught_up(index, store)
    matrix, present = index.vectors([999, no])
    assert present.tolist() == [False, True]
    assert matrix[1] == pytest.approx(vector_of("one"), abs=1e-6)
    assert not matrix[0].any()
    assert np.isnan(similar(index, vector_of("one"), [999, no])).tolist() == [True, False]
    assert similar(index, vector_of("one"), []).shape == (0,)


def test_a_filter_that_lets_one_of_many_through_still_finds_it(
    index: DenseIndex, store: Store
) -> None:
    """It is applied before the best are taken."""
    put_many(store, 5_000)
    (no,) = put(store, "z", ["needle"])
    caught_up(index, store)
    only = frozenset([source_no(store, "z")])
    far = -vector_of("needle")
    assert index.search(far, 10, allowed=only).nos == [no]
    assert index.search(far, 10, restrict_nos=frozenset([no])).nos == [no]
    assert index.search(far, 10, allowed=only, restrict_nos=frozenset([1])).nos == []
    assert index.search(far, 10, allowed=frozenset()).nos == []


def test_segments_stay_few(index: DenseIndex, store: Store) -> None:
    """A hundred small additions end in no more than a handful of them."""
    for n in range(100):
        put(store, f"s{n}", [f"text {n}"])
        caught_up(index, store)
    assert index.count == 100
    assert index.stats().segments <= 8
    assert len(list(index.folder.glob("seg-*"))) == index.stats().segments


def test_merge_drops_dead_rows(index: DenseIndex, store: Store) -> None:
    """Once they are over a fifth of a segment; answers stay the same."""
    put_many(store, 10)
    put(store, "a", ["one", "two", "three", "four"])
    caught_up(index, store)
    remove(store, "a")
    caught_up(index, store)
    before = index.search(vector_of("x"), 20)
    assert index.stats().dead_rows == 4
    assert index.merge(wait_s=1) is None
    assert index.stats().dead_rows == 0
    assert index.search(vector_of("x"), 20) == before


def test_a_log_cut_short_leads_to_a_rebuild(index: DenseIndex, store: Store) -> None:
    """What was in the lost entries is there all the same."""
    put(store, "a", ["one"])
    caught_up(index, store)
    put(store, "b", ["two"])
    truncate_log(store)
    put(store, "c", ["three"])
    assert index.catch_up(store, wait_s=1).rebuilt
    assert index.count == 3


def test_models_do_not_share_a_cache(tmp_path: Path, store: Store) -> None:
    """Each fingerprint has its own folder, and a foreign manifest in it is not believed."""
    put(store, "a", ["one"])
    index = caught_up(new_index(tmp_path), store)
    other = DenseIndex(tmp_path / "dense", "other", DIM)
    assert caught_up(other, store).count == 0
    (other.folder / "manifest.json").write_bytes((index.folder / "manifest.json").read_bytes())
    assert other.catch_up(store, wait_s=1).rebuilt
    assert other.count == 0


def test_an_open_reader_keeps_its_rows_through_a_switch(tmp_path: Path, store: Store) -> None:
    """Files that are removed under it stay mapped; the next catch-up shows the new ones."""
    put(store, "a", ["one", "two"])
    reader, writer = caught_up(new_index(tmp_path), store), new_index(tmp_path)
    put(store, "b", ["three"])
    caught_up(writer, store)
    assert len(reader.search(vector_of("one"), 5).nos) == 2
    assert reader.catch_up(store, wait_s=1).applied == 0
    assert len(reader.search(vector_of("one"), 5).nos) == 3


def test_where_nothing_can_be_written_it_is_held_in_memory(tmp_path: Path, store: Store) -> None:
    """A file stands where the folder should; the answers are the same, and stay current."""
    (tmp_path / "dense").write_text("")
    index = new_index(tmp_path)
    put(store, "a", ["one"])
    assert index.catch_up(store, wait_s=0).problem is not None
    put(store, "b", ["two"])
    assert index.catch_up(store, wait_s=0).behind == 0
    assert index.count == 2
    assert index.stats().in_memory


def test_a_vector_that_is_no_number_counts_as_none(index: DenseIndex, store: Store) -> None:
    """NaN would poison every comparison with it."""
    (no,) = put(store, "a", ["one"])
    with store.write() as txn:
        chunks.put_vector(txn, FINGERPRINT, text_hash("one"), np.full(DIM, np.nan, np.float32))
    assert caught_up(index, store).count == 0
    assert np.isnan(similar(index, vector_of("one"), [no])).all()


def test_merged_segments_hold_the_live_rows_by_number(tmp_path: Path) -> None:
    """From any number of parts."""
    rng = np.random.default_rng(0)
    nos = np.arange(1, 31, dtype="<u8")
    sources = np.where(nos % 5 == 0, 0, nos).astype("<u8")
    vectors = unit_rows(rng.standard_normal((30, DIM)).astype(np.float32))
    parts = [memory_segment(nos[n::3], sources[n::3], vectors[n::3]) for n in range(3)]
    merged = write_merged(tmp_path, parts, DIM)
    alive = nos % 5 != 0
    assert merged.nos.tolist() == nos[alive].tolist()
    assert np.array_equal(merged.vectors, vectors[alive])


def test_an_empty_segment_is_no_trouble(tmp_path: Path) -> None:
    """Nothing can be mapped of an empty file."""
    with SegmentWriter(tmp_path, DIM) as writer:
        pass
    assert writer.finish().live_rows == 0


def test_verify_names_what_is_not_as_written(index: DenseIndex, store: Store) -> None:
    """And the next catch-up rebuilds it."""
    put(store, "a", ["one"])
    caught_up(index, store)
    assert index.verify() == []
    (path,) = index.folder.glob("seg-*")
    path.write_bytes(b"\0" * path.stat().st_size)
    assert index.verify() == [f"dense: {path.name}"]
    assert index.catch_up(store, wait_s=1).rebuilt
    assert index.search(vector_of("one"), 1).scores == pytest.approx([1.0])
