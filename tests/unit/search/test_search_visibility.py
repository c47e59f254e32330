"""What may appear: never what is gone, old, or not for the one who asks."""

import itertools

import msgspec
import pytest
from search_home import MODES, SearchHome, titles

from kb.errors import AmbiguousId, NotFound
from kb.intake.ingest.changes import set_visibility, tombstone
from kb.model.doc import OPERATOR, Audience, Scope
from kb.model.search import SearchMode
from kb.search.entities import list_entities
from kb.store.content.lock import file_lock

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


def test_an_old_versions_id_opens_nothing_that_is_private_now(home: SearchHome) -> None:
    """What decides is who may see the newest version."""
    old = home.give("a.md", "# A\n\nplan one", visibility="public")
    home.give("b.md", "# B\n\nplan", visibility="public")
    new = home.give("a.md", "# A\n\nplan two", visibility="private", owner="ann")
    for ident in (old.doc_id, new.doc_id):
        with pytest.raises(NotFound):
            home.searcher().similar(ident, 5, BOB)
        assert titles(home.searcher().similar(ident, 5, ANN)) == ["B"]


@pytest.mark.parametrize("how", ["set", "added again", "new version"])
def test_words_go_to_another_index_with_their_doc(home: SearchHome, how: str) -> None:
    """Out of sight, a doc's words weigh nothing in the index that it was in, jobs done or not."""
    doc = home.give("a.md", "# A\n\nrare plan", visibility="public")
    home.give("b.md", "# B\n\nplan", visibility="public")
    home.search("plan")
    if how == "set":
        set_visibility(home.store, doc.doc_id, "private")
    elif how == "added again":
        home.give("a.md", "# A\n\nrare plan", work=False, visibility="private")
    else:
        home.give("a.md", "# A\n\nrare plan two", work=False, visibility="private")
    assert len(home.search("plan").hits) == 2
    public = home.lexical.of(Audience("public"))
    assert public.search("rare", 5).nos == []
    assert public.stats().rows == 1
    home.work()
    assert home.check().findings == ()


def test_a_cache_that_lags_says_no_more_than_the_caller_may_know(home: SearchHome) -> None:
    """Only what is visible and missing is told of, without a number; an operator reads both."""
    home.give("a.md", "# A\n\nplan", visibility="public")
    before = home.search("plan", NOBODY)
    home.lock_wait_s = 0.0
    with file_lock(home.lexical.of(Audience("public")).lock_path, 0):
        home.give("h.md", "# H\n\nplan", owner="ann")
        assert home.search("plan", NOBODY, mode="lexical").warnings == before.warnings
        home.give("b.md", "# B\n\nplan", visibility="public")
        told = home.search("plan", NOBODY, mode="lexical")
        assert told.warnings == ("the index is still behind the newest changes",)
        (warning,) = home.search("plan", mode="lexical").warnings
        assert warning.startswith("the index is 4 change(s) behind (")


def test_entities_are_listed_as_far_as_they_are_seen(home: SearchHome) -> None:
    """By kind and name; counts and spelling are those of visible passages."""
    home.give("h.md", "# H\n\n#TEA #Hush of @ann", owner="ann")
    home.give(
        "a.md", "# A\n\n#Tea and #tea\n\n## B\n\n#TEA https://x.example/a", visibility="public"
    )
    home.give("b.md", "# B\n\n#tea", visibility="public")
    gone = home.give("c.md", "# C\n\n#gone", visibility="public")
    tombstone(home.store, [gone.doc_id])

    def listed(prefix: str, scope: Scope, limit: int = 9) -> list[tuple[str, int, int]]:
        with home.store.read() as txn:
            found = list_entities(txn, prefix, scope, limit)
        return [(entity.surface, entity.passages, entity.docs) for entity in found]

    link = ("https://x.example/a", 1, 1)
    assert listed("", NOBODY) == [("#Tea", 2, 2), link]
    assert listed("", ANN) == [("#Hush", 1, 1), ("#TEA", 3, 3), ("@ann", 1, 1), link]
    assert listed("", OPERATOR) == listed("", ANN)
    assert listed("", ANN, 2) == [("#Hush", 1, 1), ("#TEA", 3, 3)]
    assert [listed(p, ANN) for p in ("#te", "＃ＴＥ", "te")] == [[("#TEA", 3, 3)]] * 3
    assert (listed("@", ANN), listed("HTTPS://X.", ANN)) == ([("@ann", 1, 1)], [link])
    assert (listed("#hu", NOBODY), listed("#gone", OPERATOR), listed("zz", ANN)) == ([], [], [])


def test_long_links_are_listed_too(home: SearchHome) -> None:
    """Those that are kept under a hash stand in their place among the others."""
    links = [
        f"https://x.example/{letter}{'y' * size}"
        for letter, size in zip("abc", (1, 600, 1), strict=True)
    ]
    home.give("a.md", "# A\n\n" + "\n\n".join(links))
    with home.store.read() as txn:
        found = list_entities(txn, "https://x", OPERATOR, 9)
    assert [entity.surface for entity in found] == links
