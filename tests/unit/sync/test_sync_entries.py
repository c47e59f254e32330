"""Claims about how a home's knowledge folder is kept current."""

import os
import shutil
from pathlib import Path

import pytest
from sync_home import SyncHome

from kb.intake.ingest.changes import tombstone
from kb.intake.ingest.request import IngestOptions
from kb.intake.sync.report import SourceProblem
from kb.model.doc import Doc

BODY = "# T\n\nIntro of it.\n\n## One\n\nfirst words\n\n## Two\n\nsecond words\n"


def entry(ident: str, body: str = BODY, *more: str) -> str:
    return "\n".join(("---", f"zettel_id: {ident}", f"title: About {ident}", *more, "---", body))


@pytest.fixture
def knowledge(kept: SyncHome) -> Path:
    folder = kept.app.paths.knowledge
    folder.mkdir()
    return folder


def docs_of(kept: SyncHome) -> dict[str, Doc]:
    """Active docs by lsid."""
    return {doc.lsid: doc for doc in kept.docs().values()}


def reasons(problems: tuple[SourceProblem, ...]) -> list[tuple[str, str]]:
    return [(Path(one.source).name, one.reason) for one in problems]


def test_a_folder_of_entries_needs_no_adding(kept: SyncHome) -> None:
    """Once it is there it is a source, and its markdown files are docs named by their ids."""
    assert kept.sync().sources == ()
    folder = kept.app.paths.knowledge
    (folder / "deep/er").mkdir(parents=True)
    (folder / "deep/er/x.markdown").write_text(
        entry("x", BODY, "tags: [howto]", "references: [y]", "version: 1.2.0")
    )
    (folder / "other.txt").write_text("no markdown")
    line = kept.line()
    assert (line.kind, line.location, line.added, line.skipped) == ("entries", str(folder), 1, 1)
    (doc,) = kept.docs().values()
    assert (doc.lsid, doc.kind, doc.title, doc.label) == (
        "entry:x",
        "entry",
        "About x",
        "[x] About x",
    )
    assert (doc.tags, doc.visibility) == (("howto",), "private")
    assert doc.entry is not None
    assert (doc.entry.version, doc.entry.references) == ("1.2.0", ("y",))
    assert kept.is_sound()
    again = kept.line()
    assert (again.unchanged, again.added, again.updated) == (1, 0, 0)


def test_a_renamed_file_is_the_same_entry(kept: SyncHome, knowledge: Path) -> None:
    """Only its place changes: same doc, same passages, nothing embedded."""
    (knowledge / "a.md").write_text(entry("x"))
    kept.sync()
    (before,) = kept.docs().values()
    passages, embedded = kept.passages(before), kept.embedder.embedded
    # A file system may leave the stamp as it is.
    stamp = (knowledge / "a.md").stat()
    (knowledge / "sub").mkdir()
    (knowledge / "a.md").rename(knowledge / "sub/b.md")
    os.utime(knowledge / "sub/b.md", ns=(stamp.st_atime_ns, stamp.st_mtime_ns))
    line = kept.line()
    assert (line.added, line.updated, line.removed) == (0, 1, 0)
    (after,) = kept.docs().values()
    assert after.source == str(knowledge / "sub/b.md")
    assert (after.doc_id, after.version) == (before.doc_id, 1)
    assert (kept.passages(after), kept.embedder.embedded) == (passages, embedded)
    assert kept.freshness(after) == "fresh"


def test_front_matter_alone_makes_a_version_and_embeds_nothing(
    kept: SyncHome, knowledge: Path
) -> None:
    """Other references are another version of the same passages."""
    (knowledge / "a.md").write_text(entry("x", BODY, "references: [y]"))
    kept.sync()
    (before,) = kept.docs().values()
    passages, embedded = kept.passages(before), kept.embedder.embedded
    (knowledge / "a.md").write_text(entry("x", BODY, "references: [y, z]"))
    assert kept.line().updated == 1
    (after,) = kept.docs().values()
    assert after.entry is not None
    assert (after.version, after.entry.references) == (2, ("y", "z"))
    assert (kept.passages(after), kept.embedder.embedded) == (passages, embedded)
    assert kept.is_sound()


