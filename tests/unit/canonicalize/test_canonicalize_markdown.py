"""What do markdown and plain text say?"""

import pytest
from growth import assert_linear

from kb.errors import EmptySource, Unsupported
from kb.intake.canonicalize import CanonicalizeInput, canonicalize
from kb.intake.canonicalize.dates import iso_date
from kb.intake.canonicalize.markdown import first_heading
from kb.model.text import Canonical


def read(text: str | bytes, name: str = "my note.md", mime: str = "text/markdown") -> Canonical:
    data = text.encode() if isinstance(text, str) else text
    return canonicalize(CanonicalizeInput(data=data, mime=mime, name=name))


def test_yaml_front_matter() -> None:
    """Title, tags and date are taken from front matter, and the block is taken off."""
    note = read(
        "---\ntitle: 'A: note'\ntags: [one, '#two', one]\nkeywords: three, #four\n"
        "date: 2024-01-02 10:30\nnested:\n  title: no\n---\n\n# Heading\n\ntext\n"
    )
    assert note == Canonical(
        markdown="# Heading\n\ntext\n",
        title="A: note",
        mime="text/markdown",
        # What follows " #" in an unquoted YAML value is a comment.
        tags=("one", "two", "three"),
        date="2024-01-02T10:30:00",
        # The block's eight lines and the blank one below it.
        front_lines=9,
    )


def test_block_list_and_odd_values() -> None:
    """Block lists are read; scalars stay as written; nulls are nothing."""
    note = read("---\ntitle: 2024\ntags:\n  - a b\n  - 'c'\n  - {d: e}\ndate: ~\n---\nx\n")
    assert (note.title, note.tags, note.date) == ("2024", ("a b", "c"), None)


def test_toml_front_matter() -> None:
    """TOML between +++ lines does the same."""
    note = read('+++\ntitle = "T"\ndate = 2024-05-06T07:08:09Z\ntags = ["x"]\n+++\nbody')
    assert (note.title, note.tags, note.date) == ("T", ("x",), "2024-05-06T07:08:09+00:00")
    assert note.markdown == "body\n"


@pytest.mark.parametrize(
    "block",
    [
        "title: a: b: c",
        "a: &a [x]\nb: [*a, *a]",
        "a: " + "[" * 5000,
        "a:\n  " + "- " * 5000 + "x",
        'a: "unclosed',
    ],
)
def test_bad_front_matter_stays_as_text(block: str) -> None:
    """What is not valid, or could grow, stays in the text with a warning, and names nothing."""
    note = read(f"---\n{block}\n---\n\n# Real\n")
    assert note.markdown == f"---\n{block}\n---\n\n# Real\n"
    assert note.title == "Real"
    assert note.warnings[0].startswith("front matter left as text")


@pytest.mark.parametrize(
    "text",
    [
        "---\njust a rule above\n---\n# T\n",
        "---\n\n# T\n",
        "---- \n# T\n",
        "--- x\na: b\n---\n# T\n",
    ],
)
def test_a_rule_is_not_front_matter(text: str) -> None:
    """A first line that draws a rule is text, and no cause for a warning."""
    note = read(text)
    assert (note.markdown, note.warnings) == (text, ())


def test_front_matter_is_bounded() -> None:
    """A block beyond the bound is text, and kb says so; a text that begins with a rule is one."""
    for fence, line, chars_max in (("---", "a: b\n", 1_048_576), ("+++", "# b\n", 65_536)):
        fits = line * ((chars_max - 10) // len(line))
        assert read(f"{fence}\n{fits}{fence}\n# T\n").markdown == "# T\n"
        text = f"{fence}\n{fits}{line * 9}{fence}\n# T\n"
        assert read(text).markdown == text
        assert read(text).warnings == (
            f"front matter left as text: it is over {chars_max:,} characters",
        )
        assert read(f"{fence}\n{fits}{line * 9}# T\n").warnings == ()


def test_a_note_may_have_many_tags() -> None:
    """The first hundred are kept."""
    tags = "".join(f"  - a-tag-{n}\n" for n in range(8_000))
    note = read(f"---\ntitle: Ibex\ntags:\n{tags}---\nText\n")
    assert (note.title, len(note.tags), note.markdown) == ("Ibex", 100, "Text\n")


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("intro\n\n## **Two** `words` ##\n# One\n", "Two words"),
        ("# [Link](http://x.y) and ![pic][p] {#id}\n", "Link and pic"),
        ("Set\next\n===\n", "Set ext"),
        ("Sub\n---\n", "Sub"),
        ("- item\n---\n# H\n", "H"),
        ("```\n# code\n```\n# After\n", "After"),
        ("~~~ py\n# code\n```\n~~~\n# After\n", "After"),
        ("    # indented code\n\n#hashtag\n#\n# T\n", "T"),
        ("a | b\n--|--\n# T\n", "T"),
        ("no heading\n", ""),
        ("```\n# never closed\n", ""),
        ("# " + "x" * 300, "x" * 199 + "…"),
    ],
)
def test_first_heading(text: str, title: str) -> None:
    """The first ATX or setext heading outside fences gives the title."""
    assert first_heading(text) == title


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("# Boiler #\n\n## Parts\n", "Boiler"),
        ("\n\nBoiler\n======\ntext", "Boiler"),
        ("<p align='center'>\n<img src='x'>\n</p>\n\n[![build](b)](u)\n# Boiler\n", "Boiler"),
        ("## Monday\n\n# Boiler\n", "2026-11-22 visit"),
        ("Talked to Lian.\n\n# Boiler\n", "2026-11-22 visit"),
        ("- a list\n\n# Boiler\n", "2026-11-22 visit"),
        ("Monday\n------\n", "2026-11-22 visit"),
        ("#boiler #house\n\n# Tagged\n", "Tagged"),
        ("#\n\ntext", "2026-11-22 visit"),
    ],
)
def test_a_later_heading_is_no_title(text: str, title: str) -> None:
    """A first-level heading that opens the file names it; else the file's own name does."""
    assert read(text, "notes/2026-11-22 visit.md").title == title


