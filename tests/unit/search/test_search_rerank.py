"""kb.search.rerank: scores, the places they give, the budget, and what a failure costs."""

import sys
import types
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from cross_encoder import score_of, write_cross_encoder
from search_home import SearchHome, titles

from kb.errors import ModelMissing, RerankError
from kb.model.config import RerankSettings
from kb.model.doc import OPERATOR
from kb.model.search import SearchRequest, SearchResult
from kb.search.backends import DenseBackend, SearchBackends
from kb.search.engine import Searcher
from kb.search.rerank.rerankers import make_reranker
from kb.search.rerank.reranking import BATCH
from kb.search.rerank.scores import checked_scores

NOTES = 30
SLOW_MS = 40


class ByNumber:
    """Prefers the notes with the highest number; each batch takes a while of the fake clock."""

    def __init__(self, home: SearchHome) -> None:
        self.home = home
        self.read: list[str] = []
        self.fails_at = -1
        self.gives: Any = None

    def score(self, query: str, passages: Sequence[str]) -> Any:
        assert query == "kettle"
        if len(self.read) >= self.fails_at > -1:
            raise RerankError("the reranker is out of order")
        self.read += passages
        self.home.clock.advance(SLOW_MS)
        if self.gives is not None:
            return self.gives
        return [int(text.split("number ")[1].split()[0]) / NOTES for text in passages]


@pytest.fixture
def home(tmp_path: Path) -> Iterator[SearchHome]:
    """Notes that the words put into the order of their lengths."""
    home = SearchHome(tmp_path / "home")
    for number in range(NOTES):
        text = f"# Note {number}\n\nnumber {number} kettle{' filler' * (number + 1)}\n"
        home.give(f"{number:02}.md", text, work=False)
    home.work()
    yield home
    home.close()


def asked(
    home: SearchHome, reranker: ByNumber, budget_ms: int = 10_000, **request: Any
) -> SearchResult:
    """Search with a reranker."""

    def made(settings: RerankSettings) -> ByNumber:
        # Loading takes long, and is not of the budget.
        home.clock.advance(60_000)
        return reranker

    backends = SearchBackends(
        lexical=lambda: home.lexical,
        dense=lambda _: DenseBackend(embedder=home.embedder, index=home.dense),
        rerank=RerankSettings(kind="fake", budget_ms=budget_ms, candidates=20),
        reranker=made,
    )
    searcher = Searcher(home.store, home.content, backends, home.settings, home.lock_wait_s)
    wishes = {"query": "kettle", "mode": "lexical", "k": NOTES, **request}
    return searcher.search(SearchRequest(**wishes), OPERATOR)


def numbers(result: SearchResult) -> list[int]:
    return [int(title.split()[1]) for title in titles(result)]


def test_the_best_candidates_are_ordered_and_the_others_stay(home: SearchHome) -> None:
    """Within the places and the scores that they held; what was not asked for is as before."""
    reranker = ByNumber(home)
    plain = asked(home, reranker, rerank=False, explain=True)
    assert reranker.read == []
    assert "rerank" not in (plain.hits[0].explain or {})
    result = asked(home, reranker, explain=True)
    assert numbers(result)[20:] == numbers(plain)[20:]
    assert numbers(result)[:20] == sorted(numbers(plain)[:20], reverse=True)
    assert numbers(result)[:20] != numbers(plain)[:20]
    assert [hit.score for hit in result.hits] == [hit.score for hit in plain.hits]
    assert result.warnings == ()
    explained = [(hit.explain or {}).get("rerank") for hit in result.hits]
    assert explained == [*(round(n / NOTES, 6) for n in numbers(result)[:20]), *[None] * 10]
    # A few hits are the first of many.
    few = asked(home, ByNumber(home), k=3)
    assert [hit.chunk_id for hit in few.hits] == [hit.chunk_id for hit in result.hits[:3]]


def test_passages_are_read_with_title_and_headings(home: SearchHome) -> None:
    """As they are embedded."""
    reranker = ByNumber(home)
    asked(home, reranker, k=1)
    assert all(text.startswith("Note ") and "number " in text for text in reranker.read)
    assert len(reranker.read) == 20


def test_what_the_budget_does_not_reach_keeps_its_place(home: SearchHome) -> None:
    """And a warning says so; the batch that is being scored counts."""
    plain = numbers(asked(home, ByNumber(home), rerank=False))
    reranker = ByNumber(home)
    result = asked(home, reranker, budget_ms=SLOW_MS + 1)
    done = 2 * BATCH
    assert len(reranker.read) == done
    assert numbers(result)[done:] == plain[done:]
    assert numbers(result)[:done] == sorted(plain[:done], reverse=True)
    assert result.warnings == (
        "reranked 16 of 20 passages in 41 ms; raise rerank.budget_ms to rerank all",
    )


def test_a_failure_costs_a_warning(home: SearchHome) -> None:
    """Also in the middle: then nothing is reranked, and so it is where the scores are none."""
    plain = asked(home, ByNumber(home), rerank=False)
    failing = ByNumber(home)
    failing.fails_at = BATCH
    wrong: list[Any] = [[0.5], [2.0] * BATCH, [float("nan")] * BATCH, ["x"] * BATCH, 7]
    for gives in (None, *wrong):
        reranker = failing if gives is None else ByNumber(home)
        reranker.gives = gives
        result = asked(home, reranker)
        assert result.hits == plain.hits
        (warning,) = result.warnings
        assert warning.startswith("not reranked: the reranker ")


