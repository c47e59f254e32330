"""Claims about what is an entry, and about what is said of a file that is none."""

import pytest

from kb.knowledge.entries import Entry, EntryFault, id_line, parse
from kb.model.entry import EntryMeta

WHOLE = """---
# About folders.
zettel_id: folder-adding
title: "Adding   a folder"
entry_type: pattern
version: "1.2.0"
author: ada
tags: [folders, howto, folders]
references:
  - sync-all
  - ignoring-files
embedding: {model: "m", dimensions: 384, chunks: 0, last_computed: "2026-01-25T10:00:00Z"}
mood: {good: [1, 2]}
---
# Adding a folder
"""


def noted(*lines: str) -> str:
    return "\n".join(("---", *lines, "---", "text", ""))


def faults(*lines: str) -> list[tuple[int, str]]:
    said = parse(noted(*lines))
    assert not isinstance(said, Entry)
    return [(fault.line, fault.detail) for fault in said]


def test_every_field_is_read() -> None:
    """Each key has its field; what is unknown is passed over."""
    said = parse(WHOLE)
    assert said == Entry(
        meta=EntryMeta(
            zettel_id="folder-adding",
            entry_type="pattern",
            version="1.2.0",
            author="ada",
            references=("sync-all", "ignoring-files"),
        ),
        title="Adding a folder",
        tags=("folders", "howto"),
    )
    assert id_line(WHOLE) == 3


def test_what_may_be_left_out_has_its_default() -> None:
    """An id and a title are enough, and keys without a value are as if they were not there."""
    said = parse(noted("zettel_id: a", "title: 2024", "author:", "tags: ~"))
    assert said == Entry(meta=EntryMeta(zettel_id="a"), title="2024")
    assert isinstance(said, Entry)
    assert (said.meta.entry_type, said.meta.version) == ("note", "1.0.0")


@pytest.mark.parametrize(
    ("line", "detail"),
    [
        ("entry_type: [a]", "entry_type is not a text"),
        ("entry_type: ''", "entry_type is empty"),
        ('entry_type: "a\\nb"', "entry_type is not one line of at most 100 characters"),
        ("version: 1.0", "version is not a semantic version, such as 1.0.0: '1.0'"),
        ("version: {a: b}", "version is not a text"),
        ("author: [ada]", "author is not a text"),
        ("tags: howto", "tags is not a list: 'howto'"),
        ("tags: {a: b}", "tags is not a list"),
        ("tags: [a, [b]]", "tags.1 is not a text"),
        ("tags: [" + "a, " * 101 + "]", "tags has 101 items, over 100"),
        ("references: other", "references is not a list: 'other'"),
        ("references: [ok, {a: b}]", "references.1 is not a text"),
        ("embedding: big", "embedding is not a mapping"),
        ("embedding: {model: []}", "embedding.model is not the name of a model"),
        ("embedding: {dimensions: 0}", "embedding.dimensions is not a whole number above 0: '0'"),
        ("embedding: {chunks: 1.5}", "embedding.chunks is not a whole number from 0: '1.5'"),
        ("embedding: {chunks: -1}", "embedding.chunks is not a whole number from 0: '-1'"),
        (
            "embedding: {last_computed: soon}",
            "embedding.last_computed is not an ISO 8601 date: 'soon'",
        ),
    ],
)
def test_a_wrong_field_is_named_with_its_line(line: str, detail: str) -> None:
    """The fault says which key, what is wrong, and the line of the file."""
    assert faults("zettel_id: a", "title: T", "# here:", line) == [(5, detail)]


@pytest.mark.parametrize("ident", ["Folder", "-a", ".a", "a b", "ä", "a/b", "a" * 129])
def test_an_id_is_a_slug(ident: str) -> None:
    """What is no slug is no id, neither an entry's own nor a reference."""
    ((line, detail),) = faults(f"zettel_id: '{ident}'", "title: T")
    assert (line, detail[:22]) == (2, "zettel_id is not an id")
    ((line, detail),) = faults("zettel_id: a", "title: T", "references:", f"  - '{ident}'")
    assert (line, detail[:25]) == (5, "references.0 is not an id")


def test_faults_come_in_the_order_of_their_lines() -> None:
    """All are named; a key that is missing stands with the first line."""
    assert [line for line, _ in faults("version: x", "tags: x", "zettel_id: [a]")] == [1, 2, 3, 4]
    assert faults("zettel_id:", "title: T") == [(2, "zettel_id is missing")]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("# No front matter\n", 1),
        ("", 1),
        ("---\nzettel_id: a\nnever closed\n", 1),
        ("--- x\nzettel_id: a\n---\n", 1),
        ("+++\nzettel_id = 'a'\n+++\nx", 1),
        ("---\nzettel_id: a\n b: [\n---\nx", 3),
        ("---\nzettel_id: a\nzettel_id: b\n---\nx", 3),
        ("---\nzettel_id: &x a\ntitle: *x\n---\nx", 3),
        ("---\n- a list\n---\nx", 1),
    ],
)
def test_what_is_no_front_matter_has_a_line_too(text: str, line: int) -> None:
    """Broken YAML is named where it breaks, in lines of the file."""
    said = parse(text)
    assert not isinstance(said, Entry)
    assert said[0].line == line


def test_a_file_that_is_all_wrong_is_not_listed_whole() -> None:
    """At most 20 faults are named."""
    said = parse(noted("zettel_id: a", "title: T", "tags:", *["  - []"] * 90))
    assert isinstance(said, tuple)
    assert len(said) == 20
    assert said[0] == EntryFault(line=5, detail="tags.0 is not a text")
