"""kb.intake.embed.scripts: what is counted, and when a model is said to read a text."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kb.intake.embed.scripts import _BLOCKS, SCRIPTS, can_read, scripts_of

LATIN = frozenset({"Latin"})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", {}),
        ("12 + 3 = 15 ×÷ 😀", {}),
        ("Åse naïve", {"Latin": 8}),
        ("ab мир", {"Latin": 2, "Cyrillic": 3}),
        ("中文 かな カナ 한글", {"Han": 2, "Hiragana": 2, "Katakana": 2, "Hangul": 2}),
        ("λόγος", {"Greek": 5}),
        ("שלום", {"Hebrew": 4}),
        ("سلام", {"Arabic": 4}),
        ("ไทย", {"Thai": 3}),
        ("नमन", {"Devanagari": 3}),
        ("ქართ", {"Other": 4}),
        ("\ud83d", {}),
    ],
)
def test_letters_are_counted_by_script(text: str, expected: dict[str, int]) -> None:
    """Letters only: no digits, signs, blanks or emoji."""
    assert scripts_of(text) == expected


def test_blocks_ascend_without_overlap() -> None:
    """The search for a block relies on it."""
    ends = [-1, *(last for _, last, _ in _BLOCKS)]
    for (first, last, _), before in zip(_BLOCKS, ends, strict=False):
        assert before < first <= last


@given(st.text())
def test_every_letter_is_counted_once(text: str) -> None:
    """Counts sum to the letters, under known names."""
    counts = scripts_of(text)
    assert sum(counts.values()) == sum(map(str.isalpha, text))
    assert set(counts) <= SCRIPTS


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("plain English", True),
        ("1234 !?", True),
        ("", True),
        ("今天天气很好", False),
        ("ab 中", True),
        ("a 中", False),
        ("Python 中文 docs", True),
        ("Привет", False),
    ],
)
def test_a_model_of_latin_reads_what_is_mostly_latin(text: str, expected: bool) -> None:
    """Half of the letters are enough; a Han character weighs two; no letters, no objection."""
    assert can_read(LATIN, text) is expected


def test_a_model_of_all_scripts_reads_everything() -> None:
    """`*` stands for all."""
    assert can_read(frozenset({"*"}), "今天")


def test_the_share_is_the_callers() -> None:
    """A stricter caller turns away what half would let in."""
    assert can_read(LATIN, "abc 中", share_min=0.6)
    assert not can_read(LATIN, "abc 中", share_min=0.61)
