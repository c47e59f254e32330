"""Claims about every markdown that is cut."""

import re
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from kb.intake.chunker.blocks import parse_blocks
from kb.intake.chunker.chunking import chunk
from kb.model.text import ChunkDraft

_TOKEN = re.compile(r"[^\W_]{1,8}|[^\w\s]|_")


def spans_of(texts: list[str]) -> list[list[tuple[int, int]]]:
    return [[found.span() for found in _TOKEN.finditer(text)] for text in texts]


def cut(markdown: str, tokens_max: int = 32, title: str = "") -> list[ChunkDraft]:
    return chunk(
        markdown,
        spans_of=spans_of,
        tokens_max=tokens_max,
        overlap_tokens=tokens_max // 8,
        title=title,
    )


words = st.lists(st.sampled_from(["ab", "cd.", "e", "漢字。", "x|y", "*b*"]), max_size=30)
prose = words.map(" ".join)
code = st.lists(st.sampled_from(["x = 1", "# not a heading", "- no", ""]), max_size=12)
fence = code.map(lambda rows: "\n".join(["```", *rows, "```"]))
items = st.lists(
    st.tuples(st.sampled_from(["- ", "  - ", "    - ", "1. "]), prose), min_size=1, max_size=8
)
listing = items.map(lambda rows: "\n".join(mark + text for mark, text in rows))
table = st.lists(words, min_size=1, max_size=6).map(
    lambda rows: "\n".join(["| a | b |", "|---|---|", *(f"| {' '.join(r)} |" for r in rows)])
)
heading = st.tuples(st.integers(1, 4), st.sampled_from(["One", "Two", "Three words here", ""])).map(
    lambda made: "#" * made[0] + " " + made[1]
)
setext = st.sampled_from(["Title\n=====", "Other\n---"])
oddity = st.sampled_from(
    ["\f", "> q\n> r", "<!-- c -->", "<!--", "~~~", "    code", "---", "<div>"]
)
block = st.one_of(prose, fence, listing, table, heading, setext, oddity)
structured = st.lists(block, max_size=14).map("\n\n".join)
noise = st.text(alphabet="#-*>`~|<! \n\n\f.ab1:=漢。\t\u0301\U0001f469\u200d", max_size=300)
anything = st.one_of(structured, noise, st.text(max_size=200))


@given(anything)
def test_passages_are_exact_ordered_and_cover_all(markdown: str) -> None:
    """Offsets are exact, starts and ends rise, and what no passage holds is white space."""
    passages = cut(markdown)
    covered = bytearray(len(markdown))
    for passage in passages:
        assert markdown[passage.start : passage.end] == passage.text
        assert passage.text.strip()
        assert passage.text == passage.text.rstrip()
        assert passage.text.split("\n", 1)[0].strip()
        covered[passage.start : passage.end] = b"\1" * (passage.end - passage.start)
    for before, after in pairwise(passages):
        assert before.start < after.start
        assert before.end < after.end
    missed = [sign for sign, held in zip(markdown, covered, strict=True) if not held]
    assert "".join(missed).strip() == ""


