"""What the compactor does with old versions, tombstones and vectors."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from homes import DAY_MIN, SmallHome

from kb.intake.ingest.changes import tombstone, tombstone_missing, was_removed
from kb.intake.ingest.ingest import seen_record
from kb.intake.worker.chunking import ChunkHandler
from kb.model.doc import LedgerEntry
from kb.model.ids import Lsid, SourceNo
from kb.store import chunks, docs
from kb.store.jobs import queue
from kb.store.records import LEDGER
from kb.upkeep.compactor import CompactReport, vectors

NOTHING = CompactReport()


@pytest.fixture
def home(tmp_path: Path) -> Iterator[SmallHome]:
    home = SmallHome(tmp_path / "home")
    yield home
    home.close()


def ledger(home: SmallHome) -> dict[str, str]:
    with home.store.read() as txn:
        return {entry.doc_id: entry.state for _, entry in LEDGER.scan(txn)}


def test_indexed_doc_is_done_and_stays(home: SmallHome) -> None:
    """A doc that was indexed comes to `done` and is found as before; its files stay."""
    doc = home.add("a.md", "# Tea\n\nGreen tea is steeped, see #tea.")
    report = home.compact()
    assert (report.ledger_advanced, report.versions_removed) == (1, 0)
    assert ledger(home) == {doc.doc_id: "done"}
    assert home.files() == {doc.raw_path, doc.md_path}
    assert home.found("steeped") == [doc.source_no]


def test_second_run_frees_nothing(home: SmallHome) -> None:
    """A run right after another one does nothing at all."""
    home.add("a.md", "# Tea\n\nGreen tea is steeped.")
    home.add("a.md", "# Tea\n\nBlack tea is boiled.")
    tombstone(home.store, [home.add("b.md", "Coffee.").doc_id])
    home.compact(grace_min=0)
    home.compact(grace_min=0)
    home.wait_min(31 * DAY_MIN)
    home.compact(grace_min=0)
    home.compact(grace_min=0)
    assert home.compact(grace_min=0) == NOTHING


def test_new_version_frees_the_old(home: SmallHome) -> None:
    """The old version's record goes when the new one is indexed, its files a grace later."""
    old = home.add("a.md", "# Tea\n\nGreen tea is steeped.")
    new = home.add("a.md", "# Tea\n\nBlack tea is boiled.")
    first = home.compact()
    assert (first.versions_removed, first.files_marked, first.files_removed) == (1, 2, 0)
    assert first.vectors_removed == 1
    assert home.doc(old.doc_id) is None
    assert ledger(home) == {new.doc_id: "done"}
    assert home.files() == {old.raw_path, old.md_path, new.raw_path, new.md_path}
    home.wait_min(59)
    home.compact()
    home.wait_min(1)
    second = home.compact()
    assert (second.files_marked, second.files_removed) == (0, 2)
    assert second.bytes_freed > 0
    assert home.files() == {new.raw_path, new.md_path}
    assert home.found("boiled") == [new.source_no]


def test_old_version_stays_until_new_is_indexed(home: SmallHome) -> None:
    """While the new version waits for its jobs, nothing of the old one is taken."""
    old = home.add("a.md", "# Tea\n\nGreen tea is steeped.")
    home.put("a.md", "# Tea\n\nBlack tea is boiled.")
    for _ in range(2):
        report = home.compact(grace_min=0)
        assert (report.versions_removed, report.files_marked, report.files_removed) == (0, 0, 0)
    assert home.doc(old.doc_id) is not None
    assert home.found("steeped") == [old.source_no]


def test_unchanged_is_still_known_after_versions_went(home: SmallHome) -> None:
    """A seen record that names a removed version is no mistake: the file is read again."""
    old = home.add("a.md", "Green tea.")
    home.clock.advance(10_000)
    request = home.request("a.md", "Green tea.")
    assert request.stamp is not None
    home.add("a.md", "Black tea.")
    seen = seen_record(request.lsid, old.doc_id, request.raw_sha256, request.stamp)
    home.ingestor.refresh_seen([seen])
    home.compact()
    with home.store.read() as txn:
        known = home.ingestor.unchanged(
            txn, request.lsid, request.stamp, request.ingest_options, request.canonicalizer
        )
    assert known is None


