"""What a person or another process does while a source is being read."""

from collections.abc import Callable
from pathlib import Path

import pytest
from sync_home import SyncHome

from kb.intake.canonicalize import CanonicalizeInput, Parser
from kb.intake.ingest.changes import tombstone
from kb.model.text import Canonical


class Interrupted(Parser):
    """A parser beside whose first document something else happens."""

    def __init__(self, event: Callable[[], object]) -> None:
        super().__init__()
        self._events = [event]

    def parse(self, source: CanonicalizeInput) -> Canonical:
        if self._events:
            self._events.pop()()
        return super().parse(source)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "n"
    folder.mkdir()
    for name in ("a.md", "b.md"):
        (folder / name).write_text(f"# About {name}\n\nA note that says {name}.\n")
    return folder


def test_a_removal_during_a_sync_holds(kept: SyncHome, folder: Path) -> None:
    """A doc that a person removes while its edit is being read stays removed."""
    kept.add(folder)
    (doc,) = [doc for doc in kept.docs().values() if doc.title == "About a.md"]
    (folder / "a.md").write_text("# About a.md\n\nAn edit.\n")
    kept.parser = Interrupted(lambda: tombstone(kept.app.store, [doc.doc_id]))
    line = kept.line()
    assert (line.skipped, line.updated, line.unchanged) == (1, 0, 1)
    assert kept.names() == {"b.md"}
    assert kept.add(folder).updated == 1
    assert kept.names() == {"a.md", "b.md"}
    assert kept.is_sound()


def test_a_file_that_goes_during_an_add_comes_back(kept: SyncHome, folder: Path) -> None:
    """That an add has just seen it does not make its going look like a person's removal."""
    kept.add(folder)
    said = (folder / "a.md").read_text()
    (folder / "b.md").write_text("An edit.")
    (folder / "a.md").write_text(said)

    def go() -> None:
        (folder / "a.md").unlink()
        assert kept.line().removed == 1

    kept.parser = Interrupted(go)
    kept.add(folder)
    (folder / "a.md").write_text(said)
    assert kept.line().resurrected == 1
    assert kept.names() == {"a.md", "b.md"}
