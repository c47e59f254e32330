"""Who may read what through the tools."""

import itertools
from typing import Any

import msgspec
import pytest
from tools_home import BOB, NOBODY, OPERATOR, SCOPES, ToolsHome

from kb.intake.ingest.changes import tombstone
from kb.intake.ingest.request import IngestOptions
from kb.model.doc import Doc, Scope, Visibility
from kb.model.entry import EntryMeta
from kb.model.source import entry_lsid

SEES = {
    "nobody": (NOBODY, {"public-ann", "public-bob"}),
    "bob": (BOB, {"public-ann", "public-bob", "shared-ann", "shared-bob", "private-bob"}),
    "operator": (
        OPERATOR,
        {f"{v}-{o}" for v in ("public", "shared", "private") for o in ("ann", "bob")},
    ),
}


def populate(home: ToolsHome) -> dict[str, Doc]:
    """A doc of each visibility and owner, all alike."""
    docs = {}
    for visibility, owner in itertools.product(("public", "shared", "private"), ("ann", "bob")):
        name = f"{visibility}-{owner}"
        text = f"# {name}\n\ngreen tea of #uji and #{visibility}{owner}\n"
        docs[name] = home.give(
            f"{name}.md", text, title=name, visibility=visibility, owner=owner, tags=(name,)
        )
    return docs


@pytest.mark.parametrize("who", SEES)
def test_each_tool_shows_what_the_scope_sees(home: ToolsHome, who: str) -> None:
    """Docs, hits, neighbours in meaning, entities and counts are those of the visible docs."""
    scope, names = SEES[who]
    docs = populate(home)
    listed = home.ask("kb_list_docs", scope)
    assert ({row["title"] for row in listed["docs"]}, listed["total"]) == (names, len(names))
    for mode in ("hybrid", "lexical", "dense"):
        found = home.ask("kb_search", scope, query="green tea #uji", mode=mode, limit=50)
        assert {hit["title"] for hit in found["hits"]} == names
    like = home.ask("kb_similar", scope, id=docs["public-ann"].doc_id, limit=50)
    assert {hit["title"] for hit in like["hits"]} == names - {"public-ann"}
    (uji,) = home.ask("kb_search_entities", scope, prefix="#uji")["entities"]
    assert (uji["docs"], uji["passages"]) == (len(names), len(names))
    surfaces = {row["surface"] for row in home.ask("kb_search_entities", scope)["entities"]}
    assert surfaces == {"#uji"} | {f"#{name.replace('-', '')}" for name in names}
    for name, doc in docs.items():
        for ident in (doc.doc_id, home.passages(doc)[0].chunk_id):
            if name in names:
                assert home.ask("kb_fetch", scope, id=ident)["title"] == name
            else:
                assert home.error("kb_fetch", scope, id=ident)["code"] == "not_found"


def of_an_id(ident: str) -> list[tuple[str, dict[str, Any]]]:
    return [
        ("kb_fetch", {"id": ident}),
        ("kb_fetch", {"id": ident, "max_tokens": 1}),
        ("kb_similar", {"id": ident}),
        ("kb_search", {"query": "tea", "doc_ids": [ident]}),
    ]


@pytest.mark.parametrize("scope", [NOBODY, BOB], ids=["nobody", "bob"])
def test_hidden_is_as_unknown_as_never_there(home: ToolsHome, scope: Scope) -> None:
    """Every call that names a hidden doc gives the very bytes that it gave before it came."""
    home.give("open.md", "# Open\n\ntea\n")
    other = ToolsHome(home.root.parent / "other")
    hidden = other.give("h.md", "# Secret\n\ntea #plan\n", visibility="private", owner="ann")
    idents = [hidden.doc_id, other.passages(hidden)[0].chunk_id, hidden.doc_id[:6]]
    other.close()
    calls = [call for ident in idents for call in of_an_id(ident)]
    calls += [("kb_fetch", {"id": hidden.doc_id, "page": 1}), ("kb_fetch", {"id": "d"})]
    calls += [("kb_list_docs", {}), ("kb_search_entities", {}), ("kb_search", {"query": "#plan"})]
    before = [home.raw(name, scope, **asked) for name, asked in calls]
    again = home.give("h.md", "# Secret\n\ntea #plan\n", visibility="private", owner="ann")
    assert again.doc_id == hidden.doc_id
    assert [home.raw(name, scope, **asked) for name, asked in calls] == before
    newer = home.give("h.md", "# Secret\n\nmore #plan\n", visibility="private", owner="ann")
    assert newer.doc_id != hidden.doc_id
    assert [home.raw(name, scope, **asked) for name, asked in calls] == before
    assert home.ask("kb_fetch", OPERATOR, id=hidden.doc_id)["doc_id"] == newer.doc_id


@pytest.mark.parametrize("scope", SCOPES, ids=["nobody", "bob", "operator"])
def test_a_home_without_docs_is_one_with_hidden_docs_only(home: ToolsHome, scope: Scope) -> None:
    """Who sees none is told the same, whether there are any or not."""
    calls = [("kb_search", {"query": "tea @ann"}), ("kb_list_docs", {}), ("kb_search_entities", {})]
    before = [home.raw(name, scope, **asked) for name, asked in calls]
    home.give("h.md", "# H\n\ntea @ann\n", visibility="private", owner="ann")
    after = [home.raw(name, scope, **asked) for name, asked in calls]
    assert (after == before) == (not scope.operator)


def test_an_entry_is_fetched_by_its_own_id(home: ToolsHome) -> None:
    """As by its doc's id; hidden, unknown and removed ones are not found alike."""

    def entry(ident: str, visibility: Visibility) -> Doc:
        ingest_options = IngestOptions(visibility=visibility, entry=EntryMeta(zettel_id=ident))
        request = home.request(f"{ident}.md", f"# {ident}\n\nHow {ident} goes.\n")
        request = msgspec.structs.replace(
            request, lsid=entry_lsid(ident), ingest_options=ingest_options
        )
        (done,) = home.ingestor.commit([home.ingestor.stage(request)])
        home.work()
        found = home.doc(done.doc_id)
        assert found is not None
        return found

    long = "c" + "-brewing" * 15
    shown = {ident: entry(ident, "public") for ident in ("brewing-tea", "cafe", "dead", long)}
    for ident, doc in shown.items():
        by_doc = home.raw("kb_fetch", BOB, id=doc.doc_id, max_tokens=50)
        assert home.raw("kb_fetch", BOB, id=ident, max_tokens=50) == by_doc, ident
    part = home.ask("kb_fetch", BOB, id="brewing-tea", start=2, end=9)
    assert part["text"] == home.markdown(shown["brewing-tea"])[2:9]
    secret = entry("secret-tea", "private")
    assert home.ask("kb_fetch", id="secret-tea")["doc_id"] == secret.doc_id
    tombstone(home.store, [shown["brewing-tea"].doc_id])
    missing = home.raw("kb_fetch", BOB, id="no-such-tea")
    for ident in ("secret-tea", "brewing-tea"):
        assert (
            home.raw("kb_fetch", BOB, id=ident).replace(ident.encode(), b"no-such-tea") == missing
        )
    assert home.error("kb_fetch", BOB, id="no-such-tea")["code"] == "not_found"