@given(anything, st.sampled_from([16, 32, 64]), st.sampled_from(["", "A title", "long " * 30]))
def test_passages_fit_the_budget(markdown: str, tokens_max: int, title: str) -> None:
    """Prefix (up to a third), passage and two special tokens fit; `tokens` is what it says."""
    for passage in cut(markdown, tokens_max, title):
        path = " ".join(part for part in passage.heading if part != title)
        prefix = sum(len(spans) for spans in spans_of([title, path]))
        assert passage.tokens + 2 + min(prefix, tokens_max // 3) <= tokens_max
        # A word that had to be cut counts where it ends.
        assert abs(passage.tokens - len(spans_of([passage.text])[0])) <= 1


@given(anything)
def test_cutting_is_deterministic(markdown: str) -> None:
    """Equal markdown gives equal passages."""
    assert cut(markdown) == cut(markdown)


@given(anything)
def test_what_fits_is_one_passage(markdown: str) -> None:
    """A markdown that fits with any path is not cut."""
    passages = cut(markdown, 1024)
    if len(spans_of([markdown])[0]) <= 600 and markdown.strip():
        assert len(passages) == 1


@given(st.lists(st.one_of(prose, fence, table), min_size=3, max_size=8), st.sampled_from([32, 48]))
def test_fences_and_rows_that_fit_stay_whole(made: list[str], tokens_max: int) -> None:
    """No edge of a passage lies inside a fence or a row that fits the budget."""
    markdown = "\n\n".join(made)
    passages = cut(markdown, tokens_max)
    at = 0
    for text in made:
        kept = [text] if text.startswith("```") else text.split("\n") if text[:1] == "|" else []
        for part in kept:
            start = markdown.index(part, at) if part else at
            at = max(at, start)
            if len(spans_of([part])[0]) <= tokens_max - 2 and len(part) <= 12 * (tokens_max - 2):
                for passage in passages:
                    for edge in (passage.start, passage.end):
                        assert not start < edge < start + len(part), (part, passage)
        at = markdown.index(text, at) + len(text) if not kept else at + len(kept[-1])


@given(st.lists(st.integers(20, 90), min_size=3, max_size=8), st.data())
def test_an_edit_stays_in_its_section(sizes: list[int], data: st.DataObject) -> None:
    """Sections that are not packed with an edited one keep their passages."""
    edited = data.draw(st.integers(0, len(sizes) - 1))
    grown = data.draw(st.integers(20, 90))

    def write(lengths: list[int]) -> str:
        return "\n\n".join(
            f"# S{number}\n\n" + " ".join(f"w{number} x{place}." for place in range(length))
            for number, length in enumerate(lengths)
        )

    def others(markdown: str) -> list[tuple[str, tuple[str, ...]]]:
        found = [(passage.text, passage.heading) for passage in cut(markdown)]
        return [entry for entry in found if entry[1] != (f"S{edited}",)]

    changed = [*sizes[:edited], grown, *sizes[edited + 1 :]]
    assert others(write(sizes)) == others(write(changed))


@given(anything, st.sampled_from([16, 32, 512]), st.integers(1, 3))
def test_no_passage_spans_two_sections(markdown: str, tokens_max: int, level: int) -> None:
    """Up to the level that is asked for, a heading stands in a passage behind bare headings only.

    Everything else holds as without it: offsets, order, and that nothing visible is lost.
    """
    passages = chunk(
        markdown,
        spans_of=spans_of,
        tokens_max=tokens_max,
        overlap_tokens=tokens_max // 8,
        section_level=level,
    )
    covered = bytearray(len(markdown))
    for passage in passages:
        assert markdown[passage.start : passage.end] == passage.text
        covered[passage.start : passage.end] = b"\1" * (passage.end - passage.start)
    missed = [sign for sign, held in zip(markdown, covered, strict=True) if not held]
    assert "".join(missed).strip() == ""
    parsed = parse_blocks(markdown)
    for passage in passages:
        held = [one for one in parsed if passage.start < one.end and one.start < passage.end]
        for place, one in enumerate(held):
            if place and 0 < one.level <= level:
                assert all(before.kind == "heading" for before in held[:place])
                assert held[place - 1].level < one.level


@given(st.lists(st.integers(1, 60), min_size=2, max_size=8), st.data())
def test_an_edit_of_one_section_changes_no_other_passage(
    sizes: list[int], data: st.DataObject
) -> None:
    """Where sections are cut apart, the others keep their passages, however small they are."""
    edited = data.draw(st.integers(0, len(sizes) - 1))
    changed = [*sizes[:edited], data.draw(st.integers(1, 60)), *sizes[edited + 1 :]]

    def others(lengths: list[int]) -> list[ChunkDraft]:
        markdown = "# T\n\n" + "\n\n".join(
            f"## S{number}\n\n" + " ".join(f"w{number} x{place}." for place in range(length))
            for number, length in enumerate(lengths)
        )
        found = chunk(markdown, spans_of=spans_of, tokens_max=32, overlap_tokens=4, section_level=2)
        return [one for one in found if one.heading[-1] != f"S{edited}"]

    before, after = others(sizes), others(changed)
    assert [(one.text, one.heading) for one in before] == [(one.text, one.heading) for one in after]
