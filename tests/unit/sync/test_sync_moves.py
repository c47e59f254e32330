"""Files that are somewhere else now: their docs follow them, with all that is theirs."""

from pathlib import Path

import pytest
from sync_home import SyncHome

from kb.intake.ingest.changes import set_visibility, tombstone
from kb.intake.ingest.request import IngestOptions
from kb.model.doc import Doc, Visibility

PLAIN = "Words without a heading, about a harbour.\n"


@pytest.fixture
def folders(tmp_path: Path) -> tuple[Path, Path]:
    """Two folders; a name that sorts first is synced first."""
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "stays.md").write_text(f"# Stays in {name}\n")
    return tmp_path / "a", tmp_path / "b"


def doc_of(kept: SyncHome, path: Path) -> Doc:
    return kept.docs()[str(path)]


def add(kept: SyncHome, folder: Path, visibility: Visibility | None = None) -> None:
    kept.add(folder, ingest_options=IngestOptions(visibility=visibility))


def test_a_title_that_was_the_files_name_follows_it(
    kept: SyncHome, folders: tuple[Path, Path]
) -> None:
    """A file without a title of its own is called by the name that it has now."""
    new, renamed = folders[0] / "new.md", folders[0] / "renamed.md"
    new.write_text(PLAIN)
    add(kept, folders[0])
    before = doc_of(kept, new)
    new.rename(renamed)
    assert kept.line().moved == 1
    after = doc_of(kept, renamed)
    assert (before.title, after.title) == ("new", "renamed")
    assert after.doc_id == before.doc_id
    assert kept.is_sound()
    assert kept.line().unchanged == 2


def test_a_title_that_the_text_gives_stays(kept: SyncHome, folders: tuple[Path, Path]) -> None:
    """Also where the name was the same as the heading, and what a person called it."""
    headed, named = folders[0] / "new.md", folders[0] / "named.md"
    headed.write_text("# new\n\nWords.\n")
    named.write_text(PLAIN)
    kept.add(named, ingest_options=IngestOptions(title="named"))
    add(kept, folders[0])
    headed.rename(folders[0] / "other.md")
    named.rename(folders[0] / "another.md")
    assert kept.line().moved == 2
    assert doc_of(kept, folders[0] / "other.md").title == "new"
    assert doc_of(kept, folders[0] / "another.md").title == "named"
    assert kept.is_sound()


@pytest.mark.parametrize("first", [0, 1])
@pytest.mark.parametrize("at_once", [True, False])
def test_a_move_between_folders_is_a_move(
    kept: SyncHome, folders: tuple[Path, Path], first: int, at_once: bool
) -> None:
    """Whichever folder is looked at first, by one run or by one for each."""
    source, target = folders[first], folders[1 - first]
    for folder in folders:
        add(kept, folder)
    note = source / "note.md"
    note.write_text(PLAIN)
    kept.sync()
    before, vectors = doc_of(kept, note), kept.vectors()
    note.rename(target / "note.md")
    if at_once:
        report = kept.sync()
        assert (report.moved, report.removed, report.added) == (1, 0, 0)
    else:
        for folder in folders:
            kept.line(only=str(folder))
    after = doc_of(kept, target / "note.md")
    assert (after.doc_id, kept.vectors()) == (before.doc_id, vectors)
    assert str(note) not in kept.docs()
    report = kept.sync()
    assert (report.unchanged, report.scanned) == (3, 3)
    assert kept.is_sound()


def test_a_move_between_folders_is_foreseen(kept: SyncHome, folders: tuple[Path, Path]) -> None:
    """A dry run says what a run does."""
    for folder in folders:
        add(kept, folder)
    note = folders[0] / "note.md"
    note.write_text(PLAIN)
    kept.sync()
    note.rename(folders[1] / "note.md")
    said = [kept.sync(dry_run=dry_run) for dry_run in (True, False)]
    assert said[0] == said[1]


def test_a_folder_that_moved_into_another(kept: SyncHome, folders: tuple[Path, Path]) -> None:
    """However much of it: what is elsewhere is not lost, and no fuse holds it back."""
    for folder in folders:
        add(kept, folder)
    for number in range(20):
        (folders[0] / f"note-{number}.md").write_text(f"# Note {number}\n")
    kept.sync()
    for number in range(20):
        (folders[0] / f"note-{number}.md").rename(folders[1] / f"note-{number}.md")
    report = kept.sync()
    assert [line.outcome for line in report.sources] == ["synced", "synced"]
    assert (report.moved, report.removed) == (20, 0)


