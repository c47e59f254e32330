"""INDEX.md: read with tolerance, written with care."""

import pytest
from growth import assert_linear

from kb.knowledge.notebook.listing import SCAFFOLD, Listing, entry_line, heading_of

MINE = """\
# My things

Some words of mine.

## Work / Projects
* [Plan](work/projects/plan.md) — what comes next
- not an entry
- [A page](https://example.org/x.md) — elsewhere

```
- [In code](work/code.md)
```

## Kitchen
- [Soup \\[hot\\]](<kitchen/my soup.md>) - with salt
"""


def test_entries_are_found_among_other_text() -> None:
    """Lines that link to a file of the notebook, outside code; odd names and escapes included."""
    found = [(one.path, one.title, one.description) for one in Listing(MINE).entries()]
    assert found == [
        ("work/projects/plan.md", "Plan", "what comes next"),
        ("kitchen/my soup.md", "Soup [hot]", "with salt"),
    ]


def test_what_is_not_understood_stays() -> None:
    """Read and written, every byte is as before, whatever ends the lines."""
    for text in (MINE, MINE.replace("\n", "\r\n"), "\ufeff" + MINE, MINE.rstrip(), "", "\udcff\n"):
        assert Listing(text).text == text


def test_an_entry_joins_its_folder() -> None:
    """It stands behind the last entry of its folder; nothing else is touched."""
    text = Listing(MINE).with_entry("work/projects/end.md", "End", "It ends.").text
    added = "- [End](work/projects/end.md) — It ends.\n"
    plan = "* [Plan](work/projects/plan.md) — what comes next\n"
    assert text == MINE.replace(plan, plan + added)


def test_an_entry_joins_the_section_of_its_folders_name() -> None:
    """A heading of the folder's name is its section, also before there is any entry."""
    start = "# Index\n\n## Deep Sea\n\nFish live here.\n\n## Other\n"
    text = Listing(start).with_entry("deep-sea/cod.md", "Cod", "").text
    assert "Fish live here.\n- [Cod](deep-sea/cod.md)\n\n## Other\n" in text


def test_an_entry_of_a_new_folder_makes_a_section() -> None:
    """At the end, under the folder's name."""
    text = Listing(SCAFFOLD).with_entry("a/b-c/d.md", "D", "One.").text
    assert text == SCAFFOLD + "\n## A / b c\n- [D](a/b-c/d.md) — One.\n"
    assert Listing("x").with_entry("a.md", "A", "").text == "x\n\n## Notes\n- [A](a.md)\n"


def test_lines_end_as_the_file_does() -> None:
    """A file of Windows keeps its ends of lines."""
    text = Listing("# I\r\n").with_entry("a.md", "A", "").text
    assert text == "# I\r\n\r\n## Notes\r\n- [A](a.md)\r\n"


def test_a_moved_note_keeps_its_line() -> None:
    """Only the path changes; title and words stay as a person wrote them."""
    text = Listing(MINE).moved({"work/projects/plan.md": "old/plan.md"}).text
    assert text == MINE.replace("work/projects/plan.md", "old/plan.md")
    spaced = Listing(MINE).moved({"kitchen/my soup.md": "kitchen/soup.md"}).text
    assert "[Soup \\[hot\\]](kitchen/soup.md) - with salt" in spaced


def test_what_goes_takes_its_bare_heading_along() -> None:
    """A section that has nothing else loses its heading, another keeps it."""
    text = Listing(MINE).without(["kitchen/my soup.md", "work/projects/plan.md"]).text
    assert "## Kitchen" not in text
    assert "## Work / Projects\n- not an entry" in text


def test_a_title_cannot_break_its_line() -> None:
    """Brackets, ends of lines and control characters are made harmless, long text is cut."""
    line = entry_line("a.md", "A] (b)\n# [x", "word " * 100)
    assert "\n" not in line
    assert len(line) < 260
    (entry,) = Listing(line).entries()
    assert (entry.path, entry.title) == ("a.md", "A] (b) # [x")


def test_text_that_is_a_persons() -> None:
    """What is neither heading, entry nor blank is told apart."""
    others = Listing(MINE).others()
    assert "Some words of mine." in others
    assert "- [A page](https://example.org/x.md) — elsewhere" in others
    assert not any("Plan" in line or line.startswith("##") for line in others)


@pytest.mark.parametrize(("start", "sign", "end"), [("# ", "#", "x"), ("- [", "\\", "")])
def test_a_hostile_line_costs_little(start: str, sign: str, end: str) -> None:
    """Twice the line is twice the work, for whatever is asked of it."""
    half, whole = (start + sign * count + end for count in (100_000, 200_000))
    assert Listing(whole).entries() == []
    assert Listing(whole).others() == [whole.strip()]
    assert_linear(lambda line: (Listing(line).entries(), Listing(line).others()), half, whole)


def test_control_characters_are_seen() -> None:
    """Ends of lines and tabs are plain, the rest is not."""
    assert Listing("a\tb\r\n").is_plain
    assert not Listing("a\x1b[2J").is_plain
    assert not Listing("a\u2028b").is_plain


def test_how_a_section_is_called() -> None:
    """A folder's words, and `Notes` for the top."""
    assert [heading_of(folder) for folder in ("deep-sea", "a/b", "")] == [
        "Deep sea",
        "A / b",
        "Notes",
    ]
