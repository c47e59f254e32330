"""What of a query is text and what is more: by example, and that nothing is an error."""

import datetime as dt
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from search_home import MODES, SearchHome, titles

from kb.home.open_home import OpenHome
from kb.home.spaces.spaces import Spaces
from kb.model.doc import OPERATOR, Scope
from kb.model.left_out import NarrowedSearch, QueryFilters
from kb.model.search import (
    NO_FILTERS,
    Filters,
    SearchMode,
    SearchRequest,
    SearchResult,
)
from kb.operations import search
from kb.search.filters import (
    AllowedSources,
    allowed_sources,
    has_filters,
    matches_filters,
)
from kb.search.operators import Needles, needles, split_filters
from kb.store import docs

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
        ("q -title:kettle", Needles(text="q", other_titles=("kettle",))),
        ('q -title:"two words"', Needles(text="q", other_titles=("two words",))),
        ("-source:notes q", Needles(text="q", other_places=("notes",))),
        ("-title:kettle", Needles(text="-title:kettle", other_titles=("kettle",))),
        ("-steam -source:a", Needles(text="-steam -source:a", other_places=("a",))),
        ('a -title: b --title:x -title:"!"', Needles(text='a -title: b --title:x -title:"!"')),
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


@pytest.mark.parametrize(
    ("query", "text", "without"),
    [
        ("soup -tag:food/warm", "soup", (Filters(tags=("food/warm",)),)),
        ('soup -tag:"a b" -tag:#c', "soup", (Filters(tags=("a b",)), Filters(tags=("c",)))),
        ("-kind:url soup -kind:font", "soup", (Filters(kinds=("url",)), Filters(kinds=("font",)))),
        ("soup -source:/home/ada", "soup", (Filters(sources=("/home/ada",)),)),
        ("soup -version:v2", "soup", (Filters(site_versions=("v2",)),)),
        ("soup -from:ada -to:bea", "soup", (Filters(sender="ada"), Filters(recipient="bea"))),
        ("soup -since:yesterday", "soup", (Filters(since="2026-03-30"),)),
        ("soup -until:2024", "soup", (Filters(until="2024"),)),
        ("-tag:food", "-tag:food", (Filters(tags=("food",)),)),
        ("-tag:food -steam", "-steam", (Filters(tags=("food",)),)),
        *((text, text, ()) for text in ("-kind:soup x", "-since:noon x", "-tag: x", "x --tag:a")),
        *((text, text, ()) for text in ("x - tag: a", 'x -"tag:a"', "a-tag:b x")),
    ],
)
def test_a_minus_leaves_out(query: str, text: str, without: tuple[Filters, ...]) -> None:
    """Each by itself: no doc is wanted that it would let through."""
    filters = QueryFilters(without=without) if without else NO_FILTERS
    assert split_filters(query, NO_FILTERS, TODAY) == (text, filters)


def test_filters_narrow_those_that_are_given() -> None:
    """Tags come together, and of two dates the narrower one counts."""
    given_before = Filters(tags=("a",), since="2023", until="2024-06")
    _, filters = split_filters("x tag:b since:2024 until:2025", given_before, TODAY)
    assert filters == Filters(tags=("a", "b"), since="2024", until="2024-06")


