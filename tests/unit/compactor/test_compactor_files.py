"""What the compactor does with files, temporary ones, and the change log."""

import os
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from homes import SmallHome

from kb.errors import StoreBusy, StoreDamaged
from kb.model import failpoints
from kb.store import log
from kb.store.content.lock import file_lock
from kb.store.keys import text_key
from kb.store.records import ORPHANS, Orphan
from kb.upkeep.compactor import CompactReport, orphans


@pytest.fixture
def home(tmp_path: Path) -> Iterator[SmallHome]:
    home = SmallHome(tmp_path / "home")
    yield home
    home.close()


def stray(home: SmallHome, path: str = "md/file/stray.md", text: str = "nobody's") -> Path:
    file = home.file(path)
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)
    return file


def compact_twice(home: SmallHome) -> None:
    for _ in range(2):
        home.compact(grace_min=0)


def counts(report: CompactReport) -> tuple[int, int]:
    return report.files_marked, report.files_removed


def test_first_run_only_marks(home: SmallHome) -> None:
    """Even without grace a file goes no earlier than the run after the one that marked it."""
    file = stray(home)
    assert counts(home.compact(grace_min=0)) == (1, 0)
    assert file.exists()
    report = home.compact(grace_min=0)
    assert (counts(report), report.bytes_freed) == ((0, 1), len("nobody's"))
    assert not file.exists()
    assert home.count("orphans") == 0


def test_marked_file_waits_out_the_grace(home: SmallHome) -> None:
    """Runs within the grace leave a marked file, and do not start its wait anew."""
    stray(home)
    home.compact()
    home.wait_min(59)
    assert counts(home.compact()) == (0, 0)
    home.wait_min(1)
    assert counts(home.compact()) == (0, 1)


def test_clock_set_back_begins_the_wait_anew(home: SmallHome) -> None:
    """A mark from the future neither frees its file at once nor keeps it forever."""
    stray(home)
    home.compact()
    home.clock.jump(-365 * 24 * 3_600_000)
    assert counts(home.compact()) == (1, 0)
    home.compact()
    home.wait_min(60)
    assert counts(home.compact()) == (0, 1)


def test_a_clock_that_is_wrong_removes_nothing(home: SmallHome) -> None:
    """A mark holds for one more compaction, whatever the clock says."""
    stray(home)
    assert counts(home.compact()) == (1, 0)
    home.clock.jump(10 * 365 * 24 * 3_600_000)
    assert [counts(home.compact()) for _ in range(2)] == [(0, 0), (0, 1)]


def test_staged_files_survive_the_grace(home: SmallHome) -> None:
    """Files of an add that has not committed are marked; its commit un-marks them."""
    staged = home.stage("a.md", "Green tea.")
    assert counts(home.compact()) == (2, 0)
    home.wait_min(59)
    home.compact()
    doc = home.doc(home.commit(staged))
    assert doc is not None
    assert home.count("orphans") == 0
    home.wait_min(60)
    assert counts(home.compact()) == (0, 0)
    assert home.files() == {doc.raw_path, doc.md_path}


def test_staged_files_swept_are_staged_again(home: SmallHome) -> None:
    """An add that outlasts the grace loses its files and writes them again as it commits."""
    staged = home.stage("a.md", "Green tea.")
    home.compact()
    home.compact()
    home.wait_min(60)
    assert counts(home.compact()) == (0, 2)
    assert home.files() == set()
    doc = home.doc(home.commit(staged))
    assert doc is not None
    assert home.files() == {doc.raw_path, doc.md_path}
    home.work()
    assert home.found("green") == [doc.source_no]


