"""Where sentences end, and what they cite."""

from collections.abc import Callable

import pytest
from growth import assert_linear

from kb.knowledge.answers.citations import cited, without_citations
from kb.knowledge.answers.sentences import is_prose, plain, sentences


def split(text: str) -> list[str]:
    return [text[span.start : span.end] for span in sentences(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("One thing [1]. Another [2].", ["One thing [1].", "Another [2]."]),
        ("One thing. [1][2] Another.[3]", ["One thing. [1][2]", "Another.[3]"]),
        ("One thing.\n[1]\n\nAnother. [2]", ["One thing.\n[1]", "Another. [2]"]),
        ("Is it? It is! Yes…", ["Is it?", "It is!", "Yes…"]),
        ('"Who?" he said. "I."', ['"Who?" he said.', '"I."']),
        ("Two lines\nof one. And\ntwo.", ["Two lines\nof one.", "And\ntwo."]),
        ("no end at all", ["no end at all"]),
        (" \n\n ", []),
    ],
)
def test_prose_is_split(text: str, expected: list[str]) -> None:
    """Each sentence has the citations that stand before or behind its full stop."""
    assert split(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        "It is, e.g. Tantivy, i.e. an index.",
        "Dr. Smith met J. R. Tolkien.",
        "See fig. 3 and vol. 2, p. 14.",
        "Version 3.5 of kb.toml is at https://x.org/a.b?c.d now.",
        "He left at 5 p.m. and came back.",
        "Leaves, twigs etc. are raked.",
        "Run `kb add. Then` at once.",
        "Wait ... and see.",
    ],
)
def test_no_end_is_seen_where_there_is_none(text: str) -> None:
    """Abbreviations, initials, numbers, addresses and code hold full stops that end nothing."""
    assert split(text) == [text]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The answer is no. Then it ends.", ["The answer is no.", "Then it ends."]),
        ("It was in 1999. 5 came.", ["It was in 1999.", "5 came."]),
        ("Take vitamin c. [1] Rest.", ["Take vitamin c. [1]", "Rest."]),
    ],
)
def test_an_end_after_what_may_be_an_abbreviation(text: str, expected: list[str]) -> None:
    """A word that is an abbreviation before a number is a word before anything else."""
    assert split(text) == expected


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("绿茶用七十度的水[1]。红茶不同【2】。", ["绿茶用七十度的水[1]。", "红茶不同【2】。"]),
        ("绿茶。[1]红茶！[2]", ["绿茶。[1]", "红茶！[2]"]),
        ("他说“好。”然后走了。", ["他说“好。”然后走了。"]),
        ("「はい。」[1]次です。", ["「はい。」[1]", "次です。"]),
    ],
)
def test_cjk_needs_no_blank(text: str, expected: list[str]) -> None:
    """Full stops of CJK scripts end a sentence by themselves, but not inside a quotation."""
    assert split(text) == expected


def test_items_headings_and_rows_are_sentences() -> None:
    """What begins a line of its own begins a sentence, and a number before an item ends none."""
    text = "# Head\nIntro:\n- one [1]\n- two. Three [2]\n  goes on\n1. four\n| a. B | c |\n> said"
    assert split(text) == [
        "# Head",
        "Intro:",
        "- one [1]",
        "- two.",
        "Three [2]\n  goes on",
        "1. four",
        "| a. B | c |",
        "> said",
    ]
    assert [plain(one) for one in split(text)][2:5:2] == ["one [1]", "Three [2] goes on"]
    assert [is_prose(one) for one in split(text)] == [False, *[True] * 5, False, True]


def test_fenced_code_is_one_sentence() -> None:
    """Code has the citations behind it, none of its own, and an open fence goes to the end."""
    code = "```sh\nkb add. Then\nx = a[1]\n\ny\n```"
    assert split(f"Run this:\n{code}\n[2]\nDone [1].") == ["Run this:", f"{code}\n[2]", "Done [1]."]
    assert cited(f"{code}\n[2]") == (2,)
    assert split("```\nopen. And\n\nopen") == ["```\nopen. And\n\nopen"]


@pytest.mark.parametrize(
    ("text", "numbers", "rest"),
    [
        ("Tea [1][3].", (1, 3), "Tea."),
        ("Tea[1, 3]. [1]", (1, 3), "Tea."),
        ("茶【2】。", (2,), "茶。"),
        ("Tea [ 12 ; 7 ]", (12, 7), "Tea"),
        ("A [1](https://x.org) link", (), "A [1](https://x.org) link"),
        ("In `a[1]` code [2]", (2,), "In `a[1]` code"),
        ("Not [x], [1234] or [0.5]", (), "Not [x], [1234] or [0.5]"),
    ],
)
def test_citations_are_read(text: str, numbers: tuple[int, ...], rest: str) -> None:
    """Numbers in brackets are citations, but not in code and links, nor what is no number."""
    assert cited(text) == numbers
    assert without_citations(text) == rest


@pytest.mark.parametrize(
    ("unit", "end"), [(".", "x"), ("[1", ""), ("a. [1]", ""), ("`", ""), (" ", ".")]
)
@pytest.mark.parametrize("work", [sentences, without_citations])
def test_any_text_is_split_in_linear_time(
    work: Callable[[str], object], unit: str, end: str
) -> None:
    """Whatever an answer repeats, twice the text is twice the work."""
    half = unit * (20_000 // len(unit))
    assert_linear(work, half + end, half * 2 + end)
