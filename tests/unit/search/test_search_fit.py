"""Fit: how a passage stands to the question, whatever else was found."""

import json
import string
from itertools import accumulate
from pathlib import Path
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st
from search_home import SearchHome

from kb.intake.embed.protocol import prefixes_mark
from kb.knowledge.guide.score import BUILT_IN
from kb.model.config import SearchSettings
from kb.model.doc import OPERATOR
from kb.model.search import SearchRequest
from kb.search.fit import (
    COMBINED_FLOORS,
    COVERAGE_FLOORS,
    FitContext,
    FitRule,
    FitSignals,
    fit_rule,
    term_coverage,
)
from kb.search.hits import FIT_THRESHOLD
from kb.search.index import analysis
from kb.search.index.analysis import ANALYSIS_VERSION, analyzer, normalize, terms_in
from kb.search.query_cache import CachingSearcher

NOTES = {
    "Bicycle repair": "The rear derailleur needs a new cable.",
    "Garden plan": "Tomatoes along the south wall, beans next to the shed.",
    "Tax return": "Send the forms to the accountant.",
}
LETTERS = st.text(string.ascii_letters + " éßİñαβक्षไทยดี漢字仮名한국-_.'’", max_size=60)
PACKAGE = Path(__file__).parents[3] / "packages/multilingual/src/kb_search_multilingual"
CARD = json.loads((PACKAGE / "model.json").read_text())
MULTILINGUAL = f"onnx:{CARD['name']}:{CARD['files']['model.onnx'][:12]}" + prefixes_mark(
    CARD["query_prefix"], CARD["passage_prefix"]
)


def filled(home: SearchHome) -> SearchHome:
    for title, text in NOTES.items():
        home.give(title, f"# {title}\n\n{text}\n")
    return home


def test_what_is_in_force_was_measured() -> None:
    """Each model that kb brings has a floor under this analysis, with each fusion."""
    fusions = get_args(SearchSettings.__annotations__["fusion"])
    assert set(COMBINED_FLOORS) == {
        (model, ANALYSIS_VERSION, fusion)
        for model in (BUILT_IN, MULTILINGUAL)
        for fusion in fusions
    }
    assert set(COVERAGE_FLOORS) == {(ANALYSIS_VERSION, fusion) for fusion in fusions}


def test_a_model_that_was_not_measured_has_no_say() -> None:
    """Under it, or without one, words alone decide."""
    for fingerprint in (None, "st:another"):
        rule = fit_rule(fingerprint, "spaced")
        assert rule.combined_floor is None
        assert rule.fit(FitSignals(nearness=1.0, coverage=0.0)) == 0.0
    assert fit_rule(BUILT_IN, "spaced").fit(FitSignals(nearness=1.0, coverage=0.0)) > FIT_THRESHOLD


def test_fit_is_half_at_the_floor() -> None:
    """Less below it, more above it, never above 1; without a vector words decide."""
    rule = FitRule(combined_floor=0.4, coverage_floor=0.2)
    assert rule.fit(FitSignals(nearness=0.4, coverage=0.0)) == FIT_THRESHOLD
    assert rule.fit(FitSignals(nearness=0.39, coverage=0.0)) < FIT_THRESHOLD
    assert rule.fit(FitSignals(nearness=1.0, coverage=1.0)) == 1.0
    assert rule.fit(FitSignals(nearness=None, coverage=0.2)) == FIT_THRESHOLD


def test_rare_words_count_for_more() -> None:
    """The share is by weight; without words it is nothing."""
    weights = {"tea": 3.0, "make": 1.0}
    assert term_coverage(weights, "Green teas.") == 0.75
    assert term_coverage(weights, "They make it.") == 0.25
    assert term_coverage({}, "Green tea.") == 0.0
    assert term_coverage({"茶道": 1.0}, "日本茶道史") == 1.0


