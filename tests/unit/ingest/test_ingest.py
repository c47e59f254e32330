"""Taking in: one transaction, all of it or none."""

import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from homes import SmallHome

from kb.intake.ingest.changes import set_visibility, tombstone
from kb.intake.ingest.ingest import Ingestor
from kb.intake.ingest.request import IngestOptions, IngestOutcome
from kb.model.doc import Doc
from kb.model.ids import Lsid, doc_id
from kb.store import docs
from kb.store.keys import lsid_key
from kb.store.records import JOBS, LEDGER, SEEN

TABLES = ("docs", "versions", "ledger", "jobs", "seen")


@pytest.fixture
def home(tmp_path: Path) -> Iterator[SmallHome]:
    home = SmallHome(tmp_path / "home")
    yield home
    home.close()


def give(home: SmallHome, text: str = "# Tea\n\nwords", **ingest_options: object) -> IngestOutcome:
    """Take `text` in as one file, wished for so."""
    asked = IngestOptions(**ingest_options)  # type: ignore[arg-type]
    request = msgspec.structs.replace(home.request("a.md", text), ingest_options=asked)
    return home.ingestor.commit([home.ingestor.stage(request)])[0]


def the_doc(home: SmallHome, outcome: IngestOutcome) -> Doc:
    doc = home.doc(outcome.doc_id)
    assert doc is not None
    return doc


def test_fresh_ingest_writes_all_tables(home: SmallHome) -> None:
    """Doc, version pointer, ledger entry, job and seen record are there together."""
    outcome = give(home)
    assert outcome.status == "added"
    assert {table: home.count(table) for table in TABLES} == dict.fromkeys(TABLES, 1)
    doc = the_doc(home, outcome)
    with home.store.read() as txn:
        entry = LEDGER.get(txn, doc.doc_id.encode())
        seen = SEEN.get(txn, lsid_key(doc.lsid))
        (job,) = [job for _, job in JOBS.scan(txn)]
        assert docs.latest_of(txn, doc.lsid) == doc
    assert entry is not None
    assert (entry.state, set(entry.new_paths)) == ("pending", {doc.raw_path, doc.md_path})
    assert seen is not None
    assert seen.doc_id == doc.doc_id
    assert (job.kind, job.state, job.doc_id) == ("chunk", "ready", doc.doc_id)
    assert home.files() == {doc.raw_path, doc.md_path}


