"""Which lines of a PDF are headings? Those that its bookmarks name."""

from pathlib import Path

import pytest
from growth import assert_linear

from kb.intake.canonicalize.pdf import document
from kb.intake.canonicalize.pdf.layout import LaidPage, page_text
from kb.intake.canonicalize.pdf.outline import with_headings
from kb.intake.canonicalize.pdf.page import Bookmark

REAL = Path(__file__).parents[3].parent / "shared" / "data" / "files"


def headed(lines: list[str], *titles: str, page: int = 0) -> str:
    marks = [Bookmark(level=at, title=title, page=page) for at, title in enumerate(titles)]
    return page_text(with_headings([LaidPage(lines, ())], marks)[0])


def test_a_line_that_a_bookmark_names_is_a_heading() -> None:
    """Of its level, with an empty line on both sides."""
    assert headed(
        ["Before.", "1 The Weir", "It holds.", "1.1 Sluice", "Oak."], "The Weir", "Sluice"
    ) == ("Before.\n\n# 1 The Weir\n\nIt holds.\n\n## 1.1 Sluice\n\nOak.")


@pytest.mark.parametrize(
    ("lines", "title", "text"),
    [
        (["Chapter 2. Mills", "x"], "2 Mills", "# Chapter 2. Mills\n\nx"),
        (["1.2 | Numbers", "x"], "1.2 Numbers", "# 1.2 Numbers\n\nx"),
        (
            ["A heading that", "goes on", "x"],
            "A heading that goes on",
            "# A heading that goes on\n\nx",
        ),
        (["7 1.2. MILLS", "1.2 Mills", "x"], "1.2 Mills", "7 1.2. MILLS\n\n# 1.2 Mills\n\nx"),
        (["The weir is old."], "The weir", "The weir is old."),
        (["x"], "", "x"),
        (["1. 2. 3."], "...", "1. 2. 3."),
    ],
)
def test_what_counts_as_the_line(lines: list[str], title: str, text: str) -> None:
    """Its number may lack; it may go over lines; a head with the page's number is another one."""
    assert headed(lines, title) == text


def test_a_bookmark_of_another_page_changes_nothing() -> None:
    """Neither does one of a page that is not there."""
    assert headed(["The Weir"], "The Weir", page=9) == "The Weir"


def test_bookmarks_are_looked_for_in_linear_time() -> None:
    """However many lines begin as they do."""
    titles = ["a b c"] * 50
    assert_linear(lambda count: headed(["a"] * count, *titles), 400, 800)


@pytest.mark.skipif(not REAL.is_dir(), reason="no sample files beside the repository")
def test_sections_of_a_real_book() -> None:
    """All but one of its bookmarks are lines."""
    path = next(REAL.glob("**/GeoTopo-komprimiert.pdf"))
    lines = document.read(path.read_bytes(), path.name).markdown.replace("\f", "\n").split("\n")
    assert "## 1.2 Metrische R\u00e4ume" in lines
    assert sum(line.startswith("#") for line in lines) == 34
