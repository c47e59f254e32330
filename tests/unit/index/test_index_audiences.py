"""One lexical index to each audience."""

from pathlib import Path

import msgspec
import pytest
from index_home import LOCAL, memory_store, put, remove, source_no

from kb.model.doc import Audience
from kb.search.index.lexical import LexicalIndex
from kb.search.index.lexical_indexes import LexicalIndexes
from kb.store import docs
from kb.store.store import Store

PUBLIC, SHARED, ANN = Audience("public"), Audience("shared"), Audience("private:ann")
ALL = (PUBLIC, SHARED, ANN, LOCAL)


@pytest.fixture
def store() -> Store:
    return memory_store()


@pytest.fixture
def indexes(tmp_path: Path) -> LexicalIndexes:
    return LexicalIndexes(tmp_path / "lexical")


def level(indexes: LexicalIndexes, store: Store) -> LexicalIndexes:
    outcome = indexes.catch_up(store, wait_s=5)
    assert (outcome.behind, outcome.problem) == (0, None)
    return indexes


def test_an_index_holds_its_audience_alone(indexes: LexicalIndexes, store: Store) -> None:
    """What is read is what the audiences say; each lies in a folder of its own."""
    (a,) = put(store, "a", ["tea one"], visibility="public")
    (b,) = put(store, "b", ["tea two"], visibility="shared")
    (c,) = put(store, "c", ["tea three"], owner="ann")
    level(indexes, store)
    assert (indexes.stats().rows, indexes.stats().watermark) == (3, 3)
    found = {
        names: indexes.search("tea", 9, names).nos for names in ((PUBLIC,), (SHARED, ANN), ALL)
    }
    assert found == {(PUBLIC,): [a], (SHARED, ANN): [b, c], ALL: [a, b, c]}
    assert indexes.search("tea", 9, ()).nos == []
    folders = {path.parent.name for path in indexes.folder.glob("*/manifest.json")}
    assert len(folders) == 3
    assert {"public", "shared"} <= folders


def test_only_the_audiences_asked_for_are_opened(indexes: LexicalIndexes, store: Store) -> None:
    """A caller pays for nothing that they do not read."""
    put(store, "a", ["tea"], visibility="public")
    put(store, "b", ["tea"], owner="ann")
    assert indexes.catch_up(store, wait_s=5, audiences=[PUBLIC]).applied == 1
    assert [path.name for path in indexes.folder.iterdir()] == ["public"]


def test_scores_over_several_are_those_of_one(tmp_path: Path) -> None:
    """With passages of one length, parting them changes no score: words are as rare as in all."""
    texts = [
        f"tea {'milk' if n % 3 else 'sugar'} {'rare' if n == 4 else 'often'}" for n in range(10)
    ]
    texts += ["tea 研究 often", "tea 研究 milk", "tea 究生 milk"]
    one, parted = memory_store(), memory_store()
    for n, text in enumerate(texts):
        put(one, str(n), [text], visibility="public")
        put(parted, str(n), [text], visibility="shared" if n % 2 else "public")
    together = level(LexicalIndexes(tmp_path / "one"), one)
    apart = level(LexicalIndexes(tmp_path / "parted"), parted)
    for query in ("tea", "rare tea", "sugar sugar milk", '"tea milk" often', "rare", "研究"):
        expected = together.search(query, 20, [PUBLIC])
        found = apart.search(query, 20, [PUBLIC, SHARED])
        assert found.nos == expected.nos, query
        assert found.scores == pytest.approx(expected.scores, rel=1e-3), query
        assert apart.search(query, 3, [PUBLIC, SHARED]).nos == expected.nos[:3], query
    alone = apart.search("rare tea", 20, [PUBLIC])
    assert alone.scores[0] != pytest.approx(
        together.search("rare tea", 20, [PUBLIC]).scores[0], rel=0.05
    )


def test_one_filled_index_among_several_scores_as_alone(
    indexes: LexicalIndexes, store: Store
) -> None:
    """An audience without a row weighs nothing."""
    put(store, "a", ["tea and milk", "milk"])
    put(store, "b", [], visibility="public")
    level(indexes, store)
    assert indexes.search("milk", 5, [PUBLIC, LOCAL]) == indexes.search("milk", 5, [LOCAL])
    assert indexes.of(LOCAL).search("milk", 5) == indexes.search("milk", 5, [LOCAL])


def test_filters_hold_in_each(indexes: LexicalIndexes, store: Store) -> None:
    """Sources and passages that may be found are limited over all that is read."""
    (a,) = put(store, "a", ["tea"], visibility="public")
    (b,) = put(store, "b", ["tea"], visibility="shared")
    level(indexes, store)
    only = frozenset([source_no(store, "b")])
    assert indexes.search("tea", 5, ALL, allowed=only).nos == [b]
    assert indexes.search("tea", 5, ALL, restrict_nos=frozenset([a])).nos == [a]


