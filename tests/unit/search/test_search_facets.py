"""What a search can be narrowed to is what the docs that one sees have, counted."""

from collections import Counter
from collections.abc import Iterable

import pytest
from builders import make_doc

from kb.model.clock import SystemClock
from kb.model.doc import OPERATOR, Doc, PackPart, Scope
from kb.model.search import Filters
from kb.model.source import place_of
from kb.search.facets import FacetValue, count_facets, facets_of
from kb.search.filters import may_appear
from kb.store import docs
from kb.store.memory import MemoryEnvironment
from kb.store.store import Store

MADE = (
    make_doc(1, tags=("a",), source="/n/x/one.md"),
    make_doc(2, tags=("a", "b"), source="/n/x/two.md", visibility="private", owner="bob"),
    make_doc(3, tags=("b", "c\0d"), source="/n/three.md", visibility="shared"),
    make_doc(4, kind="url", source="https://a.example/p/q", tags=("a",)),
    make_doc(5, kind="url", source="http://a.example", visibility="private", owner="ann"),
    make_doc(6, status="tombstoned", tags=("gone",), source="/gone/six.md"),
    make_doc(7, kind="pack", pack=PackPart(pack_id="p", selector="a"), source="/top.md"),
    make_doc(8, kind="stdin", source="a title"),
)


@pytest.fixture
def store() -> Store:
    made = Store(MemoryEnvironment(), SystemClock())
    with made.write() as txn:
        for doc in MADE:
            docs.ensure_source_no(txn, doc.lsid)
            docs.put_new_version(txn, doc)
    return made


def counted(values: Iterable[str | None]) -> tuple[FacetValue, ...]:
    found = Counter(value for value in values if value is not None and "\0" not in value)
    return tuple(FacetValue(value=value, docs=count) for value, count in sorted(found.items()))


def seen_by(scope: Scope) -> list[Doc]:
    return [doc for doc in MADE if may_appear(doc, Filters(), scope)]


@pytest.mark.parametrize("scope", [OPERATOR, Scope(user="bob"), Scope(user=None)])
def test_values_are_counted_over_what_a_scope_sees(store: Store, scope: Scope) -> None:
    with store.read() as txn:
        found = facets_of([count_facets(txn, scope)], 100)
    seen = seen_by(scope)
    assert found.kinds == counted(doc.kind for doc in seen)
    assert found.tags == counted(tag for doc in seen for tag in doc.tags)
    places = {place_of(doc.source) for doc in seen}
    with store.read() as txn:
        assert {row.value for row in found.sources} == places - {None}
        for row in found.sources:
            filters = Filters(sources=(row.value,))
            assert row.docs == sum(may_appear(doc, filters, scope) for doc in seen), row.value


def test_the_most_common_are_kept_and_come_by_name(store: Store) -> None:
    with store.read() as txn:
        found = facets_of([count_facets(txn, OPERATOR)], 2)
    assert found.tags == (FacetValue(value="a", docs=3), FacetValue(value="b", docs=2))
    assert [one.value for one in found.kinds] == ["file", "url"]


def test_those_of_two_homes_add_up(store: Store) -> None:
    with store.read() as txn:
        counts = [count_facets(txn, scope) for scope in (OPERATOR, Scope(user=None))]
    all_of_it, both = facets_of(counts[:1], 100), facets_of(counts, 100)
    assert FacetValue(value="a", docs=5) in both.tags
    assert {one.value for one in both.sources} == {one.value for one in all_of_it.sources}


@pytest.mark.parametrize(
    ("source", "place"),
    [
        ("/n/x/one.md", "/n/x"),
        ("/top.md", None),
        ("https://a.example/p/q?r", "https://a.example"),
        ("http://a.example", "http://a.example"),
        ("a title", None),
        ("-", None),
    ],
)
def test_a_place_is_a_folder_or_a_site(source: str, place: str | None) -> None:
    assert place_of(source) == place
