"""Versions that follow a removal, and versions that another caller took in first."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from homes import SmallHome

from kb.intake.ingest.changes import tombstone
from kb.intake.ingest.request import StagedDoc
from kb.model.ids import DocId

TEA = "# Tea\n\nSteeped leaves.\n\n## More\n\n" + "Ordinary words of this part. " * 20
TEA_EDITED = TEA.replace("Ordinary", "Uncommon")


@pytest.fixture
def home(tmp_path: Path) -> Iterator[SmallHome]:
    made = SmallHome(tmp_path)
    yield made
    made.close()


def test_an_edited_file_comes_back_whole(home: SmallHome) -> None:
    """Passages that a removed doc and its next version share are found again, by both caches."""
    doc = home.add("tea.md", TEA)
    tombstone(home.store, [doc.doc_id])
    assert home.found("steeped") == []
    assert home.check().sound
    home.put("tea.md", TEA_EDITED)
    assert home.check().sound
    home.work()
    assert home.found("steeped") == home.found("uncommon") == [doc.source_no]
    assert home.check().sound


def staged_after(home: SmallHome, text: str, read_after: DocId | None) -> StagedDoc:
    request = msgspec.structs.replace(home.request("tea.md", text), read_after=read_after)
    return home.ingestor.stage(request)


@pytest.mark.parametrize("first", [True, False])
def test_bytes_read_before_another_took_a_version_in(home: SmallHome, first: bool) -> None:
    """They may be the older ones: nothing of them is kept, and the caller is told."""
    before = DocId("") if first else home.add("tea.md", "# Tea\n\nAn early draft.\n").doc_id
    slow = staged_after(home, TEA, before)
    later = home.put("tea.md", TEA_EDITED)
    assert home.ingestor.commit([slow]) == [None]
    (again,) = home.ingestor.commit([staged_after(home, TEA_EDITED, before)])
    assert again is not None
    assert (again.doc_id, again.status) == (later.doc_id, "unchanged")
    (newer,) = home.ingestor.commit([staged_after(home, TEA, later.doc_id)])
    assert newer is not None
    assert newer.status == "updated"
    home.work()
    assert home.check().sound


def test_bytes_that_name_no_moment_are_taken(home: SmallHome) -> None:
    """A note piped in cannot be read again: the last one said is the last version."""
    slow = staged_after(home, TEA, None)
    home.put("tea.md", TEA_EDITED)
    (outcome,) = home.ingestor.commit([slow])
    assert outcome is not None
    assert outcome.status == "updated"