def test_a_passage_goes_with_its_doc(indexes: LexicalIndexes, store: Store) -> None:
    """After a change of audience the old index has it no more, and the new one does."""
    (a,) = put(store, "a", ["tea"], visibility="public")
    put(store, "b", ["tea"], visibility="public")
    level(indexes, store)
    put(store, "a", ["tea"], owner="ann")
    level(indexes, store)
    assert a not in indexes.search("tea", 5, [PUBLIC]).nos
    assert indexes.search("tea", 5, [ANN]).nos == [a]


def test_what_others_change_commits_nothing(indexes: LexicalIndexes, store: Store) -> None:
    """An index is not written, nor its segments merged, for docs that it does not hold."""
    put(store, "a", ["tea"], visibility="public")
    put(store, "b", ["tea"], visibility="public")
    level(indexes, store)
    put(store, "b", ["tea"], owner="ann")
    level(indexes, store)
    (meta,) = (indexes.folder / "public").glob("g-*/meta.json")
    before = (meta.read_bytes(), indexes.of(PUBLIC).search("tea", 5))
    for n in range(12):
        put(store, f"h{n}", ["tea tea"], owner="ann")
        put(store, "b", [f"tea {n}"], owner="ann")
        remove(store, f"h{n - 1}") if n else None
        level(indexes, store)
    assert (meta.read_bytes(), indexes.of(PUBLIC).search("tea", 5)) == before
    assert indexes.of(PUBLIC).stats().watermark == indexes.of(ANN).stats().watermark


def test_an_audience_that_no_doc_has_is_let_go(indexes: LexicalIndexes, store: Store) -> None:
    """It counts no more, and its files can be removed; when docs come back, so does it."""
    put(store, "a", ["tea"], visibility="public")
    put(store, "b", ["tea"], visibility="shared")
    level(indexes, store)
    with store.write() as txn:
        doc = docs.require(txn, docs.latest(txn, source_no(store, "a")).doc_id)
        docs.replace(txn, msgspec.structs.replace(doc, status="tombstoned"))
    assert level(indexes, store).stats().rows == 1
    indexes.remove_unused(store)
    assert [path.name for path in (indexes.folder / "public").iterdir()] == ["lock"]
    (a,) = put(store, "a", ["tea"], visibility="public")
    assert level(indexes, store).search("tea", 5, [PUBLIC]).nos == [a]


def test_an_index_of_all_docs_together_makes_way(indexes: LexicalIndexes, store: Store) -> None:
    """Files of that older layout are removed when the new ones are made; a held lock keeps them."""
    indexes.folder.mkdir()
    (indexes.folder / "manifest.json").write_text("old")
    (indexes.folder / "g-0123").mkdir()
    (indexes.folder / "g-0123" / "meta.json").write_text("{}")
    (a,) = put(store, "a", ["tea"])
    assert level(indexes, store).search("tea", 5, [LOCAL]).nos == [a]
    left = {path.name for path in indexes.folder.iterdir()}
    assert left == {"lock", indexes.of(LOCAL).folder.name}


def test_another_audiences_files_are_not_taken_for_ones_own(tmp_path: Path, store: Store) -> None:
    """A manifest names its audience; a folder copied over another is rebuilt."""
    put(store, "a", ["tea"], visibility="public")
    (b,) = put(store, "b", ["tea"], visibility="shared")
    level(LexicalIndexes(tmp_path / "x"), store).close()
    (tmp_path / "x" / "shared").rename(tmp_path / "x" / "aside")
    (tmp_path / "x" / "public").rename(tmp_path / "x" / "shared")
    shared = LexicalIndex(tmp_path / "x", SHARED)
    assert shared.catch_up(store, wait_s=5).rebuilt
    assert shared.search("tea", 5).nos == [b]


def test_a_damaged_part_is_mended_within_a_search(indexes: LexicalIndexes, store: Store) -> None:
    """Whichever of several indexes cannot be read, the answer is whole."""

    class Unreadable:
        num_docs = 1

        def __getattr__(self, name: str) -> object:
            raise ValueError(name)

    (a,) = put(store, "a", ["tea"], visibility="public")
    (b,) = put(store, "b", ["tea"], visibility="shared")
    level(indexes, store)
    view = indexes.of(SHARED)._snapshot
    assert view is not None
    indexes.of(SHARED)._snapshot = msgspec.structs.replace(view, searcher=Unreadable())
    assert indexes.search("tea", 5, [PUBLIC, SHARED]).nos == [a, b]


@pytest.mark.parametrize("owner", ["", "../../etc", "a/b", "x" * 500, "安", "nul\0"])
def test_any_owners_name_will_do(tmp_path: Path, store: Store, owner: str) -> None:
    """Its index lies under the folder, and it is listed in full."""
    (a,) = put(store, "a", ["tea"], owner=owner)
    put(store, "b", ["tea"], owner=owner + "2")
    indexes = level(LexicalIndexes(tmp_path / "lexical"), store)
    with store.read() as txn:
        assert docs.audiences(txn) == tuple(sorted((f"private:{owner}", f"private:{owner}2")))
    assert indexes.search("tea", 5, [Audience(f"private:{owner}")]).nos == [a]
    assert indexes.of(Audience(f"private:{owner}")).folder.parent == indexes.folder
