"""`sync-all`: what is due, in which order, and that one source's trouble is its own."""

from pathlib import Path

import msgspec
import pytest
from sync_home import OUTCOMES, SyncHome

from kb.errors import StoreFull
from kb.intake.sync.origins import acquire
from kb.model.origin import Origin
from kb.store.records import SOURCES

MINUTE_MS = 60_000
DAY_MS = 86_400_000


def folders(kept: SyncHome, root: Path, *names: str) -> list[Path]:
    made = [root / name for name in names]
    for folder in made:
        folder.mkdir()
        (folder / "a.md").write_text(f"A note in {folder.name}.")
    kept.add(*made)
    return made


def change(kept: SyncHome, place: Path, **fields: object) -> None:
    changed = msgspec.structs.replace(kept.origin(place), **fields)
    with kept.app.store.write() as txn:
        SOURCES.put(txn, changed.origin_id.encode(), changed)


def seen(kept: SyncHome, **options: object) -> list[str]:
    return [Path(line.location).name for line in kept.sync(**options).sources]


def test_only_what_is_due_is_synced(kept: SyncHome, tmp_path: Path) -> None:
    """A source rests for the interval after it was brought level."""
    folders(kept, tmp_path, "x", "y")
    assert seen(kept, interval_min=20) == []
    kept.clock.advance(20 * MINUTE_MS - 1)
    assert seen(kept, interval_min=20) == []
    kept.clock.advance(1)
    assert seen(kept, interval_min=20) == ["x", "y"]
    assert seen(kept, interval_min=20) == []
    assert seen(kept, interval_min=0) == ["x", "y"]


def test_max_takes_the_longest_unseen_first(kept: SyncHome, tmp_path: Path) -> None:
    """With a bound every source has its turn."""
    folders(kept, tmp_path, "x", "y", "z")
    turns = []
    for _ in range(6):
        kept.clock.advance(MINUTE_MS)
        turns += seen(kept, sources_max=1)
    assert turns == ["x", "y", "z"] * 2


def test_one_source_is_synced_whether_due_or_not(kept: SyncHome, tmp_path: Path) -> None:
    """Named by id or place it is the only one, also where it waits after a failure."""
    x, _ = folders(kept, tmp_path, "x", "y")
    change(kept, x, next_try_ms=kept.clock.now_ms() + DAY_MS)
    for name in (str(x), kept.origin(x).origin_id):
        assert seen(kept, interval_min=20, only=name) == ["x"]


@pytest.mark.parametrize(
    ("field", "ahead_ms", "is_due"),
    [
        ("next_try_ms", DAY_MS, False),
        ("next_try_ms", DAY_MS + 1, True),
        ("synced_ms", 1, True),
    ],
)
def test_a_clock_put_right_holds_nothing_up(
    kept: SyncHome, tmp_path: Path, field: str, ahead_ms: int, is_due: bool
) -> None:
    """A time further ahead than can be is from before the clock was set back."""
    (x,) = folders(kept, tmp_path, "x")
    change(kept, x, **{"synced_ms": 0, field: kept.clock.now_ms() + ahead_ms})
    assert (seen(kept, interval_min=20) == ["x"]) == is_due


def register_of(kept: SyncHome) -> list[Origin]:
    return kept.origins()


def test_a_dry_run_changes_nothing(kept: SyncHome, tmp_path: Path) -> None:
    """It foresees what a run does, and leaves store and register as they are."""
    (x,) = folders(kept, tmp_path, "x")
    for name in "bcd":
        (x / f"{name}.md").write_text(f"Note {name}.")
    kept.line()
    (x / "a.md").rename(x / "z.md")
    (x / "b.md").unlink()
    (x / "c.md").write_text("Edited, and longer.")
    (x / "new.md").write_text("A new note.")
    log = kept.app.store
    before = (kept.docs(), register_of(kept))
    with log.read() as txn:
        entries = txn.count("log")
    foreseen = kept.line(dry_run=True)
    with log.read() as txn:
        assert txn.count("log") == entries
    assert (kept.docs(), register_of(kept)) == before
    done = kept.line()
    counts = (*OUTCOMES, "scanned", "moved", "removed", "outcome")
    assert [getattr(foreseen, n) for n in counts] == [getattr(done, n) for n in counts]
    assert (done.moved, done.removed, done.added, done.updated, done.unchanged) == (1, 1, 1, 1, 2)