def test_who_may_see_it_after_a_move(kept: SyncHome, folders: tuple[Path, Path]) -> None:
    """What the folder gave stays in the folder; what a person said of the doc goes with it."""
    add(kept, folders[0], "public")
    add(kept, folders[1], "private")
    for name in ("by-folder.md", "by-hand.md"):
        (folders[0] / name).write_text(f"{PLAIN}{name}\n")
    kept.sync()
    set_visibility(kept.app.store, doc_of(kept, folders[0] / "by-hand.md").doc_id, "shared")
    for name in ("by-folder.md", "by-hand.md"):
        (folders[0] / name).rename(folders[1] / name)
    assert kept.sync().moved == 2
    assert doc_of(kept, folders[1] / "by-folder.md").visibility == "private"
    assert doc_of(kept, folders[1] / "by-hand.md").visibility == "shared"
    assert kept.is_sound()


def test_a_copy_and_what_a_person_removed_are_no_moves(
    kept: SyncHome, folders: tuple[Path, Path]
) -> None:
    """A file that is still there has not moved; a doc that a person removed does not come back."""
    for folder in folders:
        add(kept, folder)
    here, removed = folders[0] / "here.md", folders[0] / "removed.md"
    here.write_text(PLAIN)
    removed.write_text(f"{PLAIN}And more.\n")
    kept.sync()
    tombstone(kept.app.store, [doc_of(kept, removed).doc_id])
    (folders[1] / "copy.md").write_text(PLAIN)
    removed.rename(folders[1] / "removed.md")
    report = kept.sync()
    assert (report.added, report.moved) == (2, 0)
    assert doc_of(kept, folders[1] / "copy.md").doc_id != doc_of(kept, here).doc_id
    assert kept.is_sound()


def test_what_a_person_removed_stays_out_after_its_purge(
    kept: SyncHome, folders: tuple[Path, Path]
) -> None:
    """A sync passes its file over for good; an add brings it back."""
    add(kept, folders[0])
    note = folders[0] / "note.md"
    note.write_text(PLAIN)
    kept.sync()
    tombstone(kept.app.store, [doc_of(kept, note).doc_id])
    for _ in range(2):
        kept.app.compactor.run()
    kept.clock.advance(31 * 24 * 3_600_000)
    assert kept.app.compactor.run().docs_purged == 1
    for text in (PLAIN, "An edit of what was removed.\n"):
        note.write_text(text)
        line = kept.line()
        assert (line.unchanged, line.skipped, line.added) == (1, 1, 0)
    assert kept.add(note).added == 1
    assert kept.line().unchanged == 2


@pytest.mark.parametrize("dry_run", [True, False])
def test_a_folder_that_moved_keeps_its_docs_when_its_new_place_is_added(
    kept: SyncHome, folders: tuple[Path, Path], dry_run: bool
) -> None:
    """As a sync would have it, with what was said of the docs; a dry run says so before."""
    add(kept, folders[0], "shared")
    (folders[0] / "more.md").write_text(PLAIN)
    kept.line()
    before, vectors = kept.docs(), kept.vectors()
    new = folders[0].rename(folders[0].parent / "elsewhere")
    if dry_run:
        report = kept.add(new, dry_run=True)
        assert (report.moved, report.unchanged, report.added) == (2, 2, 0)
        assert kept.docs() == before
    report = kept.add(new)
    assert (report.moved, report.unchanged, report.added, report.scanned) == (2, 2, 0, 2)
    after = kept.docs()
    assert sorted(after) == [str(new / "more.md"), str(new / "stays.md")]
    assert {doc.doc_id for doc in after.values()} == {doc.doc_id for doc in before.values()}
    assert {doc.visibility for doc in after.values()} == {"private"}
    assert kept.vectors() == vectors
    assert kept.is_sound()


def test_a_copy_that_is_added_is_another_doc(kept: SyncHome, folders: tuple[Path, Path]) -> None:
    """While the first file is there, and where a folder is added again."""
    add(kept, folders[0])
    copy = folders[1] / "stays.md"
    copy.write_bytes((folders[0] / "stays.md").read_bytes())
    report = kept.add(folders[1])
    assert (report.moved, report.added) == (0, 1)
    (folders[0] / "stays.md").rename(folders[1] / "moved.md")
    report = kept.add(folders[1])
    assert (report.moved, report.added, report.unchanged) == (0, 1, 1)


def test_a_folder_that_is_gone_says_what_to_do(kept: SyncHome, folders: tuple[Path, Path]) -> None:
    """While it has docs: to add its new place. Then: to forget it; nothing is held back."""
    add(kept, folders[0])
    new = folders[0].rename(folders[0].parent / "elsewhere")
    line = kept.line()
    assert line.outcome == "held_back"
    assert line.reason is not None
    assert "does not exist; is it mounted? If its files have moved, `kb add` the" in line.reason
    kept.add(new)
    line = kept.line(only=str(folders[0]))
    assert (line.outcome, line.removed) == ("failed", 0)
    assert line.reason == (
        f"it does not exist, and no doc of it is left; `kb sources rm {folders[0]}` forgets it"
    )
