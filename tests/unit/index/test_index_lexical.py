"""The lexical cache follows the log."""

from pathlib import Path

import pytest
from index_home import (
    LOCAL,
    flip_record,
    memory_store,
    put,
    put_many,
    remove,
    source_no,
    truncate_log,
)

from kb.search.index.lexical import LexicalIndex
from kb.store.store import Store


@pytest.fixture
def store() -> Store:
    return memory_store()


@pytest.fixture
def index(tmp_path: Path) -> LexicalIndex:
    return LexicalIndex(tmp_path / "lexical", LOCAL)


def caught_up(index: LexicalIndex, store: Store) -> LexicalIndex:
    outcome = index.catch_up(store, wait_s=5)
    assert (outcome.behind, outcome.problem) == (0, None)
    return index


def test_words_of_body_title_and_heading_are_found(index: LexicalIndex, store: Store) -> None:
    """In any form of the word, with and without accents, in any script."""
    (a,) = put(store, "a", ["The quick foxes like 伊利 milk"], title="Cafés", heading=("Zoology",))
    put(store, "b", ["something else"])
    caught_up(index, store)
    for query in ("fox", "QUICKLY", "cafe", "zoology", "伊利", "ｆｏｘ", "利", '"quick fox"'):
        assert index.search(query, 5).nos == [a], query


def test_a_title_counts_besides_the_body_that_it_is_part_of(
    index: LexicalIndex, store: Store
) -> None:
    """A word of the title stands in the body, too, and half of its weight comes on top."""
    (a,) = put(store, "a", ["whale"], title="other")
    (b,) = put(store, "b", ["other"], title="whale")
    assert caught_up(index, store).search("whale", 5).nos == [b, a]


def test_a_quoted_phrase_ranks_above_its_scattered_words(index: LexicalIndex, store: Store) -> None:
    """Both are found, the phrase first."""
    (scattered,) = put(store, "a", ["bread and the white loaf"])
    (phrase,) = put(store, "b", ["and the white bread loaf"])
    caught_up(index, store)
    assert index.search('"white bread"', 5).nos == [phrase, scattered]


def test_a_han_word_that_the_dictionary_parts_otherwise_is_found(
    index: LexicalIndex, store: Store
) -> None:
    """By its characters in a row, and only in a row."""
    (a,) = put(store, "a", ["我们研究生命起源"])
    put(store, "b", ["命运的生产"])
    caught_up(index, store)
    for query in ("究生", "生命起源", "起"):
        assert index.search(query, 5).nos == [a], query


@pytest.mark.parametrize(
    "query",
    ["", " ", "\0", "((", '"', "a:b^~*?", "title:", "AND OR NOT", "\ud800", "[* TO", "!!!", "\\"],
)
def test_no_query_is_an_error(index: LexicalIndex, store: Store, query: str) -> None:
    """Whatever is typed, an answer comes."""
    put(store, "a", ["some text"])
    assert caught_up(index, store).search(query, 5).nos == []


def test_a_megabyte_of_query_is_answered(index: LexicalIndex, store: Store) -> None:
    """By its first words."""
    (a,) = put(store, "a", ["word7 here"])
    caught_up(index, store)
    query = " ".join(f"word{n}" for n in range(150_000)) + '"' * 1000
    assert index.search(query, 5).nos == [a]


def test_a_changed_passage_replaces_the_old_one(index: LexicalIndex, store: Store) -> None:
    """Old words are gone, new ones are there, one row stands for it."""
    put(store, "a", ["alpha", "beta"])
    caught_up(index, store)
    put(store, "a", ["alpha", "gamma"], title="Renamed")
    caught_up(index, store)
    assert index.search("beta", 5).nos == []
    assert len(index.search("gamma", 5).nos) == 1
    assert len(index.search("renamed", 5).nos) == 2
    assert index.stats().rows == 2


def test_a_removed_source_is_not_found(index: LexicalIndex, store: Store) -> None:
    """Not after the next catch-up."""
    put(store, "a", ["alpha"])
    caught_up(index, store)
    remove(store, "a")
    assert caught_up(index, store).search("alpha", 5).nos == []


def test_a_filter_that_lets_one_of_many_through_still_finds_it(
    index: LexicalIndex, store: Store
) -> None:
    """Whether it names few sources or more than fit into a query."""
    put_many(store, 6_000)
    (last,) = put(store, "z", ["passage that is long and therefore scores low " * 20])
    caught_up(index, store)
    only = source_no(store, "z")
    assert index.search("passage", 10, allowed=frozenset([only])).nos == [last]
    many = frozenset(range(10**6, 10**6 + 5_000)) | {only}
    assert index.search("passage", 10, allowed=many).nos == [last]
    assert index.search("passage", 10, restrict_nos=frozenset([last])).nos == [last]
    assert index.search("passage", 10, allowed=frozenset()).nos == []


def test_a_filter_changes_no_score(index: LexicalIndex, store: Store) -> None:
    """What passes scores as it does without one."""
    put_many(store, 50, text="passage number {} of fifty")
    caught_up(index, store)
    free = index.search("passage 7 number", 100)
    kept = index.search("passage 7 number", 100, allowed=frozenset(range(1, 20)))
    scores = dict(zip(free.nos, free.scores, strict=True))
    assert kept.scores == [scores[no] for no in kept.nos]