def test_a_boost_counts_after_reranking(tmp_path: Path) -> None:
    """The score is multiplied by what boosts a passage."""
    home = SearchHome(tmp_path)
    home.give("a.md", "# Note 10\n\nnumber 10 kettle #mine\n")
    home.give("b.md", "# Note 12\n\nnumber 12 kettle\n")
    boosted = asked(home, ByNumber(home), boost_entities=("#mine",))
    assert numbers(asked(home, ByNumber(home))) == [12, 10]
    assert numbers(boosted) == [10, 12]
    home.close()


def test_nothing_set_up_is_one_clear_error(home: SearchHome) -> None:
    """Where it is wanted; a model that is gone costs a warning."""
    with pytest.raises(ModelMissing, match=r"set rerank\.kind to onnx or"):
        home.search("kettle", rerank=True)
    backends = SearchBackends(
        lexical=lambda: home.lexical,
        dense=lambda _: DenseBackend(embedder=home.embedder, index=home.dense),
        rerank=RerankSettings(kind="onnx", model=str(home.root / "none")),
        reranker=make_reranker,
    )
    searcher = Searcher(home.store, home.content, backends, home.settings, home.lock_wait_s)
    result = searcher.search(SearchRequest(query="kettle", mode="lexical", rerank=True), OPERATOR)
    assert result.hits == home.search("kettle", mode="lexical").hits
    assert result.warnings[0].startswith("not reranked: there is no reranker at ")


@pytest.mark.parametrize("labels", [1, 2])
def test_a_folder_with_a_cross_encoder(tmp_path: Path, labels: int) -> None:
    """One logit is a logistic score, two are a softmax; threads and batches change nothing."""
    folder = write_cross_encoder(tmp_path, "dog bites man the", labels=labels)
    settings = RerankSettings(kind="onnx", model=str(folder))
    passages = ["man bites dog", "The dog bites man \ud800", "", "the dog bites the man"]
    scores = [score_of(0), score_of(2), score_of(0), score_of(1)]
    for threads in (1, 4):
        reranker = make_reranker(settings, threads)
        raw = reranker.score("dog bites man", [text.lower() for text in passages])
        assert checked_scores(raw, 4) == scores
    assert reranker.score("dog", []) == []


def test_a_pair_is_cut_to_the_models_length(tmp_path: Path) -> None:
    """The longer text is, so that the query is still read; what lies behind does not count."""
    folder = write_cross_encoder(tmp_path, "dog bites man x", tokens_max=16)
    reranker = make_reranker(RerankSettings(kind="onnx", model=str(folder)))
    near, far = "dog bites " + "x " * 10_000, "x " * 10_000 + "dog bites"
    assert checked_scores(reranker.score("dog bites", [near, far]), 2) == [
        score_of(1),
        score_of(0),
    ]
    (score,) = reranker.score("x " * 50_000, ["dog bites"])
    assert 0.0 <= score <= 1.0


def test_what_is_no_cross_encoder_is_said(tmp_path: Path) -> None:
    """A folder without one, files of something else, a model of two texts, and no name."""
    with pytest.raises(ModelMissing, match="needs a model"):
        make_reranker(RerankSettings(kind="onnx"))
    with pytest.raises(ModelMissing, match=r"rerank\.model = x is no whole path"):
        make_reranker(RerankSettings(kind="onnx", model="x"))
    with pytest.raises(ModelMissing, match="there is no reranker at"):
        make_reranker(RerankSettings(kind="onnx", model=str(tmp_path / "none")))
    folder = write_cross_encoder(tmp_path / "odd", "x")
    (folder / "model.onnx").write_bytes(b"no graph")
    with pytest.raises(ModelMissing, match="cannot be loaded"):
        make_reranker(RerankSettings(kind="onnx", model=str(folder)))
    (folder / "model.onnx").unlink()
    with pytest.raises(ModelMissing, match=r"no model\.onnx"):
        make_reranker(RerankSettings(kind="onnx", model=str(folder)))
    with pytest.raises(ModelMissing, match=r"no reranker onyx, only onnx, .* set rerank\.kind"):
        make_reranker(RerankSettings(kind="onyx"))


class _CrossEncoder:
    """As much of the library's class as kb uses; this test needs no torch."""

    def __init__(self, name: str, trust_remote_code: bool) -> None:
        assert not trust_remote_code
        if name == "gone":
            raise OSError("gone is not a local folder")
        self.labels = 3 if name == "three" else 2 if name == "two" else 1

    def predict(self, pairs: list[tuple[str, str]], **options: Any) -> Any:
        assert options["activation_fn"](7) == 7
        rows = [[1.0] * (self.labels - 1) + [float(len(text))] for _, text in pairs]
        return np.array(rows, np.float32).squeeze(1) if self.labels == 1 else np.array(rows)


def test_a_cross_encoder_of_the_library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its logits become scores; it is no folder of a clone, and runs no code of a model."""
    settings = RerankSettings(kind="sentence-transformers", model="one")
    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    with pytest.raises(ModelMissing, match=r"pip install 'kb-search\[st\]'"):
        make_reranker(settings)
    library = types.SimpleNamespace(CrossEncoder=_CrossEncoder)
    monkeypatch.setitem(sys.modules, "sentence_transformers", library)
    one = make_reranker(settings).score("q", ["", "ab", "a" * 2_000])
    assert checked_scores(one, 3) == [0.5, 0.880797, 1.0]
    two = make_reranker(msgspec.structs.replace(settings, model="two")).score("q", ["abc"])
    assert checked_scores(two, 1) == [0.880797]
    with pytest.raises(RerankError, match="3 labels"):
        make_reranker(msgspec.structs.replace(settings, model="three")).score("q", ["a", "b"])
    with pytest.raises(ModelMissing, match="gone cannot be loaded"):
        make_reranker(msgspec.structs.replace(settings, model="gone"))
    (tmp_path / "one").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ModelMissing, match="a model's name and a folder here"):
        make_reranker(settings)
