"""Filters, freshness and mentions, each on its own."""

import os
from pathlib import Path

import pytest
from builders import make_chunk, make_doc

from kb.intake.entities import extract
from kb.intake.ingest.ingest import seen_record
from kb.intake.sync.read import read_file
from kb.model.clock import SystemClock
from kb.model.doc import OPERATOR, Doc, PackPart, Scope
from kb.model.ids import sha256_hex
from kb.model.search import SearchRequest
from kb.model.source import file_lsid
from kb.search.entities import align, match_entities, mentioning_all
from kb.search.filters import AllowedSources, allowed_sources, may_appear
from kb.search.freshness import freshness_of
from kb.store import chunks, docs
from kb.store.keys import lsid_key
from kb.store.kv import ReadTxn
from kb.store.memory import MemoryEnvironment
from kb.store.records import SEEN
from kb.store.store import Store

BOB, NOBODY = Scope(user="bob"), Scope(user=None)


@pytest.fixture
def store() -> Store:
    return Store(MemoryEnvironment(), SystemClock())


def put(store: Store, *made: Doc) -> None:
    with store.write() as txn:
        for doc in made:
            docs.ensure_source_no(txn, doc.lsid)
            docs.put_new_version(txn, doc)


def request(**said: object) -> SearchRequest:
    return SearchRequest(query="q", **said)  # type: ignore[arg-type]


def test_may_appear_is_status_visibility_and_filters() -> None:
    """Only active docs that the caller may see, with all the tags and one of the kinds."""
    doc = make_doc(tags=("a", "b"), visibility="private", owner="bob")
    assert may_appear(doc, request(), BOB)
    assert may_appear(doc, request(tags=("a", "b")), BOB)
    assert may_appear(doc, request(kinds=("url", "file")), BOB)
    assert not may_appear(doc, request(tags=("a", "c")), BOB)
    assert not may_appear(doc, request(kinds=("url",)), BOB)
    assert not may_appear(doc, request(), Scope(user="ann"))
    for status in ("superseded", "tombstoned"):
        assert not may_appear(make_doc(status=status), request(), OPERATOR)


def test_allowed_sources_agree_with_may_appear(store: Store) -> None:
    """The facets let through exactly the sources that may_appear lets through."""
    made = [
        make_doc(1, visibility="public", tags=("a",)),
        make_doc(2, visibility="shared", tags=("a", "b"), owner="ann"),
        make_doc(3, visibility="private", owner="bob", kind="url"),
        make_doc(4, visibility="private", owner="ann", tags=("b",)),
        make_doc(5, visibility="public", status="tombstoned", tags=("a",)),
        make_doc(6, kind="pack", pack=PackPart(pack_id="p", selector="a"), tags=("b",)),
        make_doc(7, kind="pack", pack=PackPart(pack_id="q", selector="a")),
        make_doc(8, source="/n/a/b.md"),
        make_doc(9, source="/n/ab.md"),
        make_doc(10, source="/n/a/" + "x" * 600 + "/c.md"),
        make_doc(11, source="https://a.example/n/a/b"),
        make_doc(12, source="/n/a"),
        make_doc(13, source="/n/a/b.md/d.md", status="tombstoned"),
    ]
    put(store, *made)
    asked = [
        request(),
        request(tags=("a",)),
        request(tags=("a", "b")),
        request(kinds=("url",)),
        request(kinds=("url", "file"), tags=("b",)),
        request(tags=("none",)),
        request(packs=("p",)),
        request(packs=("p", "q"), tags=("b",)),
        request(sources=("/n/a",)),
        request(sources=("/n/a/", "https://a.example"), tags=("b",)),
        request(sources=("/n/a/b.md", "https://a.example/")),
        request(sources=("/",)),
        request(sources=("n/a", "/n/", "")),
    ]
    with store.read() as txn:
        for one in asked:
            for scope in (OPERATOR, BOB, NOBODY):
                allowed = allowed_sources(txn, one, scope)
                kept = {doc.source_no for doc in made if may_appear(doc, one, scope)}
                if allowed is None:
                    assert scope.operator
                    continue
                assert allowed == kept


def test_who_may_see_every_doc_is_not_limited(store: Store) -> None:
    """Until there is one that is not theirs."""
    put(store, make_doc(1, visibility="public"), make_doc(2, visibility="private", owner="bob"))
    with store.read() as txn:
        assert allowed_sources(txn, request(), BOB) is None
        assert allowed_sources(txn, request(), NOBODY) == {1}
    put(store, make_doc(3, visibility="private", owner="ann"))
    with store.read() as txn:
        assert allowed_sources(txn, request(), BOB) == {1, 2}


def test_what_one_may_see_is_looked_up_once_to_a_state(store: Store) -> None:
    """And anew once the store has changed, also while an older view is open."""
    put(store, make_doc(1, visibility="shared"), make_doc(2, visibility="private", owner="ann"))
    known = AllowedSources()

    def seen(txn: ReadTxn, scope: Scope) -> frozenset[int] | None:
        return known(txn, request(), scope)

    with store.read() as before:
        assert seen(before, BOB) == {1}
        assert seen(before, BOB) is seen(before, BOB)
        put(store, make_doc(3, visibility="shared"))
        with store.read() as after:
            assert seen(after, BOB) == {1, 3}
            assert seen(after, NOBODY) == set()
        assert seen(before, BOB) == {1}


