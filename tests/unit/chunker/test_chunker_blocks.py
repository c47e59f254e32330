"""Claims about the blocks a markdown has."""

import pytest

from kb.intake.chunker.blocks import parse_blocks
from kb.intake.chunker.sections import sections


def kinds(markdown: str) -> list[str]:
    return [block.kind for block in parse_blocks(markdown)]


def headings(markdown: str) -> list[tuple[int, str]]:
    return [
        (block.level, block.title) for block in parse_blocks(markdown) if block.kind == "heading"
    ]


@pytest.mark.parametrize(
    ("markdown", "expected"),
    [
        ("# One", [(1, "One")]),
        ("   ### Three ##  ", [(3, "Three")]),
        ("# C# #", [(1, "C#")]),
        ("####### seven", []),
        ("#tag", []),
        ("    # code", []),
        ("#", [(1, "")]),
        ("Title\n=====", [(1, "Title")]),
        ("Two\nlines\n---", [(2, "Two lines")]),
        ("a\nb\nc\n---", []),
        ("\n---\n", []),
        ("text\n# Heading\ntext", [(1, "Heading")]),
        ("```\n# no\n```\n# yes", [(1, "yes")]),
        ("~~~\n# no\n```\n# no\n~~~~\n# yes", [(1, "yes")]),
        ("```\n# no", []),
        ("````\n```\n# no\n````\n# yes", [(1, "yes")]),
        ("```\n# no\n\f\n# yes", [(1, "yes")]),
        ("<!--\n# no\n\n# no\n-->\n# yes", [(1, "yes")]),
        ("<pre>\n\n# no\n</pre>\n# yes", [(1, "yes")]),
        ("<div>\n# no\n\n# yes", [(1, "yes")]),
        ("- item\n\n  # in the item\n\n# yes", [(1, "yes")]),
        ("- item\n# yes", [(1, "yes")]),
        ("> # quoted\n\n# yes", [(1, "yes")]),
        ("---\ntitle: x\n---\n\n# yes", [(1, "yes")]),
        ("---\n\n# yes\n\n---", [(1, "yes")]),
    ],
)
def test_headings(markdown: str, expected: list[tuple[int, str]]) -> None:
    """Headings are found where readers see them, not in code, comments, items or quotes."""
    assert headings(markdown) == expected


@pytest.mark.parametrize(
    ("markdown", "expected"),
    [
        ("a\nb\n\nc", ["para", "para"]),
        ("a\n\n\f\n\nb", ["para", "para"]),
        ("a\n\f\nb", ["para", "para"]),
        ("a\n```\nx\n```\nb", ["para", "fence", "para"]),
        ("``` not `a fence", ["para"]),
        ("    x\n\n    y\n\nz", ["code", "para"]),
        ("a\n    b", ["para"]),
        ("|a|b|\n|-|-|\n|1|2|\n\nx", ["table", "para"]),
        ("x\na | b\n--|--\n1 | 2", ["para", "table"]),
        ("a | b\n--|--\n1 | 2\n# h", ["table", "heading"]),
        ("- a\n- b\n\n  c\n\n- d\n\ne", ["list", "para"]),
        ("1. a\n   ```\n   # x\n\n   ```\n2. b", ["list"]),
        ("- a\nlazy\n\nb", ["list", "para"]),
        ("in 2017\n2018. was", ["para"]),
        ("a\n- b", ["para", "list"]),
        ("> a\n> b\nlazy\n\nc", ["quote", "para"]),
        ("***\n* * *\n---", ["rule", "rule", "rule"]),
        ("<b>bold</b> text", ["para"]),
        ("</div>\n\nx", ["html", "para"]),
        ("<my-tag a='1'>\nx\n\ny", ["html", "para"]),
    ],
)
def test_kinds(markdown: str, expected: list[str]) -> None:
    """Blocks end where another begins, at a blank line or at a page mark, as their kind has it."""
    assert kinds(markdown) == expected


def test_items_of_every_depth_and_fences_in_them_are_known() -> None:
    """A list tells where its items and the fences in them start."""
    markdown = "- a\n  - b\n  ```\n  - no\n  ```\n- c"
    (found,) = parse_blocks(markdown)
    assert [markdown[item.start :].split("\n", maxsplit=1)[0] for item in found.items] == [
        "- a",
        "  - b",
        "- c",
    ]
    assert [markdown[start:end] for start, end in found.fences] == ["  ```\n  - no\n  ```"]


def test_sections_know_what_stands_above_them() -> None:
    """A path holds the nearest heading of each lesser level, and skips what has no title."""
    markdown = "pre\n\n# A\n\n### B\n\nb\n\n## C\n\n#\n\n## D\n"
    found = sections(parse_blocks(markdown))
    assert [(section.path, section.has_body) for section in found] == [
        ((), True),
        (("A",), False),
        (("A", "B"), True),
        (("A", "C"), False),
        ((), False),
        (("D",), False),
    ]


def test_a_long_heading_is_bounded() -> None:
    """What is stored with every passage does not grow with the line."""
    assert len(headings("# " + "word " * 10_000)[0][1]) <= 160
