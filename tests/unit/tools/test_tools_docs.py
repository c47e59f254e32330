"""What the person at the machine reads besides: every version of a doc, whatever its state."""

import msgspec
import pytest
from tools_home import ToolsHome, long_text

from kb.errors import AmbiguousId, NotFound, UsageError
from kb.intake.ingest.changes import tombstone
from kb.intake.ingest.request import IngestOptions
from kb.model.doc import OPERATOR, Doc, Scope, Visibility
from kb.model.entry import EntryMeta
from kb.model.search import Filters
from kb.model.source import entry_lsid
from kb.operations import docs as listing
from kb.operations import show
from kb.operations.show import PassageInPlace, WholeDoc

ALL = Filters()


def listed_docs(
    home: ToolsHome, filters: Filters, status: str, limit: int, scope: Scope
) -> listing.Docs:
    """What is listed of a home's docs."""
    request = listing.DocsRequest(
        tags=filters.tags,
        kinds=filters.kinds,
        status=status,  # type: ignore[arg-type]
        limit=limit,
    )
    return listing.run(home.kit, request, scope)


def shown_of(home: ToolsHome, ident: str, scope: Scope) -> WholeDoc | PassageInPlace:
    """What an id shows."""
    return show.run(home.kit, show.ShowRequest(id=ident), scope).shown


@pytest.fixture
def docs(home: ToolsHome) -> dict[str, Doc]:
    """A doc in two versions, one that was removed, one that waits to be cut, one that is plain."""
    found = {"old": home.give("a.md", "# A\n\nold tea\n", tags=("t",))}
    found["new"] = home.give("a.md", "# A\n\nnew tea\n", tags=("t",))
    found["removed"] = home.give("b.md", "# B\n\ntea\n", tags=("t", "u"), visibility="private")
    found["plain"] = home.give("c.md", long_text(3))
    found["waiting"] = home.give("d.md", "# D\n\ntea\n", work=False)
    home.clock.advance(1000)
    tombstone(home.store, [found["removed"].doc_id])
    return found


@pytest.mark.parametrize(
    ("status", "limits", "names"),
    [
        ("active", ALL, ["new", "plain", "waiting"]),
        ("active", Filters(tags=("t",)), ["new"]),
        ("superseded", ALL, ["old"]),
        ("tombstoned", ALL, ["removed"]),
        ("tombstoned", Filters(tags=("u", "t")), ["removed"]),
        ("all", ALL, ["removed", "old", "new", "plain", "waiting"]),
        ("all", Filters(tags=("t",), kinds=("file",)), ["removed", "old", "new"]),
        ("all", Filters(kinds=("url",)), []),
    ],
)
def test_docs_are_listed_by_their_state(
    home: ToolsHome, docs: dict[str, Doc], status: str, limits: Filters, names: list[str]
) -> None:
    """Those of the status within the limits, the newest change first, then by source."""
    by_id = {str(doc.doc_id): name for name, doc in docs.items()}
    listed = listed_docs(home, limits, status, 0, OPERATOR)
    assert sorted(by_id[row.doc_id] for row in listed.docs) == sorted(names)
    places = [(-row.updated_ms, row.source) for row in listed.docs]
    assert places == sorted(places)
    assert listed.total == len(names)
    assert listed_docs(home, limits, status, 2, OPERATOR).docs == listed.docs[:2]
    assert listed_docs(home, limits, status, 2, OPERATOR).total == listed.total


def test_a_doc_that_is_named_is_listed_alone(home: ToolsHome, docs: dict[str, Doc]) -> None:
    """With every version of its source that has the state; a removed one by its id, too."""
    for name, status, names in (
        ("new", "active", ["new"]),
        ("new", "all", ["old", "new"]),
        ("new", "superseded", ["old"]),
        ("removed", "tombstoned", ["removed"]),
        ("plain", "tombstoned", []),
    ):
        request = listing.DocsRequest(doc_ids=(docs[name].doc_id[:12],), status=status, limit=0)  # type: ignore[arg-type]
        listed = listing.run(home.kit, request, OPERATOR)
        assert {row.doc_id for row in listed.docs} == {docs[one].doc_id for one in names}
        assert listed.total == len(names)


def test_a_row_has_the_state_of_its_doc(home: ToolsHome, docs: dict[str, Doc]) -> None:
    """Only an active doc that was cut is indexed; an older version has no passages."""
    rows = {row.doc_id: row for row in listed_docs(home, ALL, "all", 0, OPERATOR).docs}
    found = {
        name: (rows[doc.doc_id].status, rows[doc.doc_id].indexed, rows[doc.doc_id].passages)
        for name, doc in docs.items()
    }
    assert found == {
        "old": ("superseded", False, 0),
        "new": ("active", True, 1),
        "removed": ("tombstoned", False, 1),
        "plain": ("active", True, len(home.passages(docs["plain"]))),
        "waiting": ("active", False, 0),
    }
    assert rows[docs["removed"].doc_id].visibility == "private"
    assert rows[docs["waiting"].doc_id].ledger == "pending"