def test_a_crash_before_the_commit_leaves_files_and_no_row(
    home: SmallHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What fails inside the transaction leaves none of its rows; the staged files stay."""

    def crash(name: str) -> None:
        if name == "ingest.before_commit":
            raise RuntimeError(name)

    monkeypatch.setattr("kb.intake.ingest.ingest.failpoint", crash)
    with pytest.raises(RuntimeError):
        give(home)
    assert {table: home.count(table) for table in TABLES} == dict.fromkeys(TABLES, 0)
    assert len(home.files()) == 2
    monkeypatch.undo()
    assert give(home).status == "added"


def test_one_bad_item_keeps_the_whole_batch_out(
    home: SmallHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A batch is one transaction: if its last item fails, its first is not there either."""
    batch = [home.stage(f"{n}.md", f"note {n}") for n in range(3)]
    whole = Ingestor._put_seen
    calls: list[object] = []

    def put_seen(*args: object) -> None:
        calls.append(args)
        if len(calls) == 3:
            raise RuntimeError
        whole(*args)  # type: ignore[arg-type]

    monkeypatch.setattr(Ingestor, "_put_seen", put_seen)
    with pytest.raises(RuntimeError):
        home.ingestor.commit(batch)
    assert home.count("docs") == 0


def test_concurrent_ingest_of_the_same_bytes_makes_one_doc(home: SmallHome) -> None:
    """Of eight callers with the same bytes one adds, and seven are told that it is there."""
    staged = [home.stage("a.md", "# Tea\n\nwords") for _ in range(8)]
    start = threading.Barrier(8)
    outcomes: list[IngestOutcome] = []

    def commit(which: int) -> None:
        start.wait()
        outcomes.extend(home.ingestor.commit([staged[which]]))

    threads = [threading.Thread(target=commit, args=(which,)) for which in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(outcome.status for outcome in outcomes) == ["added"] + ["unchanged"] * 7
    assert len({outcome.doc_id for outcome in outcomes}) == 1
    assert (home.count("docs"), home.count("jobs")) == (1, 1)


def test_concurrent_edits_get_versions_without_gaps(home: SmallHome) -> None:
    """Eight edits at once become versions 1 to 8; the last of them is the newest."""
    staged = [home.stage("a.md", f"# Tea\n\nedit {n}") for n in range(8)]
    threads = [
        threading.Thread(target=home.ingestor.commit, args=([one],), name=str(n))
        for n, one in enumerate(staged)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    with home.store.read() as txn:
        versions = sorted((doc.version, doc.status) for doc in docs.all_docs(txn))
    assert versions == [(n, "superseded") for n in range(1, 8)] + [(8, "active")]


def test_no_op(home: SmallHome) -> None:
    """The same bytes again write no version, no job and no second doc."""
    first = give(home)
    home.work()
    before = the_doc(home, first)
    again = give(home)
    assert again == IngestOutcome(doc_id=first.doc_id, status="unchanged")
    assert the_doc(home, again) == before
    assert (home.count("docs"), home.count("jobs")) == (1, 0)


def test_a_new_version_supersedes_the_old_one(home: SmallHome) -> None:
    """An edit makes version 2; version 1 stays, superseded, until compaction."""
    first, second = give(home, "# Tea\n\none"), give(home, "# Tea\n\ntwo")
    assert second.status == "updated"
    lsid = Lsid("file:///notes/a.md")
    assert (first.doc_id, second.doc_id) == (doc_id(lsid, 1), doc_id(lsid, 2))
    assert the_doc(home, first).status == "superseded"
    assert (the_doc(home, second).version, the_doc(home, second).status) == (2, "active")
    with home.store.read() as txn:
        assert list(docs.versions(txn, the_doc(home, second).source_no)) == [
            first.doc_id,
            second.doc_id,
        ]


def test_going_back_to_old_bytes_is_a_new_version(home: SmallHome) -> None:
    """Versions only go up: the bytes of version 1 again are version 3."""
    for text in ("one", "two", "one"):
        outcome = give(home, text)
    assert the_doc(home, outcome).version == 3


def test_same_bytes_at_another_place_are_another_doc(home: SmallHome) -> None:
    """Two files with equal bytes are two docs over one raw file."""
    one, two = home.put("a.md", "words"), home.put("b.md", "words")
    assert one.doc_id != two.doc_id
    assert one.raw_path == two.raw_path


def test_wishes_merge(home: SmallHome) -> None:
    """What is said is kept until something else is said; what the source says comes with it."""
    text = "---\ntags: [own]\ntitle: Own\n---\nwords"
    doc = the_doc(home, give(home, text))
    assert (doc.title, doc.tags, doc.visibility, doc.owner) == ("Own", ("own",), "private", "local")
    doc = the_doc(home, give(home, text, title="Given", tags=("x",), visibility="shared"))
    assert (doc.title, doc.tags, doc.visibility) == ("Given", ("own", "x"), "shared")
    kept = the_doc(home, give(home, text))
    assert kept == doc
    edited = the_doc(home, give(home, text + " more"))
    assert (edited.title, edited.tags, edited.visibility) == ("Given", ("own", "x"), "shared")
    assert edited.version == 2
    bare = the_doc(home, give(home, text + " more", tags=(), visibility="public", owner="ann"))
    assert (bare.tags, bare.visibility, bare.owner, bare.version) == (("own",), "public", "ann", 2)


def test_a_new_title_is_cut_and_embedded_anew(home: SmallHome) -> None:
    """A title stands in front of every passage, so a new one is work."""
    give(home)
    home.work()
    assert give(home, title="Chai").status == "updated"
    assert home.count("jobs") == 1
    assert home.count("docs") == 1


@pytest.mark.parametrize("ingest_options", [{}, {"tags": ("x",)}], ids=str)
def test_a_tombstoned_doc_comes_back(home: SmallHome, ingest_options: dict[str, object]) -> None:
    """The same bytes within the time bring the doc back, under its id and version."""
    first = give(home)
    home.work()
    assert home.found("words") == [1]
    assert tombstone(home.store, [first.doc_id]) == [first.doc_id]
    assert tombstone(home.store, [first.doc_id]) == []
    assert home.found("words") == []
    back = give(home, **ingest_options)
    assert back == IngestOutcome(doc_id=first.doc_id, status="resurrected")
    assert the_doc(home, back).status == "active"
    assert home.found("words") == [1]


def test_other_bytes_after_removal_are_a_new_version(home: SmallHome) -> None:
    """A removed source that comes back changed is its next version, and active."""
    first = give(home)
    tombstone(home.store, [first.doc_id])
    second = give(home, "other words")
    assert second.status == "updated"
    assert (the_doc(home, second).version, the_doc(home, second).status) == (2, "active")
    assert the_doc(home, first).status == "tombstoned"


def test_removal_by_an_old_id_removes_the_source(home: SmallHome) -> None:
    """Whichever version is named, it is the newest that is hidden."""
    first, second = give(home, "one"), give(home, "two")
    assert tombstone(home.store, [first.doc_id]) == [second.doc_id]
    assert the_doc(home, second).status == "tombstoned"


def test_visibility_is_set_on_the_newest(home: SmallHome) -> None:
    """Who may see it is said of the source as it is now; of a removed one nothing is said."""
    first, second = give(home, "one"), give(home, "two")
    changed = set_visibility(home.store, first.doc_id, "public")
    assert changed is not None
    assert (changed.doc_id, changed.visibility) == (second.doc_id, "public")
    tombstone(home.store, [second.doc_id])
    assert set_visibility(home.store, second.doc_id, "private") is None


def test_a_staged_file_that_was_swept_is_written_again(home: SmallHome) -> None:
    """Between staging and commit a sweep may take the files: the commit sees to it."""
    staged = home.stage("a.md", "# Tea\n\nwords")
    for name in home.files():
        home.file(name).unlink()
    doc = home.doc(home.commit(staged))
    assert doc is not None
    assert home.files() == {doc.raw_path, doc.md_path}
