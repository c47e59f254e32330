"""The order reads no more passages than it must, and none of that shows."""

from collections.abc import Sequence

import msgspec
import numpy as np
import pytest
from builders import make_chunk, make_doc

from kb.model.config import SearchSettings
from kb.model.doc import Doc
from kb.model.ids import ChunkNo
from kb.model.text import Chunk
from kb.search.candidates import Candidates
from kb.search.diversify import diversify
from kb.search.fuse import supported
from kb.search.index.segments import unit_rows
from kb.search.named import named_places
from kb.search.order import Ordering, Unjudged

K = 5
SETTINGS = SearchSettings()


class Passages:
    """A gate that lets every passage through and counts those that are read."""

    def __init__(self, texts: list[str]) -> None:
        self.texts = texts
        self.read: set[int] = set()

    def expect(self, nos: Sequence[int]) -> None:
        """Nothing: it has all in memory."""

    def admit(self, no: int) -> tuple[Chunk, Doc] | None:
        self.read.add(no)
        return make_chunk(no=ChunkNo(no), text=self.texts[no - 1]), make_doc()

    def is_bare_title(self, chunk: Chunk, doc: Doc) -> bool:
        return False


def found(vectors: np.ndarray, query: np.ndarray) -> Candidates:
    """Candidates of the dense leg alone, so that their order is that of their cosines."""
    cosines = (vectors @ query).astype(np.float64)
    return Candidates(
        nos=list(range(1, len(vectors) + 1)),
        lexical=np.full(len(vectors), np.nan),
        dense=cosines,
        vectors=vectors,
        lexical_rank={},
        dense_rank={},
    )


def in_full(candidates: Candidates, passages: Passages) -> list[int]:
    """Numbers of the hits, chosen from all passages."""
    order = np.argsort(-candidates.dense, kind="stable")
    unjudged = Unjudged(
        foreign=np.zeros(len(candidates.nos), dtype=bool), named=np.array([], dtype=np.intp)
    )
    fused = Ordering(SETTINGS, K)._fused(candidates, candidates.dense, unjudged)
    scores = fused[order].round(6)
    chosen = diversify(
        scores.tolist(),
        candidates.vectors[order],
        [passages.texts[place] for place in order],
        K,
        similarity_min=SETTINGS.mmr_similarity,
        near_duplicates_max=SETTINGS.mmr_crowd,
    )
    return [candidates.nos[order[place]] for place, _ in chosen]


@pytest.mark.parametrize("seed", range(40))
@pytest.mark.parametrize("crowds", [False, True])
def test_hits_are_those_of_all_that_might_be_read(seed: int, crowds: bool) -> None:
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((40, 16))
    if crowds:
        # A few kinds, each within a hair of one another.
        rows = rows[rng.integers(4, size=40)] + 0.01 * rows
    vectors = unit_rows(rows.astype(np.float32))
    query = unit_rows(rng.standard_normal((1, 16)).astype(np.float32))[0]
    passages = Passages([f"passage {no}" for no in range(40)])
    candidates = found(vectors, query)
    hits = Ordering(SETTINGS, K).order(candidates, None, [], passages)  # type: ignore[arg-type]
    assert hits is not None
    assert [hit.chunk.no for hit in hits] == in_full(candidates, passages)
    if not crowds:
        assert len(passages.read) == K


def test_equals_at_the_end_are_all_weighed() -> None:
    """Which of equal passages are hits is told by their ids, and not by who is read first."""
    vectors = unit_rows(np.eye(16, dtype=np.float32)[:12])
    candidates = msgspec.structs.replace(found(vectors, vectors[0]), dense=np.full(12, 0.5))
    passages = Passages([f"passage {no}" for no in range(12)])
    hits = Ordering(SETTINGS, K).order(candidates, None, [], passages)  # type: ignore[arg-type]
    assert hits is not None
    ids = sorted(passages.admit(no)[0].chunk_id for no in range(1, 13))  # type: ignore[index]
    assert [hit.chunk.chunk_id for hit in hits] == ids[:K]