def test_title_falls_back_to_the_name() -> None:
    """Without heading the stem is the title; without name the first line."""
    assert read("text", "dir/my note.md").title == "my note"
    assert read("text", ".profile").title == ".profile"
    assert read("first line\nsecond", "-").title == "first line"
    assert read("first line\n\n## Part\n", "-").title == "Part"
    assert read("x" * 100, "-", "text/plain").title == "x" * 79 + "…"
    assert read("text", "bad\udcff.txt", "text/plain").title == "bad\ufffd"


def test_text_stands_as_written() -> None:
    """Nothing but newlines, composition, controls and the end is touched."""
    note = read("a  \r\n\tb\x00\u0301c  \n\n\n")
    assert note.markdown == "a  \n\tb\u0301c  \n"
    assert read("# *not* _md_ <b>\n", "a.txt", "text/plain").markdown == "# *not* _md_ <b>\n"


@pytest.mark.parametrize("mime", ["text/markdown", "text/plain", "text/html", "application/pdf"])
@pytest.mark.parametrize("data", [b"", b" \r\n\t "])
def test_nothing_is_an_empty_source(mime: str, data: bytes) -> None:
    """Empty or blank bytes are an EmptySource, of whatever kind they claim to be."""
    with pytest.raises(EmptySource):
        read(data, mime=mime)


def test_invisible_marks_are_not_text() -> None:
    """A byte order mark and a zero-width space are nothing to find."""
    with pytest.raises(EmptySource):
        read("\ufeff\u200b\n")


def test_front_matter_alone_is_empty() -> None:
    """A note of nothing but front matter has nothing to find."""
    with pytest.raises(EmptySource, match="front matter"):
        read("---\ntitle: x\n---\n")


def test_unsupported_says_what_to_do() -> None:
    """The refusal names the format and a way on."""
    with pytest.raises(Unsupported, match=r"^p\.odg: application/vnd\.oasis\S+ .* pandoc"):
        read(b"x", "p.odg", "application/vnd.oasis.opendocument.graphics")


@pytest.mark.parametrize(
    ("written", "iso"),
    [
        ("2024-01-02", "2024-01-02"),
        ("2024/1/2", "2024-01-02"),
        ("20240102", "2024-01-02"),
        ("2024", "2024"),
        ("2024-05", "2024-05"),
        ("2024-01-02T10:00:00Z", "2024-01-02T10:00:00Z"),
        ("2024-01-02 10:00 +0200", "2024-01-02T10:00:00+02:00"),
        ("2024-01-02T10:00:00.123-05:00", "2024-01-02T10:00:00-05:00"),
        ("January 5, 2024", "2024-01-05"),
        ("Fri, 05 Jan 2024 10:00:00 GMT", "2024-01-05"),
        ("5th of never", None),
        ("2024-13-01", None),
        ("2024-01-02 25:00", None),
        ("yesterday", None),
        ("12/01/2024", None),
        ("", None),
    ],
)
def test_dates(written: str, iso: str | None) -> None:
    """Dates become ISO 8601, or nothing where they are ambiguous or none."""
    assert iso_date(written) == iso


@pytest.mark.parametrize(
    ("start", "unit"), [("# ", "["), ("# ", "[a]("), ("#", "#"), ("# a", " #")]
)
def test_adversarial_lines_take_linear_time(start: str, unit: str) -> None:
    """Whatever a line repeats, twice the line is twice the work."""
    half = unit * (200_000 // len(unit))
    assert_linear(read, start + half, start + half * 2)


@pytest.mark.parametrize(
    "text",
    [
        "# Attic\n\nStatus: open\nCreated: March 1, 2023 10:00 AM\nTags: house, money\n\nWool.\n",
        "- **Created:** 2023-03-01\n- **Tags:** house, money\n\nWool: 12 m²\n",
        "created:: 2023-03-01\ntags:: house, money\n\n- Wool\n",
        "created:: 2023-03-01\ntags:: #house, #money\n- Wool\n",
    ],
)
def test_a_page_may_state_its_day_and_tags_in_its_first_lines(text: str) -> None:
    """As exported pages do; the lines stay in the text."""
    page = read(text)
    assert (page.date, page.created, page.tags) == ("2023-03-01", "2023-03-01", ("house", "money"))
    assert page.markdown == text


@pytest.mark.parametrize(
    "text",
    [
        "Date: 2023-03-01\nis when we met.\n",
        "We met.\n\nDate: 2023-03-01\n",
        "Date: soon\nTitle: The day\n",
        "Note: see https://x.example\n",
    ],
)
def test_prose_states_no_day(text: str) -> None:
    """Nor does a line further down, or one that names no day."""
    page = read(text)
    assert (page.date, page.tags, page.title, page.warnings) == (None, (), "my note", ())