def test_the_background_is_that_of_the_others() -> None:
    """A passage that is alone is as near as it is; among many as near it stands out by less."""
    alone = FitContext(weights={}, cosine_sum=0.5, cosine_count=1)
    among = FitContext(weights={}, cosine_sum=0.5 + 99 * 0.4, cosine_count=100)
    assert alone.nearness(0.5) == pytest.approx(0.47)
    assert 0.1 < among.nearness(0.5) < 0.2


@given(LETTERS, LETTERS)
def test_terms_in_a_text_are_those_of_its_analysis(text: str, query: str) -> None:
    """Whatever is not looked at closely has none of them."""
    wanted = frozenset(analyzer().analyze(normalize(query)))
    whole = wanted.intersection(analyzer().analyze(normalize(text)))
    assert terms_in(text, wanted) == whole


def test_terms_of_letters_need_no_dictionary(monkeypatch: pytest.MonkeyPatch) -> None:
    """A text in Han is searched for terms of letters without the dictionary of Han."""
    cut: list[str] = []
    monkeypatch.setattr(analysis, "_han_words", lambda run: cut.append(run) or [run])
    assert terms_in("绿茶 green tea 茶壶", frozenset({"tea", "pot"})) == {"tea"}
    assert cut == []
    assert terms_in("绿茶 green tea", frozenset({"tea", "绿茶"})) == {"tea", "绿茶"}
    assert cut == ["绿茶"]


@pytest.mark.parametrize("mode", ["hybrid", "lexical", "dense"])
def test_a_small_home_under_an_unmeasured_model(home: SearchHome, mode: str) -> None:
    """A title fits, and what no note says does not, in whatever mode."""
    filled(home)
    best, *_ = home.search("bicycle repair", mode=mode, explain=True).hits
    assert (best.title, best.weak) == ("Bicycle repair", False)
    assert best.explain is not None
    assert best.explain["fit"] == 1.0
    for query in ("flurbelgrmpf", "president of Mars"):
        assert all(hit.weak for hit in home.search(query, mode=mode).hits)


def test_weak_does_not_depend_on_how_many_are_wanted(home: SearchHome) -> None:
    """The first hit is as it is, alone or among others."""
    filled(home)
    for query in ("bicycle repair", "the president of the south"):
        all_of_them = home.search(query, k=3).hits
        (one,) = home.search(query, k=1).hits
        assert one.weak == all_of_them[0].weak


def test_a_score_is_the_least_fit_so_far(home: SearchHome) -> None:
    """So it never rises along the ranking, and is below FIT_THRESHOLD where nothing fits."""
    filled(home)
    for query in ("flurbelgrmpf president", "garden cable", "bicycle repair tomatoes"):
        hits = home.search(query, explain=True).hits
        fits = [float(hit.explain["fit"]) for hit in hits if hit.explain]
        assert [hit.score for hit in hits] == list(accumulate(fits, min))
        assert [hit.weak for hit in hits] == [fit < FIT_THRESHOLD for fit in fits]
    assert all(hit.score < FIT_THRESHOLD for hit in home.search("flurbelgrmpf president").hits)


def test_a_least_score_leaves_out_what_scores_less(home: SearchHome) -> None:
    """In an answer with hits that fit, too."""
    filled(home)
    hits = home.search("garden plan").hits
    kept = home.search("garden plan", min_score=0.5).hits
    assert kept == tuple(hit for hit in hits if hit.score >= 0.5)
    assert 0 < len(kept) < len(hits)
    assert home.search("flurbelgrmpf", min_score=FIT_THRESHOLD).hits == ()


def test_a_remembered_answer_is_as_weak(home: SearchHome) -> None:
    """Asked again, and with another least score, it is what it would be anew."""
    filled(home)
    searcher = home.searcher(kind=CachingSearcher)
    for query in ("flurbelgrmpf", "garden plan", "flurbelgrmpf"):
        for least in (0.0, 0.5):
            request = SearchRequest(query=query, min_score=least)
            assert searcher.search(request, OPERATOR) == home.search(query, min_score=least)