def test_where_no_hit_is_wanted_none_is_read() -> None:
    vectors = unit_rows(np.eye(4, dtype=np.float32))
    passages = Passages(["a", "b", "c", "d"])
    found_all = found(vectors, vectors[0])
    assert Ordering(SETTINGS, 0).order(found_all, None, [], passages) == []  # type: ignore[arg-type]
    assert passages.read == set()


def test_what_has_no_vector_yet_is_ranked_by_its_words() -> None:
    """It may be about anything, so that meaning neither helps nor harms it."""
    vectors = unit_rows(np.array([[1.0, 0.0], [0.9, 0.1], [0.0, 0.0]], dtype=np.float32))
    candidates = Candidates(
        nos=[1, 2, 3],
        lexical=np.array([np.nan, 2.0, 9.0]),
        dense=np.array([0.9, 0.8, np.nan]),
        vectors=vectors,
        lexical_rank={ChunkNo(3): 1, ChunkNo(2): 2},
        dense_rank={ChunkNo(1): 1, ChunkNo(2): 2},
        lexical_ceiling=36.0,
    )
    query = np.array([1.0, 0.0], dtype=np.float32)
    hits = Ordering(SETTINGS, 3).order(candidates, query, [], Passages(["one", "two", "three"]))
    assert hits is not None
    assert hits[0].chunk.no == 3


def test_of_two_equals_the_one_among_better_passages_comes_first() -> None:
    """What says the same as the best passages is more likely to answer than what does not."""
    # Two groups; the last of the good one has the score of the first of the other one.
    vectors = np.eye(40, dtype=np.float32)
    vectors[:12, 0] += 3.0
    vectors[12:, 20] += 3.0
    vectors = unit_rows(vectors)
    fused = np.concatenate([np.full(11, 0.9), np.full(2, 0.5), np.full(27, 0.1)])

    scores = supported(fused, vectors, np.ones(40, dtype=np.bool_))

    assert fused[11] == fused[12]
    assert scores[11] > scores[12]
    assert scores[:11].min() > scores[11]


def test_support_takes_nothing_past_the_best_and_leaves_what_has_no_vector() -> None:
    """Only the best support each other, and none falls behind those that are not among them."""
    random = np.random.default_rng(3)
    vectors = unit_rows(random.normal(size=(150, 8)).astype(np.float32))
    fused = np.linspace(1.0, 0.2, 150)

    scores = supported(fused, vectors, np.arange(150) != 7)

    assert scores[7] == fused[7]
    assert np.array_equal(scores[50:], fused[50:])
    assert scores[:50].min() >= fused[50:].max()
    assert not np.array_equal(scores[:7], fused[:7])


class Songs(Passages):
    """A gate to files that are known by their names."""

    def admit(self, no: int) -> tuple[Chunk, Doc] | None:
        doc = make_doc(source="/music/07.mp3", title="Eva – Leaves", by_name=True)
        return make_chunk(no=ChunkNo(no), text=self.texts[no - 1]), doc


def test_what_a_song_says_of_itself_is_its_name() -> None:
    """Its album, and not the words for the facts."""
    texts = [
        "MP3 audio, 3:12  \nTitle: Leaves  \nBy: Eva  \nAlbum: Songbird",
        "ZIP archive\n\n- pier.txt",
    ]
    candidates = Candidates(
        nos=[1, 2],
        lexical=np.array([9.0, 8.0]),
        dense=np.full(2, np.nan),
        vectors=np.zeros((2, 2), dtype=np.float32),
        lexical_rank={},
        dense_rank={},
    )  # fmt: skip

    def named(query: str) -> list[int] | None:
        places = named_places(candidates, np.arange(2), Songs(texts), query)
        return None if places is None else places.tolist()

    assert named("songbird") == named("eva songbird") == [0]
    assert named("pier") == [1]
    assert named("leaves") == [0, 1]
    assert named("album") == named("songbird pier") == []
