"""Docs, versions, facets and short ids."""

from collections.abc import Iterator

import msgspec
import pytest
from builders import make_chunk, make_doc

from kb.errors import AmbiguousId, NotFound
from kb.model.doc import OPERATOR, Doc, Scope
from kb.model.ids import DocId, Lsid
from kb.store import docs
from kb.store.codec import u64
from kb.store.kv import WriteTxn
from kb.store.memory import MemoryEnvironment
from kb.store.records import CHUNK_IDS, CHUNKS, DOCS, ChunkRef


@pytest.fixture
def txn() -> Iterator[WriteTxn]:
    with MemoryEnvironment().write() as txn:
        yield txn


def sources_with(txn: WriteTxn, name: str, value: str) -> list[int]:
    return list(docs.with_facet(txn, name, value))


def test_a_source_keeps_its_number(txn: WriteTxn) -> None:
    """A logical source is numbered when first seen and keeps that number; long ids are no bar."""
    long = Lsid("file:///" + "x" * 5000)
    assert docs.source_no_of(txn, Lsid("a")) is None
    assert [docs.ensure_source_no(txn, s) for s in (Lsid("a"), long, Lsid("a"))] == [1, 2, 1]
    assert docs.source_no_of(txn, long) == 2


def test_the_newest_version_is_the_latest(txn: WriteTxn) -> None:
    """A new version takes the pointer; the one before is superseded and still readable."""
    first, second = make_doc(1, 1), make_doc(1, 2)
    docs.put_new_version(txn, first)
    docs.put_new_version(txn, second)
    assert docs.latest(txn, 1) == second
    assert docs.get(txn, first.doc_id) == msgspec.structs.replace(first, status="superseded")
    assert list(docs.versions(txn, 1)) == [first.doc_id, second.doc_id]


def test_a_tombstone_stays_one_when_superseded(txn: WriteTxn) -> None:
    """A version that was removed does not become superseded when its source comes back."""
    docs.put_new_version(txn, make_doc(1, 1))
    docs.replace(txn, make_doc(1, 1, status="tombstoned"))
    docs.put_new_version(txn, make_doc(1, 2))
    statuses = [doc.status for i in docs.versions(txn, 1) if (doc := docs.get(txn, i))]
    assert statuses == ["tombstoned", "active"]


def test_versions_sort_by_number(txn: WriteTxn) -> None:
    """Version 10 comes after version 9, and another source's versions stay out."""
    for version in range(1, 12):
        docs.put_new_version(txn, make_doc(1, version))
    docs.put_new_version(txn, make_doc(256, 1))
    assert list(docs.versions(txn, 1)) == [make_doc(1, v).doc_id for v in range(1, 12)]


def test_latest_by_logical_source(txn: WriteTxn) -> None:
    """The newest doc is found by the source's name; a name never seen has none."""
    doc = make_doc(1)
    assert docs.ensure_source_no(txn, doc.lsid) == 1
    assert docs.latest_of(txn, doc.lsid) is None
    docs.put_new_version(txn, doc)
    assert docs.latest_of(txn, doc.lsid) == doc
    assert docs.latest_of(txn, Lsid("never")) is None


def test_all_latest_in_order_of_coming(txn: WriteTxn) -> None:
    """One doc per source, in the order the sources first came."""
    for number in (1, 300, 2):
        docs.put_new_version(txn, make_doc(number))
    docs.put_new_version(txn, make_doc(1, 2))
    assert [(d.source_no, d.version) for d in docs.all_latest(txn)] == [(1, 2), (2, 1), (300, 1)]


def test_facets_of_a_doc(txn: WriteTxn) -> None:
    """An active doc is found by its kind, audience and each of its tags."""
    docs.put_new_version(txn, make_doc(1, tags=("x", "y")))
    docs.put_new_version(txn, make_doc(2, tags=("y",), visibility="private", owner="ada"))
    assert sources_with(txn, "tag", "y") == [1, 2]
    assert sources_with(txn, "tag", "x") == [1]
    assert sources_with(txn, "kind", "file") == [1, 2]
    assert sources_with(txn, "audience", "private:ada") == [2]
    assert sources_with(txn, "audience", "public") == [1]
    assert sources_with(txn, "tag", "") == []