def test_any_version_is_shown_by_its_id(home: ToolsHome, docs: dict[str, Doc]) -> None:
    """A doc with its passages in reading order; those of an older version are gone."""
    for name, of in (("old", None), ("new", "new"), ("removed", "removed"), ("plain", "plain")):
        shown = shown_of(home, docs[name].doc_id[:9], OPERATOR)
        assert isinstance(shown, WholeDoc)
        assert shown.doc == home.doc(docs[name].doc_id)
        texts = [chunk.text for chunk in home.passages(docs[of])] if of else []
        assert [row.text for row in shown.passages] == texts


def test_a_passage_is_shown_in_its_place(home: ToolsHome, docs: dict[str, Doc]) -> None:
    """With the one before and the one after, where there are such."""
    rows = home.passages(docs["plain"])
    for place, chunk in enumerate(rows):
        shown = shown_of(home, chunk.chunk_id, OPERATOR)
        assert isinstance(shown, PassageInPlace)
        around = [
            row.chunk_id if row else None for row in (shown.before, shown.passage, shown.after)
        ]
        ids = [None, *(row.chunk_id for row in rows), None]
        assert around == ids[place : place + 3]
        assert (shown.doc.doc_id, shown.passage.text) == (docs["plain"].doc_id, chunk.text)


@pytest.mark.parametrize("ident", ["d0000", "c0000", "x", ""])
def test_what_is_not_kept_is_not_found(home: ToolsHome, ident: str) -> None:
    """No doc and no passage has the id."""
    with pytest.raises(NotFound):
        shown_of(home, ident, OPERATOR)


def test_too_short_an_id_is_several(home: ToolsHome, docs: dict[str, Doc]) -> None:
    """It names candidates, removed and older ones among them."""
    with pytest.raises(AmbiguousId):
        shown_of(home, "d", OPERATOR)
    assert len(docs) > 1


ADA = Scope(user="ada")


def test_others_see_the_newest_of_what_is_theirs(home: ToolsHome, docs: dict[str, Doc]) -> None:
    """By an older id the newest version; what is private to somebody, or removed, is not there."""
    shared = home.give("s.md", "# S\n\nold\n", visibility="private")
    newest = home.give("s.md", "# S\n\nnew\n", visibility="shared")
    shown = shown_of(home, shared.doc_id, ADA)
    assert isinstance(shown, WholeDoc)
    assert shown.doc.doc_id == newest.doc_id
    passage = shown_of(home, shown.passages[0].chunk_id, ADA)
    assert isinstance(passage, PassageInPlace)
    assert passage.doc.doc_id == newest.doc_id
    private = home.give("p.md", "# P\n\nmine\n", visibility="private")
    for hidden in (private.doc_id, docs["removed"].doc_id, home.passages(private)[0].chunk_id):
        assert shown_of(home, hidden, OPERATOR)
        with pytest.raises(NotFound):
            shown_of(home, hidden, ADA)


def test_others_list_active_docs_alone(home: ToolsHome, docs: dict[str, Doc]) -> None:
    """Older versions and removed docs are refused, whoever they were open to."""
    home.give("p.md", "# P\n\nmine\n", visibility="private")
    listed = listed_docs(home, ALL, "active", 0, ADA)
    open_ones = {docs[name].doc_id for name in ("new", "plain", "waiting")}
    assert {row.doc_id for row in listed.docs} == open_ones
    assert listed.total == len(open_ones)
    statuses = ("superseded", "tombstoned", "all")
    for status in statuses:
        with pytest.raises(UsageError):
            listed_docs(home, ALL, status, 0, ADA)


def test_an_entry_that_is_hidden_is_not_referred_to(home: ToolsHome) -> None:
    """Others see the id that an entry itself names, as one that nothing has; and no referrer."""
    seen = entry(home, "z1", references=("z2",), visibility="public")
    entry(home, "z2", references=("z1",), visibility="private")
    mine, theirs = shown_of(home, "z1", OPERATOR), shown_of(home, seen.doc_id, ADA)
    assert isinstance(mine, WholeDoc)
    assert isinstance(theirs, WholeDoc)
    assert [one.title for one in (*mine.references, *mine.referrers)] == ["z2", "z2"]
    assert [(one.zettel_id, one.doc_id, one.title) for one in theirs.references] == [
        ("z2", None, None)
    ]
    assert theirs.referrers == ()
    with pytest.raises(NotFound):
        shown_of(home, "z2", ADA)


def entry(
    home: ToolsHome, ident: str, *, references: tuple[str, ...], visibility: Visibility
) -> Doc:
    meta = EntryMeta(zettel_id=ident, entry_type="note", version="1.0.0", references=references)
    request = msgspec.structs.replace(
        home.request(f"{ident}.md", f"# {ident}\n\ntext\n"),
        lsid=entry_lsid(ident),
        kind="entry",
        ingest_options=IngestOptions(entry=meta, visibility=visibility),
    )
    doc = home.doc(home.commit(home.ingestor.stage(request)))
    assert doc is not None
    return doc