def test_commit_between_look_and_removal_keeps_the_file(
    home: SmallHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that is taken into use after the sweep looked, but before it removes, stays."""
    staged = home.stage("a.md", "Green tea.")
    home.compact(grace_min=0)
    whole = orphans._drop_stale_marks

    def late(*arguments: object) -> None:
        home.commit(staged)
        whole(*arguments)  # type: ignore[arg-type]

    monkeypatch.setattr(orphans, "_drop_stale_marks", late)
    assert counts(home.compact(grace_min=0)) == (0, 0)
    assert home.files() == {staged.raw_path, staged.md_path}


def test_marks_of_used_and_vanished_files_are_dropped(home: SmallHome) -> None:
    """A mark whose file is named by a doc, or is no more, is forgotten."""
    doc = home.add("a.md", "Green tea.")
    with home.store.write() as txn:
        ORPHANS.put(txn, text_key(doc.raw_path), Orphan(marked_ms=1))
        ORPHANS.put(txn, text_key("raw/aa/gone.md"), Orphan(marked_ms=1))
    assert counts(home.compact(grace_min=0)) == (0, 0)
    assert home.count("orphans") == 0
    assert home.files() == {doc.raw_path, doc.md_path}


def test_links_and_other_places_are_left(home: SmallHome, tmp_path: Path) -> None:
    """No link is followed or removed, nothing outside raw/ and md/ is looked at."""
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "mine.md").write_text("mine")
    home.file("raw/aa").mkdir()
    home.file("raw/aa/link.md").symlink_to(outside / "mine.md")
    home.file("raw/bb").symlink_to(outside)
    os.mkfifo(home.file("raw/aa/pipe"))
    home.file("models").mkdir()
    stray(home, "models/deep/model.onnx")
    for _ in range(2):
        assert counts(home.compact(grace_min=0)) == (0, 0)
    assert (outside / "mine.md").read_text() == "mine"
    assert home.file("raw/aa/link.md").is_symlink()


def test_root_folder_that_is_a_link_is_left(home: SmallHome, tmp_path: Path) -> None:
    """A raw/ that points elsewhere is not swept."""
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / "aa").mkdir(parents=True)
    (elsewhere / "aa" / "mine.md").write_text("mine")
    home.file("raw").rmdir()
    home.file("raw").symlink_to(elsewhere)
    assert counts(home.compact(grace_min=0)) == (0, 0)


def test_many_files_go_in_bounded_transactions(
    home: SmallHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """More files than a transaction takes are all marked, and all removed."""
    monkeypatch.setattr(orphans, "UNLINKS_PER_TXN", 3)
    monkeypatch.setattr(orphans, "MARKS_PER_TXN", 4)
    for number in range(10):
        stray(home, f"raw/aa/{number}.md")
    assert counts(home.compact(grace_min=0)) == (10, 0)
    assert counts(home.compact(grace_min=0)) == (0, 10)
    assert (home.files(), home.count("orphans")) == (set(), 0)


def test_file_that_cannot_be_removed_is_a_problem(
    home: SmallHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One file that resists is named; the others go."""
    stray(home, "raw/aa/good.md")
    bad = stray(home, "raw/aa/bad.md")
    home.compact(grace_min=0)
    whole = Path.unlink

    def unlink(path: Path, missing_ok: bool = False) -> None:
        if path == bad:
            raise PermissionError(1, "Operation not permitted")
        whole(path, missing_ok=missing_ok)

    monkeypatch.setattr(Path, "unlink", unlink)
    report = home.compact(grace_min=0)
    assert counts(report) == (0, 1)
    assert report.problems == ("raw/aa/bad.md: cannot be removed (Operation not permitted)",)


@pytest.mark.parametrize(
    "place", ["compact.after_mark", "compact.before_delete", "compact.after_delete"]
)
def test_interrupted_sweep_is_taken_up(
    home: SmallHome, monkeypatch: pytest.MonkeyPatch, place: str
) -> None:
    """A run that fails at any place leaves what the next runs finish; docs' files stay."""
    doc = home.add("a.md", "Green tea.")
    file = stray(home)
    monkeypatch.setattr(failpoints, "_armed", {place: ("eio", 1)})
    with pytest.raises(OSError, match=re.escape(place)):
        compact_twice(home)
    monkeypatch.setattr(failpoints, "_armed", {})
    compact_twice(home)
    assert not file.exists()
    assert home.count("orphans") == 0
    assert home.files() == {doc.raw_path, doc.md_path}


def test_unreadable_record_stops_the_sweep(home: SmallHome) -> None:
    """Where a doc cannot be read, what it names is not known, and no file goes."""
    doc = home.add("a.md", "Green tea.")
    file = stray(home)
    home.compact(grace_min=0)
    with home.store.write() as txn:
        txn.put("docs", doc.doc_id.encode(), b"\0" * 40)
    with pytest.raises(StoreDamaged):
        home.compact(grace_min=0)
    assert file.exists()


def test_old_temporary_files_go(home: SmallHome) -> None:
    """Leftovers in tmp/ go when older than the grace, and never in their first minutes."""
    now_s = home.clock.now_ms() / 1000
    for name, age_min in (("old", 61), ("young", 30), ("fresh", 1)):
        (home.paths.tmp / name).write_text(name)
        os.utime(home.paths.tmp / name, (now_s - age_min * 60, now_s - age_min * 60))
    (home.paths.tmp / "folder").mkdir()
    (home.paths.tmp / "link").symlink_to(home.paths.tmp / "fresh")
    assert home.compact(dry_run=True).temporary_removed == 1
    report = home.compact()
    assert (report.temporary_removed, report.bytes_freed) == (1, 3)
    assert home.compact(grace_min=0).temporary_removed == 1
    assert sorted(os.listdir(home.paths.tmp)) == ["folder", "fresh", "link"]


def log_length(home: SmallHome) -> int:
    return home.count("log")


def test_log_is_cut_behind_the_caches(home: SmallHome) -> None:
    """Both caches catch up first; what they hold is dropped but for the newest entry."""
    for number in range(5):
        home.add(f"{number}.md", f"Note {number}.")
    length = log_length(home)
    assert home.compact().log_entries_removed == length - 1
    with home.store.read() as txn:
        assert log.first_seq(txn) == log.last_seq(txn)
    rebuilt = [cache.catch_up(home.store, wait_s=1).rebuilt for cache in (home.lexical, home.dense)]
    assert rebuilt == [False, False]
    home.add("5.md", "Another note.")
    state = home.lexical.catch_up(home.store, wait_s=1)
    assert (state.rebuilt, state.applied) == (False, 1)


def test_log_is_cut_in_steps(home: SmallHome, monkeypatch: pytest.MonkeyPatch) -> None:
    """A long log goes in bounded transactions, and a failure between two is taken up."""
    monkeypatch.setattr("kb.upkeep.compactor.caches.ENTRIES_PER_TXN", 2)
    for number in range(5):
        home.add(f"{number}.md", f"Note {number}.")
    length = log_length(home)
    monkeypatch.setattr(failpoints, "_armed", {"compact.after_truncate": ("eio", 1)})
    with pytest.raises(OSError, match=re.escape("compact.after_truncate")):
        home.compact()
    monkeypatch.setattr(failpoints, "_armed", {})
    assert log_length(home) == length - 2
    assert home.compact().log_entries_removed == length - 3


def test_log_stays_for_a_cache_that_cannot_follow(home: SmallHome) -> None:
    """A cache that cannot be written keeps the log whole, and the report says so."""
    home.add("a.md", "Green tea.")
    home.paths.index.joinpath("dense").write_text("in the way")
    length = log_length(home)
    report = home.compact()
    assert (report.log_entries_removed, log_length(home)) == (0, length)
    assert len(report.problems) == 1
    assert "dense" in report.problems[0]


def test_two_runs_do_not_meet(home: SmallHome, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run beside another waits for it, and gives up with a clear line; a dry run goes on."""
    monkeypatch.setattr("kb.upkeep.compactor.compactor._WAIT_S", 0.0)
    with file_lock(home.file("compact.lock"), 0.0):
        with pytest.raises(StoreBusy):
            home.compact()
        assert home.compact(dry_run=True).files_removed == 0


def test_run_on_an_empty_home(home: SmallHome) -> None:
    """There is nothing to do, and nothing goes wrong."""
    assert home.compact() == CompactReport()
