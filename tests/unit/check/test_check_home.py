"""What a check says of a sound home, of work under way, and of each kind of damage."""

from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import numpy as np
import pytest
from homes import SmallHome

from kb.intake.ingest.changes import set_visibility, tombstone
from kb.model.doc import Doc
from kb.model.ids import Lsid
from kb.model.source import file_lsid
from kb.store import chunks, docs
from kb.store.codec import u64
from kb.store.content.lock import file_lock
from kb.store.jobs import queue
from kb.store.kv import ReadTxn, WriteTxn
from kb.store.records import CHUNKS, DOCS, LEDGER, META, StoredValue
from kb.upkeep.check import CheckCounts, Finding

TEA = "# Tea\n\nGreen tea is steeped, see #tea and https://tea.example/.\n\n## Black\n\nBoiled.\n"


@pytest.fixture
def home(tmp_path: Path) -> Iterator[SmallHome]:
    home = SmallHome(tmp_path / "home")
    yield home
    home.close()


@pytest.fixture
def full(home: SmallHome) -> SmallHome:
    """A home with two docs, everything done, both caches level."""
    home.add("tea.md", TEA)
    home.add("coffee.md", "# Coffee\n\nIt is roasted, says @ann.")
    assert home.check().findings == ()
    return home


def tea(txn: ReadTxn) -> Doc:
    doc = docs.latest_of(txn, Lsid("file:///notes/tea.md"))
    assert doc is not None
    return doc


def only_problems(home: SmallHome) -> list[str]:
    return [finding.problem for finding in home.check().findings]


def test_empty_home_is_sound(home: SmallHome) -> None:
    """Nothing is there, and nothing is wrong."""
    report = home.check()
    assert (report.sound, report.findings, report.checked) == (True, (), CheckCounts())


def test_sound_home_is_counted(full: SmallHome) -> None:
    """The report says how much was looked at."""
    assert full.check().checked == CheckCounts(
        docs=2,
        sources=2,
        ledger=2,
        chunks=2,
        vectors=2,
        entities=3,
        log=4,
        files=4,
        lexical_rows=2,
        dense_rows=2,
    )


def test_work_under_way_is_no_finding(home: SmallHome) -> None:
    """At no point between an add and its last job is there a finding."""
    home.put("tea.md", TEA)
    assert only_problems(home) == []
    home.work("chunk")
    assert only_problems(home) == []
    with home.store.write() as txn:
        claim = queue.claim(txn, home.clock, ("embed",), limit=1, lease_ms=1)[0]
    assert only_problems(home) == []
    with home.store.write() as txn:
        queue.fail(txn, home.clock, claim, "no", permanent=True)
    assert only_problems(home) == []
    assert home.check().checked.jobs == 1


def test_update_rename_and_tombstone_are_no_findings(full: SmallHome) -> None:
    """Edits, other titles, deletion and return leave a home sound at every step."""
    steps: list[Callable[[], object]] = [
        lambda: full.put("tea.md", "# Tea\n\nOnly black tea."),
        lambda: full.work("chunk"),
        full.work,
        lambda: full.put("tea.md", "# Tea\n\nOnly black tea.", title="Chai"),
        lambda: full.work("chunk"),
        full.work,
        lambda: full.compact(grace_min=0),
        lambda: set_visibility(full.store, full.add("x.md", "Ex.").doc_id, "public"),
        lambda: tombstone(full.store, [full.add("x.md", "Ex two.").doc_id]),
        lambda: full.compact(grace_min=0),
        lambda: full.add("x.md", "Ex two."),
        lambda: tombstone(full.store, [full.add("x.md", "Ex two.").doc_id]),
        lambda: full.compact(grace_min=0, tombstone_days=0),
    ]
    for step in steps:
        step()
        assert only_problems(full) == []


def test_check_changes_no_record(full: SmallHome) -> None:
    """Without repair a damaged store is left as it is."""
    with full.store.write() as txn:
        txn.put("facets", b"tag\0odd\0" + u64(9), b"")
    with full.store.read() as txn:
        before = {table: list(txn.scan(table)) for table in ("facets", "jobs", "meta", "log")}
    assert not full.check().sound
    with full.store.read() as txn:
        assert {table: list(txn.scan(table)) for table in before} == before


