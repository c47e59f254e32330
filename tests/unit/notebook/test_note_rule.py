"""Where a note goes without a model."""

import pytest

from kb.knowledge.notebook.rule import DEFAULT_FOLDER, folder_for, summary_of

FOLDERS = ["garden", "work", "work/plans", "kitchen/soup-pots"]


@pytest.mark.parametrize(
    ("hint", "tags", "expected"),
    [
        ("Work/Plans/deeper", ["garden"], "work/plans"),
        ("recipes", [], "recipes"),
        ("../../etc", [], "etc"),
        ("put it with the soup pots please", ["garden"], "kitchen/soup-pots"),
        ("something about nothing", ["Garden"], "garden"),
        (None, ["new thing", "plans"], "work/plans"),
        (None, ["New Thing"], "new-thing"),
        (None, [], "work"),
    ],
)
def test_the_folder_of_a_note(hint: str | None, tags: list[str], expected: str) -> None:
    """The hint's folder, else a tag's, those that are there first, else that of notes like it."""
    like = [("garden/a.md", 0.5), ("work/a.md", 0.45), ("work/b.md", 0.45), ("garden/b.md", 0.3)]
    assert folder_for(hint, tags, FOLDERS, like) == expected


def test_a_note_like_nothing() -> None:
    """What is not like anything goes where such notes wait."""
    assert folder_for(None, [], FOLDERS, [("garden/a.md", 0.39)]) == DEFAULT_FOLDER
    assert folder_for(None, [], [], []) == DEFAULT_FOLDER


@pytest.mark.parametrize(
    ("text", "title", "description"),
    [
        ("# The boiler\n\nIt hums. It leaks.\n", "The boiler", "It hums."),
        ("---\ntitle: Named\n---\n- a *list* of 3.5 things!\n", "Named", "a list of 3.5 things!"),
        ("buy milk\nand eggs\n", "buy milk", "buy milk"),
        ("# 外婆\n\n她做的汤很好。还有面。\n", "外婆", "她做的汤很好。"),
        ("---\na: 1\n---\n", "untitled", ""),
    ],
)
def test_the_summary_of_a_note(text: str, title: str, description: str) -> None:
    """Its own title or its first line, and the first sentence that is no heading."""
    found = summary_of(text)
    assert (found.title, found.description) == (title, description)


def test_a_summary_is_bounded() -> None:
    """A megabyte without an end of a sentence makes a short line."""
    assert len(summary_of("word " * 200_000).description) <= 160
