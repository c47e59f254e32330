"""Claims about where a markdown is cut."""

import re
from collections.abc import Callable
from itertools import pairwise

import pytest
from growth import assert_linear

from kb.intake.chunker.chunking import chunk, chunk_many
from kb.intake.chunker.rules import FINGERPRINT, fingerprint
from kb.model.text import ChunkDraft

_TOKEN = re.compile(r"\w+|[^\w\s]")


def spans_of(texts: list[str]) -> list[list[tuple[int, int]]]:
    return [[found.span() for found in _TOKEN.finditer(text)] for text in texts]


def cut(markdown: str, tokens_max: int = 64, overlap: int = 8, title: str = "") -> list[ChunkDraft]:
    return chunk(
        markdown, spans_of=spans_of, tokens_max=tokens_max, overlap_tokens=overlap, title=title
    )


def texts(markdown: str, tokens_max: int = 64, overlap: int = 8) -> list[str]:
    return [passage.text for passage in cut(markdown, tokens_max, overlap)]


def words(count: int, stem: str = "w") -> str:
    return " ".join(f"{stem}{number}" for number in range(count))


def sentences(count: int, length: int = 5) -> str:
    return " ".join(words(length - 1, f"S{number}x") + "." for number in range(count))


@pytest.mark.parametrize("markdown", ["", "\n\n", " \t\f\n"])
def test_nothing_visible_has_no_passages(markdown: str) -> None:
    """White space alone is no passage."""
    assert cut(markdown) == []


def test_a_note_that_fits_is_one_passage() -> None:
    """A whole note keeps together, under the headings that all of it stands under."""
    (passage,) = cut("\n\n# Title\n\nIntro.\n\n## One\n\na\n\n## Two\n\nb\n\n")
    assert passage.text == "# Title\n\nIntro.\n\n## One\n\na\n\n## Two\n\nb"
    assert (passage.start, passage.heading, passage.page) == (2, ("Title",), None)
    assert passage.tokens == 12


def test_sections_are_cut_apart_and_know_their_path() -> None:
    """Sections of some length each make a passage that begins with its heading."""
    markdown = (
        f"# T\n\n{words(30)}\n\n## A\n\n{words(30)}\n\n### B\n\n{words(30)}\n\n# U\n\n{words(30)}"
    )
    found = cut(markdown)
    assert [passage.heading for passage in found] == [("T",), ("T", "A"), ("T", "A", "B"), ("U",)]
    assert [passage.text.split("\n")[0] for passage in found] == ["# T", "## A", "### B", "# U"]


def test_small_siblings_are_packed_under_their_common_path() -> None:
    """Sections under a quarter of the budget join the next; the path claims only what is common."""
    parts = "\n\n".join(f"## S{number}\n\n{words(8)}" for number in range(8))
    found = cut(f"# T\n\n{parts}")
    assert len(found) == 4
    assert {passage.heading for passage in found} == {("T",)}
    assert all(passage.text.count("## ") >= 2 for passage in found)


def test_a_small_rest_joins_what_is_before_it() -> None:
    """The last of a row of siblings is not left alone while it fits."""
    found = texts(f"# A\n\n{words(50)}\n\n# B\n\n{words(40)}\n\n# C\n\nend")
    assert [text.split("\n")[0] for text in found] == ["# A", "# B"]


def test_a_heading_without_body_leads_to_what_follows() -> None:
    """It stands in the first passage after it, and narrows no path."""
    found = cut(f"# T\n\n## A\n\n{sentences(30)}\n\n## B\n\n{words(30)}")
    assert found[0].text.startswith("# T\n\n## A\n\nS0x0")
    assert found[0].heading == ("T", "A")
    assert found[-1].heading == ("T", "B")


def test_a_heading_that_nothing_follows_is_kept() -> None:
    """It joins what is before it, or is a passage where that is full."""
    assert texts("# Alone") == ["# Alone"]
    assert texts(f"# A\n\n{words(58)}\n\n# End")[-1] == "# End"


def test_a_long_section_is_cut_between_sentences_with_an_overlap() -> None:
    """Passages start and end with sentences; each begins with the end of the one before."""
    found = cut(f"# T\n\n{sentences(40)}")
    assert len(found) > 3
    assert {passage.heading for passage in found} == {("T",)}
    shared = [before.text[after.start - before.end :] for before, after in pairwise(found[:-1])]
    assert all(text.startswith("S") and text.endswith(".") for text in shared)
    assert {len(_TOKEN.findall(text)) for text in shared} <= {5, 10}


