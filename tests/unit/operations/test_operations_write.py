"""What changes a home, asked for as a program does: no terminal, and no words of a command."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from commands import HASHING

from kb.errors import HeldBack, NotFound, UsageError
from kb.home.app import App
from kb.model.config import load
from kb.model.doc import OPERATOR
from kb.model.search import SearchRequest
from kb.operations import (
    add,
    backups,
    check,
    compact,
    doctor,
    embedder,
    export,
    jobs,
    notes,
    remove,
    signals,
    sources,
    stats,
    sync,
    tokens,
    visibility,
)
from kb.operations.work import Workers, workers_if


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with two notes."""
    folder = tmp_path / "docs"
    folder.mkdir()
    (folder / "tea.md").write_text("# Tea\n\nGreen tea.\n")
    (folder / "milk.md").write_text("# Milk\n\nWhite milk.\n")
    return folder


@pytest.fixture
def app(tmp_path: Path, folder: Path) -> Iterator[App]:
    """A home that has the notes of the folder, and has done its work."""
    with App.open(tmp_path / "home", load([], HASHING[1:])) as app:
        request = add.AddRequest(tags=("drink",))
        with add.adder(app, request) as adder, Workers(app) as workers:
            assert adder.add([str(folder)]).added == 2
            workers.drain()
        assert workers.are_idle
        assert workers.catch_up().problems == ()
        yield app


def chosen(app: App, title: str) -> remove.RemovableDoc:
    (doc,) = (doc for doc in remove.chosen(app, tag="drink") if doc.title == title)
    return doc


def test_docs_are_chosen_and_then_removed(app: App) -> None:
    """What was chosen is removed, once; a tag that nothing has, and what is gone, are not found."""
    tea = chosen(app, "Tea")
    assert remove.chosen(app, (tea.doc_id[:9],)) == (tea,)
    assert remove.run(app, (tea,)).removed == [tea.doc_id]
    assert remove.run(app, (tea,)).removed == []
    with pytest.raises(NotFound):
        remove.chosen(app, (tea.doc_id,))
    with pytest.raises(remove.NoSuchTag):
        remove.chosen(app, tag="none")


def test_a_doc_is_shown_to_others_and_exported(app: App) -> None:
    """By a short id as by the whole one."""
    milk = chosen(app, "Milk")
    request = visibility.SetVisibilityRequest(ident=milk.doc_id[:9], visibility="public")
    assert visibility.run(app, request).visibility == "public"
    exported = export.run(app, export.ExportRequest(ident=milk.doc_id))
    assert exported.file_name == "milk.md"
    assert b"White milk." in exported.data


def test_a_dry_run_takes_nothing_in(app: App, folder: Path) -> None:
    """It says what would be, and no worker is needed for it."""
    (folder / "new.md").write_text("New.\n")
    with add.adder(app, add.AddRequest(dry_run=True)) as adder:
        assert adder.add([str(folder)]).added == 1
    assert len(remove.chosen(app, tag="drink")) == 2


def test_a_folder_is_kept_current_until_it_is_left_alone(app: App, folder: Path) -> None:
    """Each source's result is heard; what is not a source any more is not synced."""
    (folder / "cocoa.md").write_text("# Cocoa\n\nHot cocoa.\n")
    heard: list[sync.SourceResult] = []
    result = sync.run(app, sync.SyncRequest(interval_min=0), on_source=heard.append)
    assert (result.added, list(result.sources)) == (1, heard)
    assert jobs.jobs_left(app) > 0
    (source,) = sources.list_sources(app).sources
    assert sources.remove_source(app, source.origin_id) == source
    assert sync.run(app, sync.SyncRequest(interval_min=0)).sources == ()


def test_a_note_is_a_job_until_workers_place_it(app: App) -> None:
    """Then it can be read by its path, and taken back."""
    job_id = notes.add_note(app, notes.AddNoteRequest(data=b"Buy oats", tags=("errand",)))
    assert jobs.show_job(app, job_id).status == "queued"
    assert [job.job_id for job in jobs.list_jobs(app, 10).jobs] == [job_id]
    with workers_if(app, wanted=True) as workers:
        assert workers is not None
        workers.drain()
    path = jobs.show_job(app, job_id).path
    assert path is not None
    assert b"Buy oats" in notes.read_note(app, path, app.caller)
    assert notes.undo(app, job_id).path == path
    with pytest.raises(UsageError):
        jobs.retry_job(app, job_id)