def test_facets_follow_tags(txn: WriteTxn) -> None:
    """A doc written again with other tags is found by those and by none that it lost."""
    docs.put_new_version(txn, make_doc(1, tags=("old", "kept")))
    docs.replace(txn, make_doc(1, tags=("kept", "new"), visibility="shared"))
    found = {t: sources_with(txn, "tag", t) for t in ("old", "kept", "new")}
    assert found == {"old": [], "kept": [1], "new": [1]}
    assert sources_with(txn, "audience", "public") == []
    assert docs.audiences(txn) == ("shared",)


def test_facets_follow_versions_and_status(txn: WriteTxn) -> None:
    """A new version's facets replace the old one's; a tombstone has none, a revival has them."""
    docs.put_new_version(txn, make_doc(1, 1, tags=("one",)))
    docs.put_new_version(txn, make_doc(1, 2, tags=("two",)))
    assert (sources_with(txn, "tag", "one"), sources_with(txn, "tag", "two")) == ([], [1])
    docs.replace(txn, make_doc(1, 2, tags=("two",), status="tombstoned"))
    assert txn.count("facets") == 0
    docs.replace(txn, make_doc(1, 2, tags=("two",)))
    assert sources_with(txn, "tag", "two") == [1]


@pytest.mark.parametrize(
    ("tag", "other"),
    [("a", "ab"), ("a", "a\0b"), ("标签", "标"), ("\x02", "y" * 900), ("", "\x01")],
)
def test_no_tag_is_taken_for_another(txn: WriteTxn, tag: str, other: str) -> None:
    """Tags of any text and length are told apart, also where one is the start of another."""
    docs.put_new_version(txn, make_doc(1, tags=(tag,)))
    docs.put_new_version(txn, make_doc(2, tags=(other,)))
    assert (sources_with(txn, "tag", tag), sources_with(txn, "tag", other)) == ([1], [2])


def put_ids(txn: WriteTxn, *ids: str) -> None:
    for doc_id in ids:
        doc: Doc = make_doc(1, doc_id=DocId(doc_id))
        DOCS.put(txn, doc_id.encode(), doc)


def test_a_short_id_that_is_enough(txn: WriteTxn) -> None:
    """Four characters name the one doc or passage that starts with them; a full id names itself."""
    put_ids(txn, "dabc111", "dabc222", "dabd333")
    CHUNK_IDS.put(txn, b"cabc999", ChunkRef(no=1))  # type: ignore[arg-type]
    resolved = [
        docs.resolve(txn, short, OPERATOR) for short in ("dabd", "dabc1", "dabc222", "cabc")
    ]
    assert resolved == ["dabd333", "dabc111", "dabc222", "cabc999"]


def test_a_full_id_wins_over_longer_ones(txn: WriteTxn) -> None:
    """An id that is itself there is meant, though others start with it."""
    put_ids(txn, "dabc", "dabcd")
    assert docs.resolve(txn, "dabc", OPERATOR) == "dabc"


def test_an_ambiguous_id_names_candidates(txn: WriteTxn) -> None:
    """Where several start so, it is AmbiguousId with at most four of them."""
    put_ids(txn, *[f"dabc{n}" for n in range(9)])
    with pytest.raises(AmbiguousId) as caught:
        docs.resolve(txn, "dabc", OPERATOR)
    assert caught.value.fields["candidates"] == "dabc0, dabc1, dabc2, dabc3"


def test_a_too_short_id_asks_for_more(txn: WriteTxn) -> None:
    """Fewer than four characters never name a doc, even while only one starts so."""
    put_ids(txn, "dabc111")
    for short in ("d", "da", "dab"):
        with pytest.raises(AmbiguousId, match="at least four characters"):
            docs.resolve(txn, short, OPERATOR)


@pytest.mark.parametrize(
    "short", ["", "dzzzz", "dz", "xabc", "doc", "dабв", "d文档文", "d" * 600, "d\0\0\0", "Dabc"]
)
def test_what_nothing_starts_with_is_not_found(txn: WriteTxn, short: str) -> None:
    """An id that names nothing is NotFound: empty, of another kind, not ASCII, or overlong."""
    put_ids(txn, "dabc111")
    with pytest.raises(NotFound):
        docs.resolve(txn, short, OPERATOR)


