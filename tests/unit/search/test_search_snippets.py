"""The sentence of a hit that shows why it was found."""

import string

import pytest
from hypothesis import given
from hypothesis import strategies as st
from search_home import SearchHome

from kb.model.doc import OPERATOR
from kb.search.snippets import sentences, snippet_of

LETTERS = st.text(string.ascii_letters + " .!?\n#|`-。！？จ漢é\f", max_size=400)
PROSE = """# The boiler

It hums, e.g. at night. Dr. Ito serviced the boiler in
May, and replaced the valve. The cellar is dry!

- The valve costs 30 euros.
- Bleed the radiators.
"""


def said(text: str, *words: str, is_code: bool = False) -> str:
    snippet = snippet_of(text, dict.fromkeys(words, 1.0), is_code=is_code)
    assert snippet is not None
    assert snippet.text == text[snippet.start : snippet.end]
    return snippet.text


@pytest.mark.parametrize(
    ("text", "words", "expected"),
    [
        (PROSE, ["boiler"], "Dr. Ito serviced the boiler in\nMay, and replaced the valve."),
        (PROSE, ["valv"], "Dr. Ito serviced the boiler in\nMay, and replaced the valve."),
        (PROSE, ["valv", "euro"], "- The valve costs 30 euros."),
        (PROSE, ["cellar"], "The cellar is dry!"),
        (PROSE, ["xylophon"], "It hums, e.g. at night."),
        ("锅炉很旧。阀门在五月更换了。钥匙在花盆下面。", ["阀门"], "阀门在五月更换了。"),
        ("ボイラーは古い。弁は五月に交換した！", ["交换"], "弁は五月に交換した！"),
        ("| part | price |\n|---|---|\n| pump | 9 |\n| valve | 30 |\n", ["valv"], "| valve | 30 |"),
        ("```\nopen(tap)\nclose(tap)\n```\nText.", ["close"], "close(tap)"),
        ("# Only a heading", ["head"], "# Only a heading"),
    ],
)
def test_it_is_the_sentence_with_the_words(text: str, words: list[str], expected: str) -> None:
    """The first of equals; a heading says nothing that the hit does not say anyway."""
    assert said(text, *words) == expected


def test_rare_words_count_for_more() -> None:
    weights = {"boiler": 1.0, "cellar": 3.0}
    snippet = snippet_of(PROSE, weights)
    assert snippet is not None
    assert snippet.text == "The cellar is dry!"


def test_lines_of_code_are_sentences() -> None:
    code = "# Opens it.\ndef open_tap(tap):\n    return tap. open()\n"
    assert said(code, "tap", is_code=True) == "def open_tap(tap):"


def test_a_long_sentence_is_cut_around_the_words() -> None:
    """Thai has no marks between sentences."""
    for text in ("หม้อน้ำ" * 200 + "กุญแจ" + "หม้อน้ำ" * 200, "tea " * 300 + "กุญแจ " + "tea " * 300):
        cut = said(text, "กุ")
        assert len(cut) <= 300
        assert "กุญแจ" in cut


@given(LETTERS, st.booleans())
def test_sentences_are_disjoint_and_in_order(text: str, is_code: bool) -> None:
    """None has white space at its edges, and all of the text's letters are in one."""
    end = 0
    for start, stop in sentences(text, is_code=is_code):
        assert end <= start < stop
        assert text[start:stop] == text[start:stop].strip()
        end = stop
    assert (snippet_of(text, {"a": 1.0}, is_code=is_code) is None) is (end == 0)


def test_each_hit_of_a_query_has_one(home: SearchHome) -> None:
    """In every mode, of the text that a budget gives; what is like a doc has none."""
    doc = home.give("boiler.md", PROSE)
    home.give("other.md", "# Other\n\nA pump.")
    for limits in ({}, {"mode": "dense"}, {"max_tokens": 400}):
        hit = home.search("which valve was replaced", **limits).hits[0]
        assert hit.snippet is not None
        assert hit.snippet.text == hit.text[hit.snippet.start : hit.snippet.end]
        assert hit.snippet.text.endswith("replaced the valve.")
    assert home.searcher().similar(doc.doc_id, 3, OPERATOR).hits[0].snippet is None