def test_the_last_passage_gives_up_its_overlap_rather_than_be_two() -> None:
    """What is left of a section and fits without an overlap is the last passage."""
    found = texts(f"{sentences(1, 40)} {sentences(1, 60)}")
    assert [len(_TOKEN.findall(text)) for text in found] == [40, 60]


def test_no_overlap_where_none_is_asked_for() -> None:
    """With an overlap of 0 neighbours share nothing."""
    found = cut(sentences(40), overlap=0)
    assert all(a.end <= b.start for a, b in pairwise(found))


def test_no_overlap_across_headings() -> None:
    """The first passage of a section begins with its heading."""
    found = cut(f"# A\n\n{sentences(20)}\n\n# B\n\n{sentences(20)}")
    first = next(passage for passage in found if passage.heading == ("B",))
    assert first.text.startswith("# B")


def test_abbreviations_and_initials_end_no_sentence() -> None:
    """No passage begins behind `Dr.`, `e.g.` or an initial."""
    text = "Here Dr. Foo met J. Bar, e.g. at noon, and they both sat down to talk for long. " * 12
    assert all(passage.startswith("Here") for passage in texts(text, overlap=0))


def test_chinese_is_cut_behind_its_full_stops() -> None:
    """。 ends a sentence without a space."""
    one = "，".join("甲乙丙丁戊" for _ in range(3)) + "。"
    spans = lambda made: [[(i, i + 1) for i in range(len(text))] for text in made]  # noqa: E731
    found = chunk(one * 20, spans_of=spans, tokens_max=64, overlap_tokens=8)
    assert len(found) > 4
    assert all(passage.text.endswith("。") for passage in found)


def test_a_fence_that_fits_stays_whole_even_behind_an_overlap() -> None:
    """The passage before is cut short, and the overlap given up, rather than cutting the fence."""
    fence = "```python\n" + "\n".join(f"x{number} = 1" for number in range(18)) + "\n```"
    found = texts(f"{sentences(6)}\n\n{fence}\n\n{sentences(6)}")
    assert any(fence in text for text in found)


def test_a_fence_behind_a_heading_stays_whole() -> None:
    """Where heading and fence do not fit together, the heading stands alone."""
    fence = "```\n" + words(52) + "\n```"
    assert fence in texts(f"# A heading\n\n{fence}", overlap=0)


def test_a_fence_that_does_not_fit_is_cut_at_lines() -> None:
    """Every passage of a long fence begins with one of its lines, indent included."""
    rows = [f"    line{number} = value" for number in range(60)]
    found = texts("```\n" + "\n".join(rows) + "\n```")
    assert len(found) > 3
    assert all(text.split("\n")[0] in rows for text in found[1:])


def test_a_table_is_cut_between_rows() -> None:
    """Rows stay whole, and the head keeps its first row."""
    rows = [f"| a{number} | b{number} | c |" for number in range(40)]
    found = texts("| x | y | z |\n|---|---|---|\n" + "\n".join(rows))
    assert found[0].count("\n") >= 2
    assert all(line.endswith("|") for text in found for line in text.split("\n"))
    assert all(text.split("\n")[0] in rows for text in found[1:])


HEAD = "| Code | Meaning |"


def long_table(rows: int, head: str = HEAD, row_words: int = 3) -> str:
    made = [f"| {number} | {words(row_words, f'r{number}x')} |" for number in range(rows)]
    return "\n".join([head, "|---|---|", *made])


def test_every_chunk_of_a_table_knows_its_head() -> None:
    """Chunks that begin in a later row have the first one at the end of their path, and fit."""
    markdown = f"# T\n\n## Codes\n\nAll codes:\n\n{long_table(60)}\n\n{sentences(40)}"
    found = cut(markdown)
    inside = [passage for passage in found if passage.text.startswith("| ")]
    assert len(inside) > 5
    assert {passage.heading for passage in inside} == {("T", "Codes", HEAD)}
    others = [passage for passage in found if passage not in inside]
    assert {passage.heading for passage in others} == {("T", "Codes")}
    for passage in inside:
        path = len(spans_of([" ".join(passage.heading)])[0])
        assert passage.tokens + path + 2 <= 64
        assert passage.text == markdown[passage.start : passage.end]
    rows = [line for passage in found for line in passage.text.split("\n") if line[:1] == "|"]
    assert set(rows) == set(long_table(60).split("\n"))


def test_tables_after_each_other_have_heads_of_their_own() -> None:
    """A chunk has the head of the table that it begins in."""
    markdown = f"{long_table(30)}\n\n{long_table(30, '| Name | Words |')}"
    heads = [passage.heading for passage in cut(markdown) if passage.text.startswith("| 2")]
    assert set(heads) == {(HEAD,), ("| Name | Words |",)}