def test_a_dry_run_foresees_the_fuse(kept: SyncHome, tmp_path: Path) -> None:
    """What would be held back is said to be, and is not counted as removed."""
    (x,) = folders(kept, tmp_path, "x")
    (x / "a.md").unlink()
    line = kept.line(dry_run=True)
    assert (line.outcome, line.removed) == ("held_back", 0)
    assert kept.line(dry_run=True, accept_deletions=True).removed == 1
    (x / "a.md").write_text("A note in x.")
    (x / "a.md").rename(x / "b.md")
    assert kept.line(dry_run=True).outcome == "synced"


def test_one_source_that_fails_does_not_stop_the_rest(kept: SyncHome, tmp_path: Path) -> None:
    """Missing, refused and unreadable ones say so; the others are synced; the sums are right."""
    x, y, _ = folders(kept, tmp_path, "x", "y", "z")
    (x / "a.md").unlink()
    x.rmdir()
    (y / "bad.md").write_bytes(b"\x00\x01\x02binary\xff" * 50)
    page = Origin(
        origin_id="s1", kind="url", location="http://127.0.0.2:9/", added_ms=kept.clock.now_ms()
    )
    with kept.app.store.write() as txn:
        SOURCES.put(txn, b"s1", page)
    report = kept.sync()
    assert {Path(line.location).name: line.outcome for line in report.sources} == {
        "127.0.0.2:9": "failed",
        "x": "held_back",
        "y": "synced",
        "z": "synced",
    }
    for name in (*OUTCOMES, "scanned", "moved", "removed"):
        assert getattr(report, name) == sum(getattr(line, name) for line in report.sources)
    assert (report.failed, report.unchanged) == (1, 2)
    assert kept.origin("s1").failures == 1


def test_a_source_in_other_hands_is_left_to_them(kept: SyncHome, tmp_path: Path) -> None:
    """It is said to be busy, and nothing of it is read."""
    (x,) = folders(kept, tmp_path, "x")
    assert acquire(kept.app.store, kept.origin(x)) is not None
    (x / "new.md").write_text("A new note.")
    line = kept.line()
    assert (line.outcome, line.scanned) == ("busy", 0)


def test_what_another_has_just_synced_is_not_synced_again(kept: SyncHome, tmp_path: Path) -> None:
    """Of two runs with the same list, who comes second finds that it is done."""
    folders(kept, tmp_path, "x", "y")
    outcomes: list[str] = []

    def other(line: object) -> None:
        if not outcomes:
            outcomes.append("other ran")
            assert [one.outcome for one in kept.sync().sources] == ["synced", "synced"]

    from kb.intake.sync.sync_all import SyncOptions

    options = SyncOptions(interval_min=0, home=kept.app.paths.root)
    report = kept.app.syncer(kept.parser, options).run(on_line=other)
    assert [line.outcome for line in report.sources] == ["synced", "busy"]


def test_a_full_disk_ends_the_run_and_frees_the_source(
    kept: SyncHome, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The home's own trouble is no source's failure; nobody holds the source afterwards."""
    (x,) = folders(kept, tmp_path, "x")
    (x / "new.md").write_text("A new note.")

    def full(*_: object) -> None:
        raise StoreFull("no space", place="home")

    monkeypatch.setattr(kept.app.ingestor, "commit", full)
    with pytest.raises(StoreFull):
        kept.sync()
    monkeypatch.undo()
    assert kept.origin(x).holder == ""
    assert kept.line().added == 1
