"""What of a query is text and what is more: by example, and that nothing is an error."""

import datetime as dt

import pytest
from hypothesis import given
from hypothesis import strategies as st
from search_home import SearchHome, titles

from kb.model.doc import Scope
from kb.model.search import NO_FILTERS, Filters
from kb.search.operators import Needles, needles, split_filters

TODAY = dt.date(2026, 3, 31)


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("kettle -steam", Needles(text="kettle", without=("steam",))),
        ('tea -"green tea" pot', Needles(text="tea pot", without=("green tea",))),
        ('is it "brown fox"?', Needles(text='is it "brown fox"?', phrases=("brown fox",))),
        ('title:"two words" q', Needles(text="q", titles=("two words",))),
        ("title:kettle", Needles(text="kettle", titles=("kettle",))),
        ("q source:notes", Needles(text="q", places=("notes",))),
        *((text, Needles(text=text)) for text in ("tar -x", "a -5 b", "a - b", "well-known", "-b")),
        *((text, Needles(text=text)) for text in ('a "b', 'f("x")', 'k:"v"', "--drain now", '"!"')),
    ],
)
def test_needles(query: str, found: Needles) -> None:
    """Whatever looks like options, code or numbers is text."""
    assert needles(query) == found


@pytest.mark.parametrize(
    ("query", "text", "filters"),
    [
        ("soup tag:food/warm", "soup", Filters(tags=("food/warm",))),
        ('soup tag:"a b" tag:#c', "soup", Filters(tags=("a b", "c"))),
        ("soup since:2024 until:2025-02", "soup", Filters(since="2024", until="2025-02")),
        ("soup since:yesterday", "soup", Filters(since="2026-03-30")),
        ('soup until:"last month"', "soup", Filters(until="2026-02")),
        ("soup kind:url", "soup", Filters(kinds=("url",))),
        ('soup from:ada to:"Bea M"', "soup", Filters(sender="ada", recipient="Bea M")),
        ("soup source:/home/ada/notes", "soup", Filters(sources=("/home/ada/notes",))),
        ("tag:food", "tag:food", Filters(tags=("food",))),
        *((text, text, NO_FILTERS) for text in ("kind:soup x", "since:noon x", "tag: x", "a:b")),
    ],
)
def test_filters(query: str, text: str, filters: Filters) -> None:
    """As the options of these names; what is no kind and no date is text."""
    assert split_filters(query, NO_FILTERS, TODAY) == (text, filters)


def test_filters_narrow_those_that_are_given() -> None:
    """Tags come together, and of two dates the narrower one counts."""
    given_before = Filters(tags=("a",), since="2023", until="2024-06")
    _, filters = split_filters("x tag:b since:2024 until:2025", given_before, TODAY)
    assert filters == Filters(tags=("a", "b"), since="2024", until="2024-06")


PIECES = st.sampled_from(
    ['"', "-", "tag:", "title:", "source:", "since:", "2024", "soup", " ", "é", "日本", "!", ":"]
)


@given(st.lists(PIECES, max_size=12).map("".join))
def test_no_query_is_an_error(query: str) -> None:
    """Some text is always left, and reading it again finds no operator that was taken out."""
    text, _ = split_filters(query, NO_FILTERS, TODAY)
    found = needles(text)
    assert found.text or not query
    assert not needles(found.text).without or found.text == text


def test_what_narrows_to_nothing_says_so(home: SearchHome) -> None:
    """An operator that no doc meets is named; what the scope may not see is no doc."""
    home.give("papers/tea.md", "# Green leaves\n\nTea is brewed.")
    home.give("cellar/wine.md", "# Wine\n\nTea no, wine.", visibility="private", owner="ada")
    guest = Scope(user="bob")
    for query, warning in (
        ("tea source:coffee", "no doc has coffee as its name or in its path"),
        ("tea source:wine.md", "no doc has wine.md as its name or in its path"),
        ("tea title:wine", "no doc has wine in its title"),
    ):
        result = home.search(query, scope=guest)
        assert (result.hits, result.warnings) == ((), (warning,))
    assert home.search("tea source:wine.md").warnings == ()


@pytest.mark.parametrize("place", ["tea", "tea.md", "papers", "papers/tea", "PAPERS/", "/papers"])
def test_a_source_is_named_by_a_part_of_its_path(home: SearchHome, place: str) -> None:
    """By a folder or a file, with its ending or without."""
    home.give("papers/tea.md", "# Green leaves\n\nTea is brewed.")
    home.give("papers.d/teapot.md", "# Pot\n\nTea is brewed.")
    assert titles(home.search(f"tea source:{place}")) == ["Green leaves"]