Damage = Callable[[WriteTxn], None]


def flip(table: str, nth: int = 0) -> Damage:
    """Change one byte at the end of a table's nth record."""

    def damage(txn: WriteTxn) -> None:
        key, stored = list(txn.scan(table))[nth]
        txn.put(table, key, stored[:-1] + bytes([stored[-1] ^ 1]))

    return damage


def lose(table: str, nth: int = 0) -> Damage:
    """Remove a table's nth record."""

    def damage(txn: WriteTxn) -> None:
        txn.delete(table, list(txn.scan(table))[nth][0])

    return damage


def _edit_chunk(txn: WriteTxn, **changes: object) -> None:
    key, chunk = next(iter(CHUNKS.scan(txn)))
    CHUNKS.put(txn, key, msgspec.structs.replace(chunk, **changes))


def _strange_passage(txn: WriteTxn) -> None:
    _, chunk = next(iter(CHUNKS.scan(txn)))
    CHUNKS.put(txn, u64(3), msgspec.structs.replace(chunk, no=3, chunk_id="c00", ordinal=0))
    META.put(txn, b"counter:chunk", StoredValue(number=3))


def _passage_of_nobody(txn: WriteTxn) -> None:
    _, chunk = next(iter(CHUNKS.scan(txn)))
    lost = msgspec.structs.replace(chunk, no=3, chunk_id="c00", source_no=77)
    CHUNKS.put(txn, u64(3), lost)
    META.put(txn, b"counter:chunk", StoredValue(number=3))


def _pending_without_job(txn: WriteTxn) -> None:
    entry = LEDGER.get(txn, tea(txn).doc_id.encode())
    assert entry is not None
    pending = msgspec.structs.replace(entry, state="pending")
    LEDGER.put(txn, entry.doc_id.encode(), pending)


def _bad_vector(vector: list[float]) -> Damage:
    def damage(txn: WriteTxn) -> None:
        chunk = chunks.of_source(txn, tea(txn).source_no)[0]
        chunks.put_vector(txn, "hashing:64", chunk.text_hash, np.array(vector, dtype=np.float32))

    return damage


def _active_old_version(txn: WriteTxn) -> None:
    doc = tea(txn)
    old = msgspec.structs.replace(doc, doc_id=docs.DocId("d00"), version=0)
    DOCS.put(txn, b"d00", old)


def _counter_too_low(txn: WriteTxn) -> None:
    META.put(txn, b"counter:chunk", StoredValue(number=1))


