"""Words: the same for documents and queries, in any script."""

import pytest
from growth import assert_linear
from hypothesis import given
from hypothesis import strategies as st

from kb.search.index.analysis import highlight_spans, normalize, phrases, terms


def test_ascii_text_is_left_as_it_is() -> None:
    """Nothing is copied or split that a tokenizer splits anyway."""
    text = "Plain text, with x_y and C++."
    assert normalize(text) is text


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("Running shoes", ["run", "shoe"]),
        ("the café of the naïve", ["cafe", "naiv"]),
        ("ＦＵＬＬ ｗｉｄｔｈ", ["full", "width"]),
        ("伊利 milk", ["伊利", "milk"]),
        ("to be or not to be", ["to", "be", "or", "not"]),
        ("the IT", ["the", "it"]),
        ("the who", ["the", "who"]),
        ("foo foo bar", ["foo", "bar"]),
        ("한국어를", ["한국", "국어", "어를"]),
        ("カタカナ", ["カタ", "タカ", "カナ"]),
        ("สวัสดี", ["สว", "วั", "ัส", "สด", "ดี"]),
        ("", []),
        ("\0 ?!* ()", []),
        ("\ud800", []),
    ],
)
def test_terms(query: str, expected: list[str]) -> None:
    """Terms are analysed, distinct and in order; stop words go unless nothing else is there."""
    assert terms(query) == expected


def test_long_han_words_come_with_the_words_inside_them() -> None:
    """A search for a part of a compound finds the compound."""
    assert {"中国", "科学院", "中国科学院"} <= set(terms("中国科学院"))


def test_terms_are_bounded() -> None:
    """A query of a megabyte is searched by its first words, at the cost of those."""
    query = " ".join(f"word{n}" for n in range(200_000))
    assert len(terms(query)) == 256
    assert_linear(terms, query[: len(query) // 2], query)


def test_phrases_are_quoted_parts_of_two_words_or_more() -> None:
    """One quoted word is a word; a lone quote is none."""
    assert phrases('say "the quick fox" and "one" “to be” "') == [
        ["the", "quick", "fox"],
        ["to", "be"],
    ]


def test_highlights_are_spans_of_the_original_text() -> None:
    """Accents, stems and unspaced scripts included."""
    text = "The running cafés, 伊利集团 shoe, カタカナ"
    spans = highlight_spans(text, terms("run cafe 伊利 shoes タカナ"))
    assert [text[a:b] for a, b in spans] == ["running", "cafés", "伊利", "shoe", "タカナ"]


def test_no_terms_no_highlights() -> None:
    """An empty query marks nothing."""
    assert highlight_spans("some text", []) == []


def test_highlighting_is_linear() -> None:
    """Twice the text of one unspaced script is twice the work."""
    half = "伊利集团的牛奶" * 2_000
    assert len(highlight_spans(half, ["伊利", "牛奶"])) > 1000
    assert_linear(lambda text: highlight_spans(text, ["伊利", "牛奶"]), half, half * 2)


@given(st.text())
def test_any_text_has_words_and_spans(text: str) -> None:
    """Nothing raises; spans ascend, do not overlap and lie inside the text."""
    spans = highlight_spans(text, terms(text))
    flat = [end for span in spans for end in span]
    assert flat == sorted(flat)
    assert all(0 <= a < b <= len(text) for a, b in spans)
