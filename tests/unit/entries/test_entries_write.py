"""Claims about the files that are written for new entries."""

from typing import Any

import pytest

from kb.errors import UsageError
from kb.knowledge.entries import draft, id_of, parse, text_of

NOW_MS = 1_769_335_200_000


@pytest.mark.parametrize(
    ("title", "ident"),
    [
        ("Adding a folder", "adding-a-folder"),
        ("  Über Füße & Łódź: più! ", "uber-fusse-lodz-piu"),
        ("Ærø's smørrebrød", "aero-s-smorrebrod"),
        ("a" * 200, "a" * 80),
        ("伊利", "note-2026-01-25-ae5114"),
        ("!!!", "note-2026-01-25-e84c53"),
    ],
)
def test_a_title_suggests_an_id(title: str, ident: str) -> None:
    """Its words in plain letters; where there are none, the date and a hash."""
    assert id_of(title, NOW_MS) == ident


def test_titles_that_differ_in_other_letters_have_different_ids() -> None:
    """What cannot be written in plain letters is not just dropped."""
    one, other = id_of("Docker 网络", NOW_MS), id_of("Docker 存储", NOW_MS)
    assert one != other
    assert one.startswith("docker-")


@pytest.mark.parametrize(
    "title",
    ["Plain", 'It\'s "so": #1 [x], {y}', "null", "yes", "- a", "2024", "伊利 🥛", "a\\n", "*x"],
)
def test_what_is_written_is_read_again(title: str) -> None:
    """The file of a draft is that very entry, whatever its title has."""
    entry = draft(title, NOW_MS, entry_type="how to", tags=["a, b", "c"], references=["x.1", "on"])
    assert (entry.title, entry.tags, entry.meta.references) == (title, ("a, b", "c"), ("x.1", "on"))
    assert parse(text_of(entry)) == entry
    assert text_of(entry).endswith(f"---\n# {title}\n")


@pytest.mark.parametrize(
    ("said", "wrong"),
    [
        ({"title": "   "}, "title is empty"),
        ({"title": "T", "zettel_id": "Not So"}, "zettel_id is not an id"),
        ({"title": "T", "zettel_id": ""}, "zettel_id is empty"),
        ({"title": "T", "references": ["A"]}, "references.0 is not an id"),
        ({"title": "T", "tags": [""]}, "tags.0 is not a text"),
        ({"title": "T", "entry_type": ""}, "entry_type is empty"),
    ],
)
def test_what_would_be_no_entry_is_refused(said: dict[str, Any], wrong: str) -> None:
    """The call is wrong, and the error says where."""
    with pytest.raises(UsageError, match=wrong):
        draft(said.pop("title"), NOW_MS, **said)