DAMAGES: dict[str, tuple[Damage, str]] = {
    "versions flipped": (flip("versions"), "checksum"),
    "versions lost": (lose("versions"), "does not lead to it"),
    "source_docs flipped": (flip("source_docs"), "checksum"),
    "source_docs lost": (lose("source_docs"), "not among its source's versions"),
    "lsids flipped": (flip("lsids"), "checksum"),
    "lsids lost": (lose("lsids"), "its source has no name"),
    "facets lost": (lose("facets"), "facets are missing"),
    "facets odd": (lambda txn: txn.put("facets", b"tag\0x\0" + u64(1), b""), "a facet that no"),
    "seen flipped": (flip("seen"), "checksum"),
    "ledger flipped": (flip("ledger"), "checksum"),
    "ledger lost": (lose("ledger"), "no ledger entry"),
    "pending without job": (_pending_without_job, "waits for a job"),
    "old version active": (_active_old_version, "a newer version does not replace it"),
    "chunk flipped": (flip("chunks"), "checksum"),
    "chunk lost": (lose("chunks"), "passage 0 is missing"),
    "chunk with another's place": (_strange_passage, "another passage has its place"),
    "chunk of nobody": (_passage_of_nobody, "a passage of a source that does not exist"),
    "chunk text": (lambda txn: _edit_chunk(txn, text="Other."), "is not what was hashed"),
    "chunk offset": (lambda txn: _edit_chunk(txn, start=3), "is not at its place in the markdown"),
    "chunk of old version": (
        lambda txn: _edit_chunk(txn, doc_id="d00"),
        "of a version that was replaced",
    ),
    "chunk_ids flipped": (flip("chunk_ids"), "checksum"),
    "chunk_ids lost": (lose("chunk_ids"), "does not lead to it"),
    "source_chunks flipped": (flip("source_chunks"), "checksum"),
    "source_chunks lost": (lose("source_chunks"), "does not lead to it"),
    "entities flipped": (flip("entities"), "checksum"),
    "entities lost": (lose("entities"), "an entity does not lead to it"),
    "edge lost": (lose("entity_chunks"), "an entity does not lead to it"),
    "edge odd": (
        lambda txn: txn.put("entity_chunks", b"mention:bob\0" + u64(1), b""),
        "an entity of a passage that does not exist",
    ),
    "vector flipped": (flip("vectors"), "checksum"),
    "vector lost": (lose("vectors"), "a passage without a vector"),
    "vector NaN": (_bad_vector([float("nan")] * 64), "not a vector of length 1"),
    "vector long": (_bad_vector([1.0] * 64), "not a vector of length 1"),
    "vector short": (_bad_vector([1.0] * 8), "32 bytes, not 256"),
    "log flipped": (flip("log", 3), "checksum"),
    "counter flipped": (flip("meta", 0), "cannot be read"),
    "counter low": (_counter_too_low, "below 2, which is in use"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_damage_is_found_and_mended(full: SmallHome, name: str) -> None:
    """Each kind of damage has its finding; a repair and the worker make the home whole."""
    damage, problem = DAMAGES[name]
    with full.store.write() as txn:
        damage(txn)
    report = full.check()
    assert not report.sound
    assert any(problem in finding.problem for finding in report.findings)
    assert all(finding.mend and not finding.repaired for finding in report.findings)
    repaired = full.check(repair=True)
    assert [finding for finding in repaired.findings if not finding.repaired] == []
    assert repaired.sound
    full.work()
    assert full.check().findings == ()
    assert (full.found("steeped"), full.found("roasted")) == ([1], [2])
    assert (full.count("vectors"), full.count("jobs")) == (2, 0)


def _unlisted(txn: WriteTxn) -> None:
    for key in [key for key, _ in txn.scan("jobs_ready")]:
        txn.delete("jobs_ready", key)


JOB_DAMAGES: dict[str, tuple[Damage, str]] = {
    "job flipped": (flip("jobs"), "checksum"),
    "job lost": (lose("jobs"), "a list names a job that does not exist"),
    "job unlisted": (_unlisted, "is not among the ready jobs"),
    "list flipped": (flip("jobs_ready"), "checksum"),
    "dedupe lost": (lose("jobs_dedupe"), "dedupe key does not lead to it"),
    "dedupe flipped": (flip("jobs_dedupe"), "checksum"),
}


@pytest.mark.parametrize("name", JOB_DAMAGES)
def test_damaged_jobs_are_found_and_mended(full: SmallHome, name: str) -> None:
    """A job that is damaged or stands in the wrong list is done after a repair all the same."""
    damage, problem = JOB_DAMAGES[name]
    full.put("tea.md", "# Tea\n\nOnly black tea.")
    with full.store.write() as txn:
        damage(txn)
    assert any(problem in finding.problem for finding in full.check().findings)
    assert full.check(repair=True).sound
    full.work()
    assert full.check().findings == ()
    assert full.found("only") == [1]


def test_lost_doc_is_told_and_left(full: SmallHome) -> None:
    """A doc's own record is said nowhere else: the finding sends the person to a backup."""
    with full.store.write() as txn:
        doc = tea(txn)
        flip("docs", [key for key, _ in txn.scan("docs")].index(doc.doc_id.encode()))(txn)
    report = full.check(repair=True)
    assert not report.sound
    left = [finding for finding in report.findings if not finding.repaired]
    assert [finding.mend for finding in left] == ["restore the home from a backup"]
    assert full.found("roasted") == [2]


@pytest.mark.parametrize("how", ["truncated", "flipped", "deleted"])
def test_markdown_is_made_again_from_raw(full: SmallHome, how: str) -> None:
    """A damaged markdown file is replaced when the raw bytes give the recorded one."""
    with full.store.read() as txn:
        doc = tea(txn)
    _damage_file(full.file(doc.md_path), how)
    report = full.check()
    assert [finding.place for finding in report.findings] == [doc.md_path]
    assert full.check(repair=True).sound
    assert full.check().findings == ()
    full.content.read(doc.md_path, doc.md_sha256)


def _damage_file(path: Path, how: str) -> None:
    content = path.read_bytes()
    path.unlink()
    if how == "truncated":
        path.write_bytes(content[:-1])
    elif how == "flipped":
        path.write_bytes(bytes([content[0] ^ 1]) + content[1:])


def test_raw_is_taken_from_its_source_or_told(home: SmallHome, tmp_path: Path) -> None:
    """Damaged raw bytes come back from an unchanged source; from a changed one they do not."""
    source = tmp_path / "tea.md"
    source.write_text(TEA)
    request = msgspec.structs.replace(home.request("tea.md", TEA), lsid=file_lsid(source))
    doc = home.doc(home.commit(home.ingestor.stage(request)))
    home.work()
    assert doc is not None
    raw = home.file(doc.raw_path)
    _damage_file(raw, "flipped")
    _damage_file(home.file(doc.md_path), "deleted")
    assert home.check(repair=True).sound
    assert raw.read_bytes() == TEA.encode()
    _damage_file(raw, "flipped")
    source.write_text("Something else.")
    report = home.check(repair=True)
    assert [(f.place, f.repaired) for f in report.findings] == [(doc.raw_path, False)]
    assert "if not, restore it" in report.findings[0].mend


def _damage_cache(folder: Path, how: str) -> None:
    files = [p for p in folder.rglob("*") if p.is_file() and p.name != "manifest.json"]
    _damage_file(max(files, key=lambda path: path.stat().st_size), how)


@pytest.mark.parametrize("cache", ["lexical", "dense"])
@pytest.mark.parametrize("how", ["truncated", "flipped", "deleted"])
def test_damaged_cache_is_found_and_rebuilt(full: SmallHome, cache: str, how: str) -> None:
    """A cache whose files are not as written is a finding, and is rebuilt by a repair."""
    _damage_cache(full.paths.index / cache, how)
    assert {finding.place for finding in full.check().findings} == {cache}
    assert full.check(repair=True).sound
    assert full.check().findings == ()
    assert full.found("steeped") == [1]


def test_cache_that_misses_a_row_is_found(full: SmallHome) -> None:
    """Caches that never heard of a change hold other rows than the store, and are rebuilt."""
    with full.store.write() as txn:
        doc = tea(txn)
        docs.replace(txn, msgspec.structs.replace(doc, status="tombstoned"))
    findings = full.check().findings
    assert [finding.problem for finding in findings] == [
        "lexical: 2 passages, but 1 are live",
        "dense: 2 vectors, but 1 are live",
    ]
    assert findings[0] == Finding(
        place="lexical",
        problem="lexical: 2 passages, but 1 are live",
        mend="`kb check --repair` rebuilds the cache",
    )
    assert full.check(repair=True).sound
    assert full.found("steeped") == []


def test_busy_cache_is_told(full: SmallHome, monkeypatch: pytest.MonkeyPatch) -> None:
    """A cache that another process is writing is not called damaged, nor sound."""
    monkeypatch.setattr("kb.upkeep.check.caches.WAIT_S", 0.0)
    with file_lock(full.dense.lock_path, 0.0):
        findings = full.check().findings
    assert [(found.place, found.mend) for found in findings] == [("dense", "run `kb check` again")]
    assert full.check().sound


def test_caches_never_made_are_no_finding(home: SmallHome) -> None:
    """A home that was never searched has no caches; the check makes them."""
    home.add("tea.md", TEA)
    report = home.check()
    assert (report.findings, report.checked.lexical_rows) == ((), 1)


def test_findings_are_bounded(full: SmallHome, monkeypatch: pytest.MonkeyPatch) -> None:
    """Past a number findings are counted, not kept."""
    monkeypatch.setattr("kb.upkeep.check.collector.FINDINGS_MAX", 3)
    with full.store.write() as txn:
        for number in range(10):
            txn.put("facets", b"tag\0x\0" + u64(100 + number), b"")
    report = full.check()
    assert (len(report.findings), report.findings_left_out, report.sound) == (3, 7, False)
    assert full.check(repair=True).sound