PIECES = st.sampled_from(
    (
        *('"', "-", "-tag:", "-title:", "tag:", "title:", "source:", "since:"),
        *("2024", "soup", " ", "é", "日本", "!", ":"),
    )
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


def asked(query: str, home: SearchHome, scope: Scope = OPERATOR, **request: Any) -> SearchResult:
    """What a home answers whoever asks it as people do."""
    opened = OpenHome(store=home.store, content=home.content, searcher=home.searcher)
    return search.run(Spaces([opened]), SearchRequest(query=query, **request), scope)


@pytest.mark.parametrize("mode", MODES)
def test_what_has_a_minus_is_found_by_no_leg(home: SearchHome, mode: SearchMode) -> None:
    """The docs that the operator alone would let through are those that its minus leaves out."""
    home.give(
        "green.md", "---\ndate: 2023-05-01\n---\n# Green\n\nTea is brewed.", tags=("brew/hot",)
    )
    home.give("cold/iced.md", "# Iced\n\nTea is brewed.", tags=("brew", "summer"))
    home.give("cold/milk.csv", "# Milk\n\nTea is brewed.")
    every = {"Green", "Iced", "Milk"}
    for operator, found in (
        ("tag:brew", {"Green", "Iced"}),
        ("tag:BREW/hot", {"Green"}),
        ('tag:"summer"', {"Iced"}),
        ("title:iced", {"Iced"}),
        ("source:cold", {"Iced", "Milk"}),
        ("source:green.md", {"Green"}),
        ("source:/notes/cold", {"Iced", "Milk"}),
        ("kind:file", every),
        ("kind:sheet", {"Milk"}),
        ("since:2020", {"Green"}),
        ("until:2022", {"Iced", "Milk"}),
        ("from:ada", set()),
    ):
        assert {*titles(asked(f"tea {operator}", home, mode=mode))} == found, operator
        left = asked(f"tea -{operator}", home, mode=mode, explain=True)
        assert {*titles(left)} == every - found, operator
        assert {*titles(asked(f"-{operator}", home, mode=mode))} <= every - found, operator
    both = asked("tea tag:brew -tag:summer -source:nowhere", home, mode=mode)
    assert titles(both) == ["Green"]


def test_the_facets_leave_out_what_the_docs_do(home: SearchHome) -> None:
    """What is found among the candidates is what a look at every doc finds, for any scope."""
    home.give("a.md", "tea", visibility="public", tags=("brew", "x"))
    home.give("b.md", "tea", owner="ann", tags=("brew/hot",))
    home.give("c.md", "---\ndate: 2023\n---\ntea", owner="bob", tags=("x",))
    home.give("d.csv", "tea", owner="bob")
    choices = [Filters(tags=("brew",)), Filters(tags=("x",)), Filters(kinds=("sheet",))]
    choices += [Filters(tags=("brew", "x")), Filters(until="2024"), Filters(tags=("none",))]
    with home.store.read() as txn:
        every = list(docs.all_latest(txn))
        for scope, first, other in product((OPERATOR, Scope(user="bob")), choices, choices):
            for wanted in (NO_FILTERS, Filters(tags=("x",))):
                filters = QueryFilters(tags=wanted.tags, without=(first, other))
                expected = {
                    doc.source_no
                    for doc in every
                    if doc.visible_to(scope)
                    and matches_filters(doc, wanted)
                    and not matches_filters(doc, first)
                    and not matches_filters(doc, other)
                }
                assert allowed_sources(txn, filters, scope) == expected
                kept = AllowedSources()
                kept(txn, wanted, scope)
                assert kept(txn, filters, scope) == expected


def test_a_minus_that_leaves_nothing_out_says_so(home: SearchHome) -> None:
    """As where nothing is let through; what the scope may not see is no doc."""
    home.give("tea.md", "# Green\n\nTea.", tags=("journal",), visibility="public")
    home.give("hush.md", "# Hush\n\nTea.", tags=("secret",), visibility="private", owner="ada")
    guest, listed = Scope(user="bob"), "`kb facets` lists the tags that docs have"
    for query, warnings in (
        ("tea -tag:journal", ()),
        ("tea -tag:journl", ("no doc has the tag 'journl'; did you mean 'journal'?",)),
        ("tea -tag:secret", (f"no doc has the tag 'secret'; {listed}",)),
        ("tea -title:hush", ("no doc has hush in its title",)),
        ("tea -source:hush", ("no doc has hush as its name or in its path",)),
    ):
        assert asked(query, home, scope=guest).warnings == warnings, query
    assert asked("tea -tag:secret", home).warnings == ()


def test_guidance_does_not_come_for_what_is_left_out() -> None:
    """Filters that name docs bring it; a minus names none."""
    assert not has_filters(NarrowedSearch(query="x", without=(Filters(tags=("a",)),)))