def test_a_head_of_many_columns_is_cut_after_a_cell() -> None:
    """It takes at most a third of a chunk, so that rows have room."""
    head = "|" + "|".join(f" column {number} " for number in range(16)) + "|"
    found = cut(long_table(30, head))
    assert {passage.heading for passage in found[1:] if passage.text.startswith("| ")} == {
        ("| column 0 | column 1 | column 2 | column 3 | column 4 | …",)
    }


def test_a_row_that_fits_alone_is_not_cut_for_the_head() -> None:
    """The head gives way, not the row."""
    rows = [f"| {number} | {words(56, f'r{number}x')} |" for number in range(4)]
    found = cut("\n".join([HEAD, "|---|---|", *rows]))
    assert [passage.text for passage in found if passage.text in rows] == rows


def test_a_row_that_does_not_fit_is_cut_between_cells() -> None:
    """A row longer than a chunk is cut at its bars, and each part knows the columns."""
    cells = [words(20, f"c{number}x") for number in range(8)]
    markdown = f"{long_table(3)}\n| {' | '.join(cells)} |"
    found = cut(markdown)
    assert all(any(cell in passage.text for passage in found) for cell in cells)
    parts = [passage for passage in found if "c7x" in passage.text or "c4x" in passage.text]
    assert all(passage.text.startswith("| c") for passage in parts)
    assert all(passage.heading == (HEAD,) for passage in parts)


def test_rows_without_a_head_have_none() -> None:
    """Lines of bars without a row of dashes are cut as rows, and nothing is repeated."""
    found = cut("\n".join(f"| {number} | {words(4)} |" for number in range(40)))
    assert len(found) > 3
    assert {passage.heading for passage in found} == {()}


@pytest.mark.parametrize(
    "table_of",
    [
        lambda n: "|" + " a |" * n + "\n|---|\n" + "| b |\n" * n,
        lambda n: "| a | b |\n|---|---|\n|" + " c |" * n,
        lambda n: "| a | b |\n|---|---|\n| " + "c" * 8 * n,
        lambda n: "| a | b |\n|---|---|\n" + "| 1 | 2 |\n" * n,
    ],
    ids=["wide head", "wide row", "long cell", "many rows"],
)
def test_tables_are_cut_in_linear_time(table_of: Callable[[int], str]) -> None:
    """Whatever is long in a table, twice as much is twice the work."""
    assert_linear(cut, table_of(4000), table_of(8000))


def test_a_list_is_cut_between_items() -> None:
    """Items with their continuation lines and nested items stay whole where they fit."""
    items = [f"- item {number}\n  goes on\n  - nested {number}" for number in range(30)]
    found = texts("\n".join(items))
    assert len(found) > 3
    assert all(text.startswith("- item") for text in found)
    assert all(re.search(r"nested \d+$", text) for text in found)


def test_an_item_with_many_nested_ones_stays_whole() -> None:
    """Nested items are no place to cut while the item around them fits."""
    item = "- item\n" + "\n".join(f"  - {words(6, f'n{number}x')}" for number in range(6))
    assert texts("\n".join([item] * 4)) == [item] * 4


def test_an_item_that_does_not_fit_is_cut_and_the_fence_in_it_kept() -> None:
    """Inside a long item, nested items and fences that fit are still whole."""
    fence = "  ```\n  " + words(30, "c") + "\n  ```"
    found = texts(f"- {sentences(12)}\n{fence}\n  {sentences(12)}\n  - {words(30, 'n')}\n- end")
    assert any(fence.strip() in text for text in found)
    assert any(words(30, "n") in text for text in found)


def test_pages_are_of_the_first_visible_character() -> None:
    """A passage may run over a page mark; without marks there are no pages."""
    text = f"{words(30)}\n\n\f\n\n{words(50, 'x')}\n\n\f\n\n\f\n\n{words(50, 'y')}"
    assert [passage.page for passage in cut(text, overlap=0)] == [1, 2, 4]
    assert cut("\f\n\na")[0].page == 2
    assert cut("a\n\n\f\n\nb")[0].text == "a\n\n\f\n\nb"


def test_a_sentence_that_runs_over_a_page_is_kept_together() -> None:
    """A cut at a full stop is better than one at a page mark in mid-sentence."""
    text = f"{sentences(9)} and this goes\n\n\f\n\non here. {sentences(9)}"
    assert any("goes\n\n\f\n\non here." in passage for passage in texts(text, overlap=0))


