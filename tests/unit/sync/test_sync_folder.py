"""Folders kept current: what came, changed, moved and went."""

import os
import shutil
from pathlib import Path

import pytest
from sync_home import SyncHome

from kb.intake.ingest.changes import tombstone
from kb.model.doc import Doc


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "n"
    folder.mkdir()
    return folder


def put(folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"# About {name}\n\nA note that says {name} and no more.\n")


def by_name(kept: SyncHome) -> dict[str, Doc]:
    return {Path(source).name: doc for source, doc in kept.docs().items()}


def test_a_folder_is_brought_level(kept: SyncHome, folder: Path) -> None:
    """What is new comes in, what changed is updated, what is gone is hidden."""
    put(folder, "a.md", "b.md", "c.md")
    kept.add(folder)
    put(folder, "sub/new.md")
    (folder / "b.md").write_text("Other words altogether.")
    (folder / "c.md").unlink()
    line = kept.line()
    assert (line.outcome, line.added, line.updated, line.unchanged) == ("synced", 1, 1, 1)
    assert (line.scanned, line.removed) == (3, 1)
    assert kept.names() == {"a.md", "b.md", "new.md"}
    assert kept.line().unchanged == 3
    assert kept.is_sound()


def test_a_file_that_comes_back_brings_its_doc_back(kept: SyncHome, folder: Path) -> None:
    """A doc that was hidden because its file went is active again with it, and keeps its id."""
    put(folder, "a.md", "b.md")
    kept.add(folder)
    before = by_name(kept)["a.md"]
    aside = folder.parent / "aside"
    (folder / "a.md").rename(aside)
    assert kept.line().removed == 1
    aside.rename(folder / "a.md")
    assert kept.line().resurrected == 1
    assert by_name(kept)["a.md"].doc_id == before.doc_id
    assert kept.is_sound()


def test_what_a_person_removed_stays_removed(kept: SyncHome, folder: Path) -> None:
    """A sync does not undo `kb rm`, also where the file is edited; an add does."""
    put(folder, "a.md", "b.md")
    kept.add(folder)
    tombstone(kept.app.store, [by_name(kept)["a.md"].doc_id])
    for _ in range(2):
        line = kept.line()
        assert (line.unchanged, line.skipped, line.resurrected) == (1, 1, 0)
        assert [problem.reason for problem in line.problems] == [
            "removed with kb rm; kb add brings it back"
        ]
        (folder / "a.md").write_text("An edit of what was removed.")
    assert kept.names() == {"b.md"}
    assert kept.add(folder).updated == 1
    assert kept.names() == {"a.md", "b.md"}


def test_a_later_ignore_file_removes(kept: SyncHome, folder: Path) -> None:
    """What a new .kbignore names is hidden, also where every extension is asked for."""
    put(folder, "a.md", "private/b.md", "c.org")
    kept.add(folder, ext=("*",))
    (folder / ".kbignore").write_text("private/\n*.org\n")
    assert kept.line().removed == 2
    assert kept.names() == {"a.md"}


def test_what_was_added_by_name_stays(kept: SyncHome, folder: Path) -> None:
    """Files that the folder's filters do not ask for are none of its business."""
    put(folder, "a.md", "b.org", ".hidden/c.md")
    kept.add(folder, ext=(".MD",))
    kept.add(folder / "b.org", folder / ".hidden/c.md")
    assert kept.line().removed == 0
    assert kept.names() == {"a.md", "b.org", "c.md"}


def test_a_renamed_file_is_the_same_doc(kept: SyncHome, folder: Path) -> None:
    """Doc and passages keep their ids, nothing is embedded, and the doc is fresh at its place."""
    put(folder, "a.md", "b.md")
    kept.add(folder)
    before = by_name(kept)["a.md"]
    passages, vectors, embedded = kept.passages(before), kept.vectors(), kept.embedder.embedded
    (folder / "sub").mkdir()
    (folder / "a.md").rename(folder / "sub/z.md")
    line = kept.line()
    assert (line.moved, line.unchanged, line.added, line.removed) == (1, 2, 0, 0)
    after = by_name(kept)["z.md"]
    assert (after.doc_id, kept.passages(after)) == (before.doc_id, passages)
    assert (kept.vectors(), kept.embedder.embedded) == (vectors, embedded)
    assert kept.freshness(after) == "fresh"
    assert kept.is_sound()


def test_many_renamed_files_embed_nothing(kept: SyncHome, folder: Path) -> None:
    """A folder renamed inside its root blows no fuse and embeds nothing."""
    put(folder, "keep.md", *(f"old/{n}.md" for n in range(40)))
    kept.add(folder)
    ids, embedded = {doc.doc_id for doc in kept.docs().values()}, kept.embedder.embedded
    (folder / "old").rename(folder / "new")
    line = kept.line()
    assert (line.outcome, line.moved, line.unchanged) == ("synced", 40, 41)
    assert {doc.doc_id for doc in kept.docs().values()} == ids
    assert kept.embedder.embedded == embedded
    assert kept.is_sound()


def test_a_rename_may_be_taken_back(kept: SyncHome, folder: Path) -> None:
    """The doc is as it was. Where a new file took its place at once, the place was edited."""
    put(folder, "a.md", "b.md")
    kept.add(folder)
    first = by_name(kept)["a.md"]
    (folder / "a.md").rename(folder / "z.md")
    kept.line()
    (folder / "z.md").rename(folder / "a.md")
    assert kept.line().moved == 1
    back = by_name(kept)["a.md"]
    assert (back.doc_id, back.lsid, back.moved_to) == (first.doc_id, first.lsid, None)
    (folder / "a.md").rename(folder / "z.md")
    (folder / "a.md").write_text("Something else under the old name.")
    line = kept.line()
    assert (line.added, line.updated, line.moved, line.removed) == (1, 1, 0, 0)
    assert kept.is_sound()


