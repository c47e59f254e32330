"""Fusion and spreading: pure functions of scores and vectors."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb.search.diversify import diversify
from kb.search.fuse import LegScores, fuse, fuse_words, ordinal_ranks, spaced_ranks

NAN = float("nan")


def test_ordinal_ranks_share_ties() -> None:
    """Ranks count from 1, equal scores share the better one, unknown ones stay unknown."""
    ranks = ordinal_ranks(np.array([0.5, 0.9, 0.5, NAN, 0.1]))
    np.testing.assert_array_equal(ranks, [2, 1, 2, NAN, 4])


def leg(*scores: float, floor: float | None = None, top_min: float = 0.0) -> LegScores:
    return LegScores(scores=np.array(scores), weight=1.0, floor=floor, top_min=top_min)


def test_spaced_ranks_follow_the_score() -> None:
    """The best is at 1, the lowest and the unknown at 1 + n, others by their score."""
    np.testing.assert_allclose(spaced_ranks(leg(1.0, 0.5, 0.0, NAN)), [1, 3, 5, 5])


def test_spaced_ranks_of_ties_and_of_nothing() -> None:
    """Equal scores stand together in front; where no score is known all stand at the end."""
    np.testing.assert_allclose(spaced_ranks(leg(0.3, 0.3)), [1, 1])
    np.testing.assert_allclose(spaced_ranks(leg(NAN, NAN)), [3, 3])


def test_a_floor_widens_the_scale() -> None:
    """With a floor below the lowest score, the lowest is not at the end."""
    np.testing.assert_allclose(spaced_ranks(leg(1.0, 0.5, floor=0.0)), [1, 2])


def test_a_weak_best_is_not_a_full_hit() -> None:
    """Where even the best has half of what a full hit has at least, it stands in the middle."""
    np.testing.assert_allclose(spaced_ranks(leg(1.0, 0.5, floor=0.0, top_min=2.0)), [2, 2.5])


def test_few_candidates_are_spaced_as_many() -> None:
    """With a least spacing, two candidates stand as far apart as the ends of a long list."""
    np.testing.assert_allclose(spaced_ranks(leg(1.0, 0.0), spacing_min=200), [1, 201])


def test_meaning_wins_over_a_weak_word_among_few() -> None:
    """In a small home a passing mention of one word does not beat the best by meaning."""
    words = LegScores(scores=np.array([NAN, 1.0, NAN]), weight=0.5, floor=0.0, top_min=2.0)
    meaning = LegScores(scores=np.array([0.6, 0.2, 0.1]), weight=0.5)
    fused = fuse([words, meaning], k=60, spaced=True, spacing_min=200)
    assert fused.argmax() == 0


@pytest.mark.parametrize("spaced", [True, False])
def test_the_first_of_every_leg_has_score_one(spaced: bool) -> None:
    """Scores are at most 1, which is for what every leg put first."""
    legs = [
        LegScores(scores=np.array([3.0, 1.5, NAN]), weight=0.5, floor=0.0),
        LegScores(scores=np.array([0.9, 0.3, 0.1]), weight=0.5),
    ]
    fused = fuse(legs, k=60, spaced=spaced)
    assert fused[0] == pytest.approx(1.0)
    assert fused[0] > fused[1] > fused[2] > 0


def test_plain_fusion_is_reciprocal_rank_fusion() -> None:
    """The plain form is the published sum of weight / (k + rank), scaled by its best."""
    legs = [
        LegScores(scores=np.array([3.0, 2.0]), weight=0.5),
        LegScores(scores=np.array([0.1, 0.2]), weight=0.5),
    ]
    best = 1.0 / 61
    expected = (0.5 / 61 + 0.5 / 62) / best
    np.testing.assert_allclose(fuse(legs, k=60, spaced=False), [expected, expected])


def random_legs(seed: int) -> list[LegScores]:
    rng = np.random.default_rng(seed)
    words, meaning = rng.random((2, 50))
    words[rng.random(50) < 0.3] = NAN
    return [LegScores(scores=words, weight=0.3, floor=0.0), LegScores(scores=meaning, weight=0.7)]


@pytest.mark.parametrize("k", [1, 60, 200, 5_000])
def test_the_order_is_that_of_the_sum_of_reciprocal_ranks(k: int) -> None:
    """Whatever `k` is, and equal sums have equal scores."""
    for seed in range(20):
        legs = random_legs(seed)
        sums = sum(leg.weight / (k + spaced_ranks(leg)) for leg in legs)
        fused = fuse(legs, k=k, spaced=True)
        assert (
            np.argsort(-fused, kind="stable").tolist() == np.argsort(-sums, kind="stable").tolist()
        )  # type: ignore[arg-type, operator]
        assert fused.max() <= 1.0 + 1e-12
        assert fused.min() > 0.0


@pytest.mark.parametrize("k", [1, 60, 200, 5_000])
def test_a_factor_is_worth_as_many_ranks_whatever_k_is(k: int) -> None:
    """What has the same rank in every leg has the same score under each k."""
    scores = np.linspace(1.0, 0.0, 101)
    leg = LegScores(scores=scores, weight=0.5, floor=0.0)
    fused = fuse([leg, leg], k=k, spaced=True)
    np.testing.assert_allclose(fused, 61 / (60 + spaced_ranks(leg)))
    # With twice its score each of these has as many before it.
    assert [int((fused > 2 * fused[place]).sum()) for place in (50, 80, 100)] == [0, 10, 20]


def test_a_leg_gives_nothing_to_what_it_did_not_bring() -> None:
    """A candidate of one leg alone gets that leg's share."""
    legs = [
        LegScores(scores=np.array([1.0, NAN]), weight=0.3),
        LegScores(scores=np.array([NAN, 1.0]), weight=0.7),
    ]
    np.testing.assert_allclose(fuse(legs, k=60, spaced=False), [0.3, 0.7])