def put_owned(txn: WriteTxn, owner: str, source_no: int, **changes: str) -> Doc:
    doc: Doc = make_doc(source_no, visibility="private", owner=owner, **changes)
    docs.put_new_version(txn, doc)
    return doc


def test_an_id_resolves_as_if_hidden_docs_were_not_there(txn: WriteTxn) -> None:
    """What only hidden docs make ambiguous is not, and what only they have is not found."""
    bob = Scope(user="bob")
    put_owned(txn, "bob", 1, doc_id="dabc111")
    put_owned(txn, "ann", 2, doc_id="dabc222")
    put_owned(txn, "ann", 3, doc_id="dabc1119")
    put_owned(txn, "bob", 4, doc_id="dffff11", status="tombstoned")
    CHUNKS.put(txn, u64(7), make_chunk(7, "hers", source_no=2))
    CHUNK_IDS.put(txn, b"cabc999", ChunkRef(no=7))  # type: ignore[arg-type]
    assert [docs.resolve(txn, short, bob) for short in ("dabc", "dabc111")] == ["dabc111"] * 2
    for short in ("dabc2", "dabc222", "dabc1119", "cabc", "cabc999", "c", "dffff"):
        with pytest.raises(NotFound, match=short):
            docs.resolve(txn, short, bob)
    with pytest.raises(AmbiguousId):
        docs.resolve(txn, "dabc", OPERATOR)


def test_an_old_version_is_hidden_with_the_newest(txn: WriteTxn) -> None:
    """That it was once public does not show a doc that is private now."""
    first: Doc = make_doc(1, visibility="public")
    docs.put_new_version(txn, first)
    docs.put_new_version(txn, make_doc(1, 2, visibility="private", owner="ann"))
    with pytest.raises(NotFound):
        docs.resolve_doc(txn, first.doc_id, Scope(user="bob"))
    assert docs.resolve_doc(txn, first.doc_id, Scope(user="ann")) == first.doc_id


def test_audiences_in_use(txn: WriteTxn) -> None:
    """Each once, sorted, in full, while an active doc has it."""
    names = ("z" * 600, "b", "a\0", "")
    for source_no, name in enumerate((*names, *names), 1):
        put_owned(txn, name, source_no)
    docs.put_new_version(txn, make_doc(50))
    docs.put_new_version(txn, make_doc(51, visibility="shared"))
    docs.replace(txn, make_doc(51, visibility="shared", status="tombstoned"))
    assert docs.audiences(txn) == tuple(sorted(["public", *(f"private:{name}" for name in names)]))


def test_sources_at_a_place_or_below(txn: WriteTxn) -> None:
    """As paths and addresses are below each other, not as letters; however long they are."""
    long = "/n/a/" + "x" * 600
    places = ("/n/a", "/n/a/b.md", "/n/ab.md", f"{long}/c.md", "https://a.example/n/a", "a/n/a/b")
    for number, place in enumerate(places, 1):
        docs.put_new_version(txn, make_doc(number, source=place))
    docs.put_new_version(txn, make_doc(7, source="/n/a/gone.md"))
    docs.replace(txn, make_doc(7, source="/n/a/gone.md", status="tombstoned"))

    def within(place: str) -> list[int]:
        return sorted(docs.within(txn, place))

    assert within("/n/a") == [1, 2, 4]
    assert within("/n/a/") == [2, 4]
    assert (within("/"), within(long), within(f"{long}/c.md")) == ([1, 2, 3, 4], [4], [4])
    assert (within("https://a.example"), within("https://a")) == ([5], [])
    assert (within("/n/a/b"), within("")) == ([], [1, 2, 3, 4])


def test_get_of_an_impossible_id_is_none(txn: WriteTxn) -> None:
    """No id that a caller may type is an error: it is merely not there."""
    assert [docs.get(txn, i) for i in ("", "x" * 600, "文档")] == [None, None, None]
    assert docs.latest(txn, 12) is None
    assert txn.get("versions", u64(12)) is None
