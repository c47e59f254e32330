"""Places and tags that are meant: nothing tells of docs that the scope may not see."""

import pytest
from search_home import SearchHome

from kb.errors import NotFound
from kb.home.open_home import OpenHome
from kb.model.doc import OPERATOR, Scope
from kb.model.search import Filters
from kb.operations.doc_at import NoDocAt, SharedPlace, doc_at
from kb.operations.near_filters import filter_hints

BOB = Scope(user="bob")


@pytest.fixture
def homes(home: SearchHome) -> list[OpenHome]:
    """One home, with a doc for everybody and one of ann's."""
    home.give("open.md", "tea", visibility="public", tags=("brew",))
    home.give("deep/plan.md", "hush", owner="ann", tags=("secret",))
    return [OpenHome(store=home.store, content=home.content, searcher=home.searcher)]


def test_a_hidden_doc_is_at_no_place(homes: list[OpenHome], home: SearchHome) -> None:
    """Its path, a part of it and what is near are as unknown as any other; so are those below."""
    hidden = doc_at(homes, "plan.md", OPERATOR, [])
    assert home.doc(hidden) is not None
    for place in ("deep/plan.md", "plan", "plam.md", "deep", "zzz"):
        with pytest.raises(NoDocAt) as caught:
            doc_at(homes, place, BOB, [])
        assert str(caught.value).endswith("; `kb ls` lists the docs"), place
    assert doc_at(homes, "ope", BOB, []) == doc_at(homes, "open.md", OPERATOR, [])


def test_what_looks_like_an_id_is_no_part_of_a_name(home: SearchHome) -> None:
    """A mistyped id does not open the doc whose name happens to have it in it."""
    home.give("cafe-list.md", "tea", visibility="public")
    homes = [OpenHome(store=home.store, content=home.content, searcher=home.searcher)]
    with pytest.raises(NotFound):
        doc_at(homes, "cafe", OPERATOR, [])
    assert doc_at(homes, "cafe-list", OPERATOR, [])
    home.give("cafe-lists.md", "tea")
    with pytest.raises(SharedPlace):
        doc_at(homes, "cafe-", OPERATOR, [])


def test_hints_name_no_hidden_value(homes: list[OpenHome]) -> None:
    """A tag of hidden docs alone is one that no doc has, and is near to none."""
    asked = Filters(tags=("secret", "brw"))
    no_tag, near = filter_hints(homes, asked, BOB)
    assert no_tag == "no doc has the tag 'secret'; `kb facets` lists the tags that docs have"
    assert near == "no doc has the tag 'brw'; did you mean 'brew'?"
    assert filter_hints(homes, Filters(tags=("secrt",)), BOB) == (
        "no doc has the tag 'secrt'; `kb facets` lists the tags that docs have",
    )
    assert filter_hints(homes, Filters(tags=("secret",)), OPERATOR) == ()