def test_an_edit_of_a_section_embeds_that_section(kept: SyncHome, knowledge: Path) -> None:
    """Sections are cut apart, so the other two keep their ids and their vectors."""
    (knowledge / "a.md").write_text(entry("x"))
    kept.sync()
    (doc,) = kept.docs().values()
    before, embedded = kept.passages(doc), kept.embedder.embedded
    assert len(before) == 3
    (knowledge / "a.md").write_text(entry("x", BODY.replace("first", "other")))
    kept.sync()
    after = kept.passages(doc)
    assert [one == other for one, other in zip(before, after, strict=True)] == [True, False, True]
    assert kept.embedder.embedded == embedded + 1


def test_entries_and_notes_are_cut_in_one_batch(
    kept: SyncHome, knowledge: Path, tmp_path: Path
) -> None:
    """Each by its own rules: the same text is one passage of a note and three of an entry."""
    (tmp_path / "notes").mkdir()
    kept.add(tmp_path / "notes")
    for name in ("a", "b"):
        (tmp_path / f"notes/{name}.md").write_text(BODY)
        (knowledge / f"{name}.md").write_text(entry(name))
    kept.sync()
    counts = {doc.lsid: len(kept.passages(doc)) for doc in kept.docs().values()}
    assert counts == {
        "entry:a": 3,
        "entry:b": 3,
        f"file://{tmp_path}/notes/a.md": 1,
        f"file://{tmp_path}/notes/b.md": 1,
    }


def test_what_is_no_entry_is_text_until_it_is_mended(kept: SyncHome, knowledge: Path) -> None:
    """Each fault is named with its line; when it is mended the entry comes and the text goes."""
    file = knowledge / "a.md"
    file.write_text(entry("Not So", BODY, "version: 1"))
    line = kept.line()
    assert (line.added, line.failed) == (1, 0)
    ((name, reason),) = reasons(line.problems)
    assert name == "a.md"
    assert reason.startswith("line 2: zettel_id is not an id")
    assert "line 4: version is not a semantic version, such as 1.0.0: '1'" in reason
    assert list(docs_of(kept)) == [f"file://{file}"]
    assert reasons(kept.line().problems) == [(name, reason)]

    file.write_text(entry("so"))
    line = kept.line()
    assert (line.added, line.removed, line.problems) == (1, 1, ())
    assert list(docs_of(kept)) == ["entry:so"]

    file.write_text("plain again")
    assert kept.line().removed == 1
    file.write_text(entry("so"))
    assert kept.line().resurrected == 1
    assert list(docs_of(kept)) == ["entry:so"]
    assert kept.is_sound()


def test_of_two_files_with_one_id_the_first_has_it(kept: SyncHome, knowledge: Path) -> None:
    """The second is text, and takes over where the first is gone."""
    (knowledge / "a.md").write_text(entry("x", "first"))
    (knowledge / "b.md").write_text(entry("x", "second"))
    line = kept.line()
    wrong = f"line 2: x is the id of {knowledge / 'a.md'} already"
    assert reasons(line.problems) == [("b.md", f"{wrong}; taken in as text until that is mended")]
    assert set(docs_of(kept)) == {"entry:x", f"file://{knowledge / 'b.md'}"}
    assert docs_of(kept)["entry:x"].source == str(knowledge / "a.md")
    (knowledge / "a.md").unlink()
    line = kept.line()
    assert (line.updated, line.removed, line.problems) == (1, 1, ())
    assert {key: doc.source for key, doc in docs_of(kept).items()} == {
        "entry:x": str(knowledge / "b.md")
    }


