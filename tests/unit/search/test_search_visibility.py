"""What may appear: never what is gone, old, or not for the one who asks."""

import itertools

import msgspec
import pytest
from search_home import MODES, SearchHome, titles

from kb.errors import AmbiguousId, NotFound
from kb.ingest.changes import set_visibility, tombstone
from kb.model.doc import OPERATOR, Scope
from kb.model.search import SearchMode

BOB, ANN, NOBODY = Scope(user="bob"), Scope(user="ann"), Scope(user=None)


@pytest.mark.parametrize("mode", MODES)
def test_tombstoned_docs_never_appear(home: SearchHome, mode: SearchMode) -> None:
    """A removed doc is gone from the next answer on, in every mode."""
    doc = home.give("a.md", "# Gone\n\ntea")
    home.give("b.md", "# Stays\n\ntea")
    assert len(home.search("tea", mode=mode).hits) == 2
    tombstone(home.store, [doc.doc_id])
    assert titles(home.search("tea", mode=mode)) == ["Stays"]


@pytest.mark.parametrize("mode", MODES)
def test_superseded_text_never_appears(home: SearchHome, mode: SearchMode) -> None:
    """Of a changed doc only the newest text is found, under its newest id."""
    home.give("a.md", "# A\n\nold words about coffee")
    new = home.give("a.md", "# A\n\nnew words about tea")
    for query in ("coffee", "tea", "words"):
        for hit in home.search(query, mode=mode).hits:
            assert hit.doc_id == new.doc_id
            assert "coffee" not in hit.text


def test_visibility_of_hits(home: SearchHome) -> None:
    """A named user finds public, shared and own docs; an anonymous one public ones alone."""
    for visibility, owner in itertools.product(("public", "shared", "private"), ("ann", "bob")):
        name = f"{visibility}-{owner}"
        home.give(f"{name}.md", "tea", title=name, visibility=visibility, owner=owner)

    def seen(scope: Scope) -> set[str]:
        return {
            title for mode in MODES for title in titles(home.search("tea", scope, mode=mode, k=50))
        }

    everybody = {"public-ann", "public-bob"}
    named = everybody | {"shared-ann", "shared-bob"}
    assert seen(NOBODY) == everybody
    assert seen(BOB) == named | {"private-bob"}
    assert seen(ANN) == named | {"private-ann"}
    assert len(seen(OPERATOR)) == 6


def test_what_is_hidden_changes_nothing_that_can_be_read(home: SearchHome) -> None:
    """Hidden docs leave no trace in hits, warnings or entity_alignment, whatever is asked."""
    home.give("open.md", "# Open\n\ngreen tea #brew", visibility="public")
    asked = [
        {"query": "secret #plan @ann"},
        {"query": "tea", "require_entities": ("#plan",)},
        {"query": "tea", "boost_entities": ("#plan",)},
        {"query": "tea", "tags": ("hush",)},
    ]

    def answers() -> list[bytes]:
        return [
            msgspec.json.encode(home.searcher().search(_request(one), scope))
            for one in asked
            for scope in (BOB, NOBODY)
        ]

    before = answers()
    hidden = home.give("h.md", "# Secret\n\n#plan of @ann", owner="ann", tags=("hush",))
    waiting = home.give("w.md", "# Also\n\n#plan of @ann", owner="ann", work=False)
    assert hidden.visibility == waiting.visibility == "private"
    assert answers() == before
    operator = home.searcher().search(_request(asked[0]), OPERATOR)
    assert titles(operator)[0] == "Secret"
    assert any("not searchable yet" in warning for warning in operator.warnings)
    set_visibility(home.store, hidden.doc_id, "shared")
    bob = home.searcher().search(_request(asked[0]), BOB)
    assert titles(bob)[0] == "Secret"


def _request(said: dict[str, object]) -> "object":
    from kb.model.search import SearchRequest

    return msgspec.convert(said, SearchRequest)


def test_similar_does_not_tell_of_hidden_docs(home: SearchHome) -> None:
    """For who may not see a doc its id is as unknown as any other, short or whole."""
    hidden = home.give("h.md", "# Secret\n\nplan", owner="ann")
    open_doc = home.give("o.md", "# Open\n\nplan", visibility="public")
    for ident in (hidden.doc_id, hidden.doc_id[:8], "d0000"):
        with pytest.raises(NotFound):
            home.searcher().similar(ident, 5, BOB)
    with pytest.raises(AmbiguousId) as ambiguous:
        home.searcher().similar("d", 5, BOB)
    assert ambiguous.value.fields["candidates"] == open_doc.doc_id
    assert home.searcher().similar(open_doc.doc_id, 5, BOB).hits == ()
    assert titles(home.searcher().similar(open_doc.doc_id, 5, ANN)) == ["Secret"]