@given(
    scores=st.lists(st.floats(0.0, 50.0), min_size=1, max_size=30),
    weight=st.sampled_from([0.0, 0.3, 1.0]),
    k=st.integers(1, 300),
    spaced=st.booleans(),
)
def test_words_alone_are_fused_as_one_leg(
    scores: list[float], weight: float, k: int, spaced: bool
) -> None:
    """What needs no numpy gives the same scores as what does."""
    leg = LegScores(scores=np.array(scores), weight=weight, floor=0.0)
    fused = fuse([leg], k=k, spaced=spaced, spacing_min=20)
    alone = fuse_words(scores, weight, spaced=spaced, spacing_min=20)
    np.testing.assert_allclose(alone, fused, rtol=1e-12)


def rows(*kinds: int) -> np.ndarray:
    return np.eye(8, dtype=np.float32)[list(kinds)]


def test_a_list_without_crowds_keeps_its_order_and_scores() -> None:
    """Where nothing is alike nothing moves."""
    chosen = diversify(
        [0.9, 0.8, 0.7],
        rows(0, 1, 2),
        ["a", "b", "c"],
        3,
        similarity_min=0.9,
        near_duplicates_max=2,
    )
    assert chosen == [(0, 0.9), (1, 0.8), (2, 0.7)]


def test_the_third_of_a_crowd_counts_for_half() -> None:
    """Once two alike are chosen the others count for half, once, and wait for their turn."""
    chosen = diversify(
        [0.9, 0.8, 0.7, 0.6, 0.5],
        rows(0, 0, 0, 0, 1),
        list("abcde"),
        5,
        similarity_min=0.9,
        near_duplicates_max=2,
    )
    assert [place for place, _ in chosen] == [0, 1, 4, 2, 3]
    assert [score for _, score in chosen] == pytest.approx([0.9, 0.8, 0.5, 0.35, 0.3])


def test_equal_texts_are_alike_without_vectors() -> None:
    """Copies crowd each other out even where no vector says so."""
    nothing = np.zeros((4, 8), dtype=np.float32)
    chosen = diversify(
        [0.9, 0.8, 0.7, 0.6],
        nothing,
        ["x", "x", "x", "y"],
        4,
        similarity_min=0.9,
        near_duplicates_max=2,
    )
    assert [place for place, _ in chosen] == [0, 1, 3, 2]


def test_no_more_than_asked_for_or_there() -> None:
    """K bounds the choice, and so does what there is."""
    vectors = rows(0, 1)
    assert (
        len(
            diversify([0.9, 0.8], vectors, ["a", "b"], 1, similarity_min=0.9, near_duplicates_max=2)
        )
        == 1
    )
    assert (
        len(
            diversify([0.9, 0.8], vectors, ["a", "b"], 9, similarity_min=0.9, near_duplicates_max=2)
        )
        == 2
    )
    assert (
        diversify(
            [], np.zeros((0, 8), np.float32), [], 3, similarity_min=0.9, near_duplicates_max=2
        )
        == []
    )
