"""What is said of a hit beside its title."""

import pytest

from kb.intake.chunker.blocks import parse_blocks
from kb.model.text import headings_under


@pytest.mark.parametrize("title", ["Kettles", "On kettles and samovars " * 20, "wide  gaps " * 40])
def test_a_title_is_said_once(title: str) -> None:
    """However long it is: as a heading it may be cut, and loses wide gaps."""
    path = tuple(block.title for block in parse_blocks(f"# {title}\n\n## Lids\n\nText.\n")[:2])
    assert headings_under(title.strip(), path) == ["Lids"]


def test_other_headings_stay() -> None:
    """One that only begins as the title does, or is cut elsewhere, is another one."""
    assert headings_under("Kettles of tin", ("Kettles", "Tea…", "Lids")) == [
        "Kettles",
        "Tea…",
        "Lids",
    ]