def test_a_file_that_is_added_by_name_is_its_entry(kept: SyncHome, knowledge: Path) -> None:
    """Also one that was removed; a sync leaves that out."""
    file = knowledge / "a.md"
    file.write_text(entry("x"))
    kept.add(file, ingest_options=IngestOptions(visibility="shared", tags=("ignored",)))
    (doc,) = kept.docs().values()
    assert (doc.lsid, doc.visibility, doc.tags) == ("entry:x", "shared", ())
    assert kept.line().unchanged == 1
    tombstone(kept.app.store, [doc.doc_id])
    assert kept.line().skipped == 1
    assert kept.docs() == {}
    assert kept.add(file).resurrected == 1
    assert docs_of(kept)["entry:x"].visibility == "shared"
    (knowledge / "b.md").write_text(entry("x"))
    kept.add(knowledge / "b.md")
    assert set(docs_of(kept)) == {"entry:x", f"file://{knowledge / 'b.md'}"}


def test_a_knowledge_folder_that_is_added_too_is_taken_in_once(
    kept: SyncHome, knowledge: Path
) -> None:
    """Its files are the same docs by either way, and neither takes away what the other has."""
    (knowledge / "a.md").write_text(entry("x"))
    (knowledge / "b.md").write_text("plain")
    kept.add(knowledge)
    for _ in range(2):
        report = kept.sync()
        assert [(line.kind, line.unchanged) for line in report.sources] == [
            ("entries", 2),
            ("folder", 2),
        ]
        assert (report.added, report.updated, report.removed) == (0, 0, 0)
    assert set(docs_of(kept)) == {"entry:x", f"file://{knowledge / 'b.md'}"}


def test_mending_many_files_is_no_loss_and_losing_them_is(kept: SyncHome, knowledge: Path) -> None:
    """The fuse counts files that are gone, not those that have become entries."""
    for number in range(12):
        (knowledge / f"{number:02}.md").write_text(f"note {number}")
    kept.sync()
    for number in range(12):
        (knowledge / f"{number:02}.md").write_text(entry(f"n{number}"))
    line = kept.line()
    assert (line.outcome, line.added, line.removed) == ("synced", 12, 12)
    shutil.rmtree(knowledge)
    line = kept.line()
    assert (line.outcome, line.removed) == ("held_back", 0)
    assert len(kept.docs()) == 12
    assert kept.line(accept_deletions=True).removed == 12


def test_what_cannot_be_looked_at_keeps_its_entries(kept: SyncHome, knowledge: Path) -> None:
    """It is named, and what was known of it stays, entries and text."""
    (knowledge / "sub").mkdir()
    (knowledge / "a.md").write_text(entry("x"))
    (knowledge / "sub/b.md").write_text(entry("y"))
    (knowledge / "sub/c.md").write_text("plain")
    kept.sync()
    known = set(docs_of(kept))
    assert len(known) == 3
    os.truncate(knowledge / "a.md", 65 << 20)
    (knowledge / "sub/.kbignore").mkdir()
    line = kept.line()
    assert set(docs_of(kept)) == known
    assert [name for name, _ in reasons(line.problems)] == ["sub", "a.md"]
    assert (line.removed, line.skipped, line.failed) == (0, 1, 1)


def test_a_home_that_moved_has_its_entries(kept: SyncHome, knowledge: Path, tmp_path: Path) -> None:
    """They are named by their ids, so they are the same docs at the new place."""
    (knowledge / "a.md").write_text(entry("x"))
    (knowledge / "b.md").write_text("plain")
    kept.sync()
    (before,) = (doc for doc in kept.docs().values() if doc.kind == "entry")
    kept.close()
    (tmp_path / "other").mkdir()
    (tmp_path / "home").rename(tmp_path / "other/home")
    moved = SyncHome(tmp_path / "other")
    try:
        moved.sync()
        folder = moved.app.paths.knowledge
        assert {doc.lsid: doc.source for doc in moved.docs().values()} == {
            "entry:x": str(folder / "a.md"),
            f"file://{folder / 'b.md'}": str(folder / "b.md"),
        }
        assert docs_of(moved)["entry:x"].doc_id == before.doc_id
        assert [origin.location for origin in moved.origins()] == [str(folder)]
    finally:
        moved.close()