def test_ties_go_by_number(index: LexicalIndex, store: Store) -> None:
    """At the limit too, whatever order the index holds them in."""
    for start in ("c", "b", "a"):
        put(store, start, [f"same words {n}" for n in range(60)])
        caught_up(index, store)
    assert index.search("same", 7).nos == [1, 2, 3, 4, 5, 6, 7]


def test_a_log_cut_short_leads_to_a_rebuild(index: LexicalIndex, store: Store) -> None:
    """What was in the lost entries is there all the same."""
    put(store, "a", ["alpha"])
    caught_up(index, store)
    put(store, "b", ["beta"])
    truncate_log(store)
    put(store, "c", ["gamma"])
    outcome = index.catch_up(store, wait_s=1)
    assert (outcome.rebuilt, outcome.behind) == (True, 0)
    assert len(index.search("alpha beta gamma", 5).nos) == 3


def test_another_store_leads_to_a_rebuild(index: LexicalIndex, store: Store) -> None:
    """A restored store has other entries under the same numbers."""
    put(store, "a", ["alpha"])
    caught_up(index, store)
    other = memory_store()
    put(other, "a", ["beta", "gamma"])
    assert index.catch_up(other, wait_s=1).rebuilt
    assert index.search("alpha", 5).nos == []
    shorter = memory_store()
    assert index.catch_up(shorter, wait_s=1).rebuilt
    assert index.stats().rows == 0


def test_one_damaged_record_hides_no_other(index: LexicalIndex, store: Store) -> None:
    """The rest is found; `kb check` names the record."""
    first, second = put(store, "a", ["alpha one", "alpha two"])
    flip_record(store, first)
    assert caught_up(index, store).search("alpha", 5).nos == [second]


def test_two_objects_share_one_folder(tmp_path: Path, store: Store) -> None:
    """Each sees what the other applied, without applying it again."""
    one, two = LexicalIndex(tmp_path / "x", LOCAL), LexicalIndex(tmp_path / "x", LOCAL)
    put(store, "a", ["alpha"])
    caught_up(one, store)
    assert two.catch_up(store, wait_s=1).applied == 0
    put(store, "b", ["alpha"])
    caught_up(two, store)
    assert len(one.search("alpha", 5).nos) == 1
    assert one.catch_up(store, wait_s=1).applied == 0
    assert len(one.search("alpha", 5).nos) == 2


def test_a_worn_index_is_written_anew(index: LexicalIndex, store: Store) -> None:
    """Once over a fiftieth of its rows is gone; or any, where that is asked for."""
    put(store, "a", [f"alpha {n}" for n in range(49)])
    put(store, "b", ["beta"])
    put(store, "c", ["gamma"])
    caught_up(index, store)
    remove(store, "b")
    caught_up(index, store)
    assert index.compact(store, wait_s=1) is None
    assert (index.stats().rows, index.stats().dead_rows) == (50, 1)
    remove(store, "c")
    caught_up(index, store)
    assert index.compact(store, wait_s=1) is None
    assert (index.stats().rows, index.stats().dead_rows) == (49, 0)
    remove(store, "a")
    put(store, "a", [f"alpha {n}" for n in range(48)])
    caught_up(index, store)
    assert index.compact(store, wait_s=1, dead_share_max=0.0) is None
    assert (index.stats().rows, index.stats().dead_rows) == (48, 0)
    assert len(index.search("alpha", 99).nos) == 48


def test_a_held_lock_leaves_the_cache_as_it_is(index: LexicalIndex, store: Store) -> None:
    """It says how far behind it is, and answers from what it has."""
    from kb.store.content.lock import file_lock

    put(store, "a", ["alpha"])
    caught_up(index, store)
    put(store, "b", ["alpha"])
    with file_lock(index.lock_path, 0):
        outcome = index.catch_up(store, wait_s=0.01)
    assert outcome.behind == 1
    assert outcome.problem is not None
    assert "in use by another process" in outcome.problem
    assert len(index.search("alpha", 5).nos) == 1


def test_where_nothing_can_be_written_it_is_held_in_memory(tmp_path: Path, store: Store) -> None:
    """A file stands where the folder should; the answers are the same, and stay current."""
    (tmp_path / "taken").write_text("")
    index = LexicalIndex(tmp_path / "taken" / "lexical", LOCAL)
    put(store, "a", ["alpha"])
    outcome = index.catch_up(store, wait_s=0)
    assert outcome.behind == 0
    assert outcome.problem is not None
    assert len(index.search("alpha", 5).nos) == 1
    put(store, "b", ["alpha"])
    index.catch_up(store, wait_s=0)
    assert len(index.search("alpha", 5).nos) == 2
    assert index.stats().in_memory


def test_verify_finds_nothing_in_a_sound_index(index: LexicalIndex, store: Store) -> None:
    """Where every file is as it was written."""
    put(store, "a", ["alpha"])
    caught_up(index, store)
    assert index.verify() == []