def test_a_long_prefix_takes_a_third_at_most() -> None:
    """However long the title, passages shrink to two thirds of the budget and no further."""
    bare, titled = cut(sentences(40), title=""), cut(sentences(40), title=words(500))
    assert max(passage.tokens for passage in bare) > 43
    assert 30 <= max(passage.tokens for passage in titled) <= 64 - 2 - 21


def test_a_heading_that_repeats_the_title_costs_nothing() -> None:
    """The prefix says it once, so the budget counts it once."""
    title = words(12)
    markdown = f"# {title}\n\n{words(36, 'x')}"
    assert len(cut(markdown, title=title)) == 1
    assert len(cut(markdown, title=words(12, "other"))) > 1


def test_a_line_without_spaces_is_cut_at_tokens() -> None:
    """Signs made of several characters are not torn apart."""
    family = "\U0001f469\u200d\U0001f4bb"
    found = texts(family * 300, overlap=0)
    assert len(found) > 1
    assert all(len(text) % 3 == 0 for text in found)


def test_a_word_that_is_one_token_is_cut_all_the_same() -> None:
    """Passages are bounded in characters, too."""
    found = texts("x" * 10_000, overlap=0)
    assert max(map(len, found)) <= 12 * 64
    assert "".join(found) == "x" * 10_000


def test_lone_surrogates_are_only_characters() -> None:
    """What no encoding can hold is cut like the rest."""
    found = texts("# \ud800\n\n" + "\ud83d\ude00 \udc00 a. " * 100)
    assert len(found) > 1


def test_an_edit_among_many_small_sections_changes_a_few_passages() -> None:
    """Packing starts afresh at some headings, chosen by their text alone."""

    def write(edited: int) -> str:
        return "\n\n".join(
            f"## Section {number}\n\n{words(30 if number == edited else number % 7 + 1)}"
            for number in range(300)
        )

    before, after = texts(write(-1)), texts(write(150))
    assert len(before) > 60
    assert len(set(after) - set(before)) <= 8
    assert len(set(before) - set(after)) <= 8


def test_an_edit_in_a_long_section_changes_a_few_passages() -> None:
    """Cuts are chosen by what follows them, so they meet again behind an edit."""
    body = [sentences(1, number % 9 + 4) + f" T{number}." for number in range(600)]
    before = texts(" ".join(body))
    after = texts(" ".join([*body[:50], "One more here.", *body[50:]]))
    assert len(before) > 60
    assert len(set(after) - set(before)) <= 12


def test_many_are_cut_as_one_by_one_with_few_calls() -> None:
    """chunk_many says what chunk says, and asks the tokenizer in batches."""
    calls: list[int] = []

    def counted(asked: list[str]) -> list[list[tuple[int, int]]]:
        calls.append(len(asked))
        return spans_of(asked)

    markdowns = [f"# N{number}\n\n{sentences(number)}" for number in range(300)]
    titles = [f"N{number}" for number in range(300)]
    many = chunk_many(markdowns, titles, spans_of=counted)
    alone = [chunk(m, spans_of=spans_of, title=t) for m, t in zip(markdowns, titles, strict=True)]
    assert many == alone
    assert len(calls) == 2


def test_the_fingerprint_names_the_parameters() -> None:
    """Other parameters, another fingerprint."""
    assert fingerprint(256, 32) == FINGERPRINT
    others = {fingerprint(128, 32), fingerprint(256, 16), fingerprint(256, 32, 2)}
    assert len({FINGERPRINT, *others}) == 4


def test_sections_can_be_kept_apart() -> None:
    """Up to the level asked for each section makes its own passages; bare headings lead them."""
    markdown = "# T\n\n## A\n\na\n\n### B\n\nb\n\n## C\n\n## D\n\nd\n\n# U\n\nu\n\n## V\n\nv"
    found = chunk(markdown, spans_of=spans_of, section_level=2)
    assert [passage.text.replace("\n\n", " ") for passage in found] == [
        "# T ## A a ### B b",
        "## C",
        "## D d",
        "# U u",
        "## V v",
    ]
    assert [passage.heading for passage in found] == [
        ("T", "A"),
        ("T", "C"),
        ("T", "D"),
        ("U",),
        ("U", "V"),
    ]
    assert len(chunk(markdown, spans_of=spans_of, section_level=1)) == 2
    assert len(chunk(markdown, spans_of=spans_of)) == 1


@pytest.mark.parametrize(("tokens_max", "overlap"), [(8, 0), (64, 17), (64, -1)])
def test_impossible_sizes_are_refused(tokens_max: int, overlap: int) -> None:
    """Too small a budget and too large an overlap are errors of the caller."""
    with pytest.raises(ValueError, match="cannot cut"):
        cut("a", tokens_max, overlap)