def test_a_token_is_made_listed_and_taken_away(app: App) -> None:
    """Its secret is returned once, and is nowhere in the list."""
    secret = tokens.add_token(app, tokens.AddTokenRequest(name="bob", role="writer"))
    (row,) = tokens.list_tokens(app).tokens
    assert (row.name, row.role) == ("bob", "writer")
    assert secret not in str(row)
    assert tokens.remove_token(app, "bob") == "bob"
    with pytest.raises(NotFound):
        tokens.remove_token(app, "bob")


def test_the_model_is_changed_and_changed_back(app: App) -> None:
    """Without a change there is nothing to go back to."""
    models = embedder.list_embedders(app)
    assert (models.next, models.docs_left) == (None, 0)
    embedder.change_embedder(app, embedder.ChangeEmbedderRequest(model="hashing"))
    assert embedder.list_embedders(app) == models
    with pytest.raises(UsageError):
        embedder.roll_back(app)


def test_a_home_is_counted_checked_and_backed_up(app: App, tmp_path: Path) -> None:
    """And what was backed up is verified, and restored, as this user's own."""
    assert stats.run(app).docs == {"active": 2}
    assert check.run(app).sound
    assert doctor.run(app).findings is not None
    assert compact.run(app, compact.CompactRequest(dry_run=True)).dry_run
    assert signals.list_signals(app, with_closed=True).signals == []
    home = app.paths.root
    made = backups.create_backup(app, backups.CreateBackupRequest(reason="test"))
    assert [backup.name for backup in backups.list_backups(home).backups] == [made.backup.name]
    assert backups.verify_backups(home).sound
    restored = backups.restore_backup(home, made.backup.name, str(tmp_path / "restored"))
    assert (restored.is_own, restored.restored.backup.docs) == (True, 2)


def test_a_home_that_is_held_back_is_not_well() -> None:
    """It says why, and that nothing opens it."""
    health = doctor.refused(HeldBack("it is not on the list"))
    assert not health.well
    assert health.findings[0].place == "home"


def test_workers_begin_with_the_first_doc(app: App, folder: Path) -> None:
    """Where nothing changed none starts; what is added is worked on before the add has ended."""
    begun: list[bool] = []
    with add.adder(app, add.AddRequest(tags=("drink",))) as adder:
        with workers_if(app, wanted=True) as workers:
            assert workers is not None
            assert adder.add([str(folder)]).unchanged == 2
            workers.drain()
            begun.append(workers.have_begun)
            (folder / "cocoa.md").write_text("# Cocoa\n\nHot cocoa.\n")
            assert adder.add([str(folder / "cocoa.md")]).added == 1
            begun.append(workers.have_begun)
            workers.drain()
        assert app.ingestor.on_commit == []
    assert begun == [False, True]
    assert jobs.count_jobs(app).ready == 0
    assert app.searcher.search(SearchRequest(query="cocoa"), OPERATOR).hits


def test_an_unchanged_add_does_what_was_left_to_do(app: App, folder: Path) -> None:
    """Jobs of a call that did not wait, and caches that are gone, are seen to all the same."""
    (folder / "cocoa.md").write_text("# Cocoa\n\nHot cocoa.\n")
    request = add.AddRequest(tags=("drink",))
    with add.adder(app, request) as adder:
        assert adder.add([str(folder)]).added == 1
    assert jobs.count_jobs(app).ready == 1
    with add.adder(app, request) as adder, workers_if(app, wanted=True) as workers:
        assert workers is not None
        assert adder.add([str(folder)]).unchanged == 3
        workers.drain()
        workers.catch_up()
    assert jobs.count_jobs(app).ready == 0
    manifests = sorted(app.paths.index.rglob("manifest.json"))
    app.lexical.close()
    shutil.rmtree(app.paths.index / "lexical")
    assert not app.lexical.is_level(app.store)
    assert app.catch_up() == []
    assert sorted(app.paths.index.rglob("manifest.json")) == manifests
    assert app.lexical.is_level(app.store)
    # A file that differs from what the manifest names is looked at.
    segment = next((app.paths.index / "lexical").rglob("*.term"))
    segment.write_bytes(segment.read_bytes()[:-1])
    assert not app.lexical.is_level(app.store)