def test_many_versions_go_in_bounded_transactions(
    home: SmallHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More versions than a transaction takes are all removed."""
    monkeypatch.setattr("kb.upkeep.compactor.versions.RECORDS_PER_TXN", 2)
    for name in ("a.md", "b.md", "c.md"):
        for number in range(5):
            home.put(name, f"{name} says {number}.")
    home.work()
    assert home.compact().versions_removed == 12
    assert (home.count("docs"), home.count("ledger"), home.count("jobs")) == (3, 3, 0)


def test_jobs_of_removed_versions_go(home: SmallHome) -> None:
    """A failed job of a version that is no more does not stay among the dead letters."""
    old = home.put("a.md", "Green tea.")
    with home.store.write() as txn:
        claim = queue.claim(txn, home.clock, ("chunk",), limit=1, lease_ms=1000)[0]
        queue.fail(txn, home.clock, claim, "no", permanent=True)
    home.add("a.md", "Black tea.")
    assert home.count("jobs_failed") == 1
    home.compact()
    assert (home.count("jobs_failed"), home.count("jobs"), home.doc(old.doc_id)) == (0, 0, None)


def test_tombstone_is_purged_after_its_days(home: SmallHome) -> None:
    """A deleted doc stays 30 days; then nothing of it is left but numbers not used again."""
    kept = home.add("b.md", "# Coffee\n\nIt is roasted.")
    doc = home.add("a.md", "# Tea\n\nGreen tea #tea https://tea.example/")
    tombstone(home.store, [doc.doc_id])
    home.wait_min(29 * DAY_MIN)
    assert [home.compact().docs_purged for _ in range(2)] == [0, 0]
    home.wait_min(1 * DAY_MIN)
    report = home.compact()
    assert (report.docs_purged, report.vectors_removed, report.files_marked) == (1, 1, 2)
    home.wait_min(60)
    assert [home.compact().files_removed for _ in range(2)] == [0, 2]
    tables = ("docs", "versions", "source_docs", "lsids", "seen", "ledger", "chunks", "chunk_ids")
    assert {table: home.count(table) for table in tables} == dict.fromkeys(tables, 1)
    rest = ("entities", "entity_chunks", "jobs", "jobs_dedupe", "orphans")
    assert {table: home.count(table) for table in rest} == dict.fromkeys(rest, 0)
    assert home.files() == {kept.raw_path, kept.md_path}
    again = home.add("a.md", "# Tea\n\nGreen tea #tea https://tea.example/")
    assert (again.version, again.source_no) == (1, SourceNo(3))
    assert home.found("green") == [again.source_no]


def test_a_clock_that_is_wrong_purges_nothing(home: SmallHome) -> None:
    """What was hidden a moment ago stays, whatever the clock says, for two compactions."""
    doc = home.add("a.md", "# Tea\n\nGreen tea.")
    tombstone(home.store, [doc.doc_id])
    home.clock.jump(10 * 365 * DAY_MIN * 60_000)
    assert [home.compact().docs_purged for _ in range(3)] == [0, 0, 1]


def test_what_a_person_removed_is_held_when_it_is_purged(home: SmallHome) -> None:
    """Its place is held; nothing but an add of the file ends that."""
    doc = home.add("a.md", "# Tea\n\nGreen tea.")
    tombstone(home.store, [doc.doc_id])
    assert home.compact(tombstone_days=0).docs_purged == 1
    with home.store.read() as txn:
        assert (home.count("holds"), was_removed(txn, doc.place)) == (1, True)
    home.add("a.md", "# Tea\n\nGreen tea.")
    with home.store.read() as txn:
        assert (home.count("holds"), was_removed(txn, doc.place)) == (0, False)


def test_what_went_with_its_file_is_not_held(home: SmallHome) -> None:
    """A doc whose file was deleted comes in again with its file."""
    doc = home.add("a.md", "# Tea\n\nGreen tea.")
    tombstone_missing(home.store, [doc.doc_id])
    assert home.compact(tombstone_days=0).docs_purged == 1
    assert home.count("holds") == 0


def test_resurrected_doc_is_not_purged(home: SmallHome) -> None:
    """A doc that came back within its days is as it was, without new passages or vectors."""
    doc = home.add("a.md", "# Tea\n\nGreen tea.")
    tombstone(home.store, [doc.doc_id])
    home.wait_min(29 * DAY_MIN)
    home.compact()
    assert home.found("green") == []
    home.add("a.md", "# Tea\n\nGreen tea.")
    home.wait_min(2 * DAY_MIN)
    report = home.compact()
    assert (report.docs_purged, report.vectors_removed, report.files_marked) == (0, 0, 0)
    assert home.found("green") == [doc.source_no]


def test_purge_takes_a_held_job_from_its_worker(home: SmallHome) -> None:
    """A worker that holds a job of a purged doc writes nothing of it."""
    doc = home.put("a.md", "# Tea\n\nGreen tea.")
    with home.store.write() as txn:
        claims = queue.claim(txn, home.clock, ("chunk",), limit=1, lease_ms=1000)
    tombstone(home.store, [doc.doc_id])
    home.compact(tombstone_days=0)
    ChunkHandler(home.store, home.content, lambda: home.embedder, 64, 8).work(claims)
    assert (home.count("chunks"), home.count("jobs"), home.count("docs")) == (0, 0, 0)


def test_vectors_of_any_model_go_with_their_text(home: SmallHome) -> None:
    """A vector goes with the last passage of its text, under whatever model it was made."""
    one = home.add("a.md", "# Tea\n\nGreen tea.")
    home.add("b.md", "# Tea\n\nGreen tea.")
    with home.store.write() as txn:
        chunk = chunks.of_source(txn, one.source_no)[0]
        vector = chunks.get_vector(txn, home.embedder.fingerprint, chunk.text_hash, 64)
        assert vector is not None
        chunks.put_vector(txn, "another", chunk.text_hash, vector)
    assert home.count("vectors") == 2
    home.add("a.md", "# Tea\n\nBlack tea.")
    assert home.compact().vectors_removed == 0
    home.add("b.md", "# Tea\n\nBlack tea.")
    assert home.compact().vectors_removed == 2
    assert home.count("vectors") == 1


def test_vector_taken_up_meanwhile_stays(home: SmallHome, monkeypatch: pytest.MonkeyPatch) -> None:
    """A passage that comes back between the look and the removal keeps its vector."""
    home.add("a.md", "# Tea\n\nGreen tea.")
    home.add("a.md", "# Tea\n\nBlack tea.")
    home_add = [lambda: home.add("a.md", "# Tea\n\nGreen tea.")]
    whole = vectors.islice

    def late(*arguments: object) -> object:
        while home_add:
            home_add.pop()()
        return whole(*arguments)

    monkeypatch.setattr(vectors, "islice", late)
    assert vectors.remove_unused(home.store, frozenset(), None, dry_run=False) == 0
    with home.store.read() as txn:
        chunk = chunks.of_source(txn, SourceNo(1))[0]
        assert chunks.has_vector(txn, home.embedder.fingerprint, chunk.text_hash)


def test_hashes_are_gone_over_in_passes(home: SmallHome, monkeypatch: pytest.MonkeyPatch) -> None:
    """A store of more passages than fit in memory loses the same vectors."""
    monkeypatch.setattr("kb.upkeep.compactor.vectors.HASHES_MAX", 2)
    for number in range(8):
        home.add(f"{number}.md", f"Note {number} of tea.")
    for number in range(8):
        home.add(f"{number}.md", f"Note {number} of coffee.")
    assert home.compact().vectors_removed == 8
    assert home.count("vectors") == 8


def test_dry_run_changes_nothing_and_foretells(home: SmallHome) -> None:
    """What a dry run says is what the next run does, and it leaves every record alone."""
    home.add("a.md", "# Tea\n\nGreen tea is steeped.")
    home.add("a.md", "# Tea\n\nBlack tea is boiled.")
    tombstone(home.store, [home.add("b.md", "Coffee.").doc_id])
    home.wait_min(31 * DAY_MIN)
    with home.store.read() as txn:
        before = {table: list(txn.scan(table)) for table in ("docs", "ledger", "vectors", "log")}
    said = home.compact(dry_run=True)
    with home.store.read() as txn:
        assert {table: list(txn.scan(table)) for table in before} == before
    assert (home.count("orphans"), home.paths.index.joinpath("lexical").exists()) == (0, False)
    did = home.compact()
    assert did.log_entries_removed >= said.log_entries_removed > 0
    assert said == msgspec.structs.replace(
        did, dry_run=True, log_entries_removed=said.log_entries_removed
    )


def test_entry_renamed_meanwhile_is_left(home: SmallHome) -> None:
    """A ledger entry that went back to pending is not taken on to `done`."""
    doc = home.add("a.md", "# Tea\n\nGreen tea.")
    home.compact()
    home.put("a.md", "# Tea\n\nGreen tea.", title="Another")
    assert home.compact().ledger_advanced == 0
    assert ledger(home) == {doc.doc_id: "pending"}
    home.work()
    assert home.compact().ledger_advanced == 1


def test_ledger_entry_of_nothing_is_passed_over(home: SmallHome) -> None:
    """An entry whose doc is no more stops nothing."""
    home.add("a.md", "Green tea.")
    with home.store.write() as txn:
        stray = LedgerEntry(
            doc_id=docs.DocId("d0"), state="indexing_complete", new_paths=(), updated_ms=1
        )
        LEDGER.put(txn, b"d0", stray)
    assert home.compact().ledger_advanced == 1
    with home.store.read() as txn:
        assert docs.latest_of(txn, Lsid("file:///notes/a.md")) is not None
