"""Where a text holds a query's terms: the same as its analysis tells, found once."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb.search.index.analysis import terms, terms_held, terms_in
from kb.search.term_places import _simple_letters, term_places

WORDS = (
    *(
        "boiler",
        "Boilers",
        "BOILED",
        "parseConfig",
        "HTTPServer",
        "café",
        "Straße",
        "œuvre",
        "it’s",
        "l’état",
    ),
    *(
        "naïve",
        "x2",
        "m²",
        "½",
        "a_b",
        "Ünal",
        "Ισπανία",
        "ёлка",
        "the",
        "-",
        "…",
        "“tea”",
        "tea—pot",
    ),
)
PROSE = st.lists(st.sampled_from(WORDS)).map(" ".join)
LETTERS = st.text("aé B.\n²½’—_Zς茶ชा\u0301\u00adİ", max_size=40)
QUERIES = [
    "boiler tea",
    "config pots naive",
    "parse http server",
    "cafe strasse ouvre etat",
    "茶 tea",
    "1 2",
]


@given(PROSE | LETTERS | st.text(), st.sampled_from(QUERIES))
def test_a_text_holds_what_its_analysis_has(text: str, typed: str) -> None:
    """Of alphabets and of every other script."""
    wanted = frozenset(terms(typed))
    assert term_places(text, wanted).held == terms_held(text, wanted)


@given(st.lists(PROSE, min_size=2, max_size=4), st.sampled_from(QUERIES))
def test_each_place_is_in_the_part_that_holds_the_term(parts: list[str], typed: str) -> None:
    """So no sentence needs an analysis of its own."""
    wanted, at = frozenset(terms(typed)), 0
    places = term_places("\n".join(parts), wanted)
    for part in parts:
        assert places.between(at, at + len(part)) == terms_in(part, wanted)
        first = places.first(at, at + len(part))
        assert (first is None) is not bool(terms_in(part, wanted))
        at += len(part) + 1


@pytest.mark.parametrize("around", [("boiler", ""), ("", "tea"), ("boiler", "tea"), (" tea", " x")])
def test_simple_letters_are_folded_one_by_one(around: tuple[str, str]) -> None:
    """Beside each of them a text holds the terms that the analysis of all of it finds."""
    before, after = around
    for letter in sorted(_simple_letters()):
        text = f"{before}{letter}{after}"
        words = re.findall(r"\w+", text)
        wanted = frozenset(terms(f"boiler tea {text} {' '.join(words)}"))
        assert term_places(text, wanted).held == terms_held(text, wanted), hex(ord(letter))