def test_what_a_filter_lets_through_is_looked_up_once_to_a_state(store: Store) -> None:
    """For who may see as much, and for that filter alone."""
    tea, salt = make_doc(1, tags=("tea",)), make_doc(2, tags=("salt",))
    put(store, tea, salt, make_doc(3, visibility="private", owner="ann", tags=("tea",)))
    known, of_tea = AllowedSources(), request(tags=("tea",))
    with store.read() as txn:
        assert known(txn, of_tea, OPERATOR) == {1, 3}
        assert known(txn, of_tea, OPERATOR) is known(txn, of_tea, OPERATOR)
        assert known(txn, of_tea, BOB) == {1}
        assert known(txn, request(tags=("salt",)), OPERATOR) == {2}
        assert known(txn, request(doc_ids=(tea.doc_id,)), OPERATOR) == {1}
    put(store, make_doc(4, tags=("tea",)))
    with store.read() as txn:
        assert known(txn, of_tea, OPERATOR) == {1, 3, 4}


def test_many_filters_leave_what_one_may_see_known(store: Store) -> None:
    """However many of them are asked for in between."""
    put(store, make_doc(1, visibility="shared"), make_doc(2, visibility="private", owner="ann"))
    known = AllowedSources()
    with store.read() as txn:
        first = known(txn, request(), BOB)
        for number in range(99):
            assert known(txn, request(tags=(f"tag{number}",)), BOB) == frozenset()
        assert known(txn, request(), BOB) is first


def test_a_doc_filter_cannot_reach_what_is_hidden(store: Store) -> None:
    """Naming a hidden doc lets nothing through."""
    hidden = make_doc(1, visibility="private", owner="ann")
    put(store, hidden)
    with store.read() as txn:
        assert allowed_sources(txn, request(doc_ids=(hidden.doc_id,)), BOB) == frozenset()
        assert allowed_sources(txn, request(doc_ids=("d00",)), OPERATOR) == frozenset()


def note(store: Store, path: Path, *, seen: bool = True) -> Doc:
    data, stamp = read_file(path, 1 << 20, 0)
    digest = sha256_hex(data)
    doc = make_doc(lsid=file_lsid(path), raw_sha256=digest, raw_bytes=len(data))
    if seen:
        with store.write() as txn:
            SEEN.put(txn, lsid_key(doc.lsid), seen_record(doc.lsid, doc.doc_id, digest, stamp))
    return doc


def test_freshness(store: Store, tmp_path: Path) -> None:
    """Fresh while the bytes are the same, changed when they are not, gone when the file is."""
    path = tmp_path / "a.md"
    path.write_text("words")
    doc = note(store, path)

    def now() -> str:
        with store.read() as txn:
            return freshness_of(txn, doc, store)

    assert now() == "fresh"
    os.utime(path, ns=(1, 1))
    assert now() == "fresh"
    path.write_text("other")
    assert now() == "changed"
    path.write_text("longer than before")
    assert now() == "changed"
    path.unlink()
    assert now() == "gone"
    (tmp_path / "a.md").mkdir()
    assert now() in {"changed", "unknown"}


def test_freshness_without_a_stamp_or_a_file(store: Store, tmp_path: Path) -> None:
    """Without a stamp the bytes decide; what is no file is unknown."""
    path = tmp_path / "a.md"
    path.write_text("words")
    doc = note(store, path, seen=False)
    with store.read() as txn:
        assert freshness_of(txn, doc, store) == "fresh"
        assert freshness_of(txn, make_doc(lsid="stdin:x"), store) == "unknown"
        assert freshness_of(txn, make_doc(lsid=file_lsid(path / "below")), store) == "gone"


def test_mentions_are_looked_up_within_the_scope(store: Store) -> None:
    """Only passages of live docs that the caller may see count as mentioning."""
    texts = {1: "for @ann #plan", 2: "#plan", 3: "#plan @ann"}
    made = [
        make_doc(1, visibility="public"),
        make_doc(2, visibility="private", owner="ann"),
        make_doc(3, visibility="public", status="tombstoned"),
    ]
    put(store, *made)
    with store.write() as txn:
        for doc in made:
            found = tuple(extract(texts[doc.source_no]))
            row = make_chunk(
                doc.source_no, texts[doc.source_no], source_no=doc.source_no, mentions=found
            )
            chunks.replace_all(txn, doc.source_no, [row], {row.no: list(found)})
    with store.read() as txn:
        for scope, expected in ((OPERATOR, {1, 2}), (BOB, {1}), (Scope(user="ann"), {1, 2})):
            (plan,) = match_entities(txn, ["#plan"], scope)
            assert plan.chunk_nos == expected
        both = match_entities(txn, ["#plan", "@ann"], OPERATOR)
        assert mentioning_all(both) == {1}
        assert mentioning_all([]) is None
        lines, warnings = align(txn, "what of #plan", [], BOB)
        assert [(line.entity, line.known, line.in_hits) for line in lines] == [("#plan", True, 0)]
        assert "1 other passage(s)" in warnings[0]
