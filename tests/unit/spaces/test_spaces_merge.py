"""One answer of two lists: by rank, nothing twice, the first list's copy winning."""

from typing import Any

import pytest

from kb.model.ids import ChunkId, DocId
from kb.model.search import EntityAlignment, Hit, KnownEntity, Legs, SpaceName
from kb.operations.merge_hits import (
    SpaceHits,
    merged_alignments,
    merged_entities,
    merged_hits,
    merged_warnings,
)


def hit(rank: int, text: str, **fields: Any) -> Hit:
    said: dict[str, Any] = {
        "score": 1.0 - rank / 10,
        "chunk_id": ChunkId(f"c-{text}"),
        "doc_id": DocId(f"d-{text}"),
        "title": text,
        "source": f"/{text}.md",
        "kind": "file",
        "tags": (),
        "heading": (),
        "start": 0,
        "end": len(text),
        "page": None,
        "line": 1,
        "freshness": "fresh",
        "legs": Legs(lexical=rank, dense=None),
        "explain": {},
    }
    return Hit(rank=rank, text=text, **(said | fields))


def listed(name: SpaceName, *texts: str, held: frozenset[str] = frozenset()) -> SpaceHits:
    hits = tuple(hit(rank, text) for rank, text in enumerate(texts, 1))
    return SpaceHits(name=name, hits=hits, held=held)


def rows(hits: tuple[Hit, ...]) -> list[tuple[int, float, str | None, str]]:
    return [(one.rank, by_rank(one), one.source_space, one.text) for one in hits]


def by_rank(one: Hit) -> float:
    assert one.explain is not None
    return float(one.explain["rank_score"])


def test_ranks_are_merged_by_their_reciprocals() -> None:
    """At equal rank the first list comes first; the ranks count anew and scores never rise."""
    found = merged_hits([listed("project", "a", "b"), listed("user", "x", "y", "z")], 10)
    assert rows(found) == [
        (1, 1.0, "project", "a"),
        (2, 1.0, "user", "x"),
        (3, 0.5, "project", "b"),
        (4, 0.5, "user", "y"),
        (5, 0.333333, "user", "z"),
    ]
    assert [one.score for one in found] == [0.9, 0.9, 0.8, 0.8, 0.7]


def test_a_stores_scores_have_no_part_in_the_order() -> None:
    """A store that scores all of its hits low loses no place by it."""
    low = SpaceHits(name="project", hits=(hit(1, "a", score=0.01), hit(2, "b", score=0.001)))
    found = merged_hits([low, listed("user", "x", "y")], 3)
    assert [one.text for one in found] == ["a", "x", "b"]


def test_hits_that_fit_come_before_a_list_of_weak_ones() -> None:
    """Of a list where nothing fits all score less; a weak hit behind a better one does not."""
    weak = tuple(
        hit(rank, text, score=0.4 / rank, weak=True) for rank, text in ((1, "a"), (2, "b"))
    )
    mixed = (hit(1, "x"), hit(2, "y", weak=True))
    lists = [SpaceHits(name="project", hits=weak), SpaceHits(name="user", hits=mixed)]
    found = merged_hits(lists, 10)
    assert [(one.text, by_rank(one), one.weak) for one in found] == [
        ("x", 1.0, False),
        ("y", 0.5, True),
        ("a", 0.4, True),
        ("b", 0.2, True),
    ]
    both = [SpaceHits(name="project", hits=weak), listed("user", "b")]
    assert [(one.text, one.weak) for one in merged_hits(both, 1)] == [("b", False)]


def test_no_more_than_k_are_answered() -> None:
    """Of k hits each, k stay."""
    lists = [listed("project", *"abc"), listed("user", *"xyz")]
    assert [one.text for one in merged_hits(lists, 3)] == ["a", "x", "b"]


@pytest.mark.parametrize("same", ["id", "text"])
def test_a_passage_of_both_is_answered_once_at_its_better_rank(same: str) -> None:
    """By its id, or by its text under other ids; it is the first list's copy that is shown."""
    ids: dict[str, Any] = {}
    if same == "text":
        ids = {"chunk_id": ChunkId("c-other"), "doc_id": DocId("d-other")}
    theirs = SpaceHits(
        name="user",
        hits=(hit(1, "b", **ids, title="theirs"), hit(2, "x")),
    )
    found = merged_hits([listed("project", "a", "b", "c"), theirs], 10)
    assert rows(found) == [
        (1, 1.0, "project", "a"),
        (2, 1.0, "project", "b"),
        (3, 0.5, "user", "x"),
        (4, 0.333333, "project", "c"),
    ]
    assert found[1].title == "b"


def test_other_passages_of_a_source_that_the_first_has_are_left_out() -> None:
    """What an earlier store holds itself is not answered from a later one, found there or not."""
    theirs = listed("user", "stale", "x", held=frozenset({"d-stale"}))
    found = merged_hits([listed("project", "a"), theirs], 10)
    assert rows(found) == [(1, 1.0, "project", "a"), (2, 0.5, "user", "x")]


def test_equal_texts_within_one_store_stay() -> None:
    """Whether they crowd is judged by the store that has them."""
    twins = (hit(1, "a"), hit(2, "a", chunk_id=ChunkId("c-2"), doc_id=DocId("d-2")))
    found = merged_hits([SpaceHits(name="project", hits=twins), listed("user", "x")], 10)
    assert [one.chunk_id for one in found] == ["c-a", "c-x", "c-2"]


def test_an_explanation_keeps_what_the_hit_was_in_its_space() -> None:
    """The rank of the store stands beside the rest, where it is explained at all."""
    explained = SpaceHits(name="user", hits=(hit(2, "x", explain={"boost": 1.5}),))
    (found,) = merged_hits([listed("project"), explained], 10)
    assert found.explain == {"boost": 1.5, "rank_score": 0.5, "space_rank": 2}
    unexplained = SpaceHits(name="user", hits=(hit(1, "x", explain=None),))
    (plain,) = merged_hits([listed("project"), unexplained], 10)
    assert plain.explain is None


def test_warnings_say_whose_they_are_unless_all_say_them() -> None:
    """One line for what every store says, the space's name before the rest, none twice."""
    said = merged_warnings(
        [("project", ["no words", "3 wait"]), ("user", ["no words", "behind", "behind"])]
    )
    assert said == ("no words", "project: 3 wait", "user: behind")
    assert merged_warnings([]) == ()


def test_an_entity_is_known_where_one_store_knows_it() -> None:
    """And it is counted in the hits that are answered, not in those that each store had."""
    ann = EntityAlignment(entity="@Ann", kind="mention", known=False, in_hits=0)
    known = EntityAlignment(entity="@Ann", kind="mention", known=True, in_hits=7)
    hits = (hit(1, "ask @ann"), hit(2, "ask @bob"))
    (found,) = merged_alignments([[ann], [known]], hits)
    assert found == EntityAlignment(entity="@Ann", kind="mention", known=True, in_hits=1)
    assert merged_alignments([[], []], hits) == ()


def test_entities_are_added_up_in_the_order_of_their_names() -> None:
    """However each store writes them, the first store's way is shown."""

    def known(surface: str, passages: int) -> KnownEntity:
        return KnownEntity(kind="hashtag", surface=surface, passages=passages, docs=1)

    found = list(merged_entities([[known("#Tea", 2)], [known("#milk", 1), known("#tea", 3)]]))
    assert found == [
        KnownEntity(kind="hashtag", surface="#milk", passages=1, docs=1),
        KnownEntity(kind="hashtag", surface="#Tea", passages=5, docs=2),
    ]