def test_a_new_file_at_the_old_place_is_a_new_doc(kept: SyncHome, folder: Path) -> None:
    """It has an id of its own, is edited and renamed like any other, and disturbs nothing."""
    put(folder, "a.md", "b.md")
    kept.add(folder)
    first = by_name(kept)["a.md"]
    (folder / "a.md").rename(folder / "z.md")
    kept.line()
    (folder / "a.md").write_text("Something else under the old name.")
    assert kept.line().added == 1
    second = by_name(kept)["a.md"]
    assert second.doc_id != first.doc_id
    assert by_name(kept)["z.md"].doc_id == first.doc_id
    (folder / "a.md").write_text("And an edit of it, which is longer.")
    assert kept.line().updated == 1
    assert by_name(kept)["a.md"].source_no == second.source_no
    (folder / "a.md").rename(folder / "y.md")
    assert kept.line().moved == 1
    assert kept.is_sound()


def test_a_rename_with_an_edit_is_another_doc(kept: SyncHome, folder: Path) -> None:
    """What has other bytes in another place cannot be known again."""
    put(folder, "a.md", "b.md")
    kept.add(folder)
    (folder / "a.md").rename(folder / "z.md")
    (folder / "z.md").write_text("Edited while it was renamed.")
    line = kept.line()
    assert (line.added, line.removed, line.moved) == (1, 1, 0)
    assert kept.is_sound()


def test_two_files_that_swap_names(kept: SyncHome, folder: Path) -> None:
    """Each place has its new text, no text is embedded again, and nothing is lost."""
    put(folder, "a.md", "b.md")
    kept.add(folder)
    vectors = kept.vectors()
    texts = {name: (folder / name).read_text() for name in ("a.md", "b.md")}
    (folder / "a.md").rename(folder / "aside")
    (folder / "b.md").rename(folder / "a.md")
    (folder / "aside").rename(folder / "b.md")
    line = kept.line()
    assert (line.updated, line.removed) == (2, 0)
    for name, other in (("a.md", "b.md"), ("b.md", "a.md")):
        assert by_name(kept)[name].raw_bytes == len(texts[other])
        assert kept.freshness(by_name(kept)[name]) == "fresh"
    assert kept.vectors() == vectors
    assert kept.is_sound()


def test_a_copy_is_no_move(kept: SyncHome, folder: Path) -> None:
    """While the first file is there, the same bytes elsewhere are a doc of their own."""
    put(folder, "a.md", "b.md")
    kept.add(folder)
    first = by_name(kept)["a.md"]
    shutil.copyfile(folder / "a.md", folder / "copy.md")
    line = kept.line()
    assert (line.added, line.moved, line.removed) == (1, 0, 0)
    assert by_name(kept)["a.md"].doc_id == first.doc_id
    assert by_name(kept)["copy.md"].doc_id != first.doc_id


def test_of_equal_files_the_one_with_the_name_is_meant(kept: SyncHome, folder: Path) -> None:
    """Files with the same bytes that move together keep their docs by their names."""
    for name in ("one/a.md", "one/b.md"):
        put(folder, name)
        (folder / name).write_text("The same words in both.")
    put(folder, "keep.md")
    kept.add(folder)
    before = {name: doc.doc_id for name, doc in by_name(kept).items()}
    (folder / "one").rename(folder / "two")
    assert kept.line().moved == 2
    assert {name: doc.doc_id for name, doc in by_name(kept).items()} == before


def test_overlapping_folders_agree(kept: SyncHome, folder: Path) -> None:
    """What a folder further in asks for is its own: tags and removals do not go to and fro."""
    from kb.intake.ingest.request import IngestOptions

    put(folder, "a.md", "in/b.md", "in/c.txt")
    (folder / ".kbignore").write_text("in/\n")
    kept.add(folder, ingest_options=IngestOptions(tags=("outer",)))
    kept.add(folder / "in", ext=("md",), ingest_options=IngestOptions(tags=("inner",)))
    (folder / ".kbignore").unlink()
    for n in range(2):
        report = kept.sync()
        assert (report.added, report.updated, report.removed) == (1 - n, 0, 0)
    tags = {name: doc.tags for name, doc in by_name(kept).items()}
    assert tags == {"a.md": ("outer",), "b.md": ("inner",), "c.txt": ("outer",)}
    (folder / ".kbignore").write_text("in/\n")
    assert kept.sync().removed == 1
    assert kept.names() == {"a.md", "b.md"}


def test_fifos_and_links_are_not_read(kept: SyncHome, folder: Path, tmp_path: Path) -> None:
    """A file that became a FIFO or a link out of the root is gone from it, and never opened."""
    put(folder, "a.md", "b.md", "c.md")
    put(tmp_path / "outside", "secret.md")
    kept.add(folder)
    for name in ("a.md", "b.md"):
        (folder / name).unlink()
    os.mkfifo(folder / "a.md")
    (folder / "b.md").symlink_to(tmp_path / "outside/secret.md")
    (folder / "linked").symlink_to(tmp_path / "outside")
    line = kept.line()
    assert (line.unchanged, line.skipped, line.removed) == (1, 3, 2)
    assert kept.names() == {"c.md"}


def test_a_folder_of_any_name(kept: SyncHome, tmp_path: Path) -> None:
    """A folder whose name is no UTF-8 is registered, synced and found again."""
    folder = tmp_path / os.fsdecode(b"caf\xe9 \xff")
    put(folder, "a.md")
    kept.add(folder)
    put(folder, "b.md")
    assert kept.line().added == 1
    assert kept.origin(folder).location.startswith("file://")
