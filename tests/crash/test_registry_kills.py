"""Kills while entries are pulled: each is as it was or as published, and the next run ends it."""

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from crash_rig import assert_one_clear_line
from loopback import LoopbackServer, serving
from registry_host import Publisher, Reader

from kb.model import failpoints

KILLED: Final = -signal.SIGKILL
IDS: Final = ("boats", "sails", "wood")
OWN: Final = [name for name in failpoints.NAMES if name.startswith("registry.")]
# Before the docs are in, right after, and while their files are written.
POINTS: Final = [*OWN, "ingest.before_commit", "ingest.after_commit", "content.after_link"]


@pytest.fixture
def publisher(tmp_path: Path) -> Publisher:
    made = Publisher(tmp_path)
    for ident in IDS:
        made.write(ident, body="the first giraffe")
    made.publish()
    return made


@pytest.fixture
def server() -> Iterator[LoopbackServer]:
    with serving() as running:
        yield running


@pytest.fixture
def behind(tmp_path: Path, publisher: Publisher, server: LoopbackServer) -> Reader:
    """A home that has pulled all, and of which the registry has newer versions by now."""
    reader = Reader(tmp_path / "reader")
    reader.follow("team", publisher.served_by(server))
    reader.sync()
    for ident in IDS:
        publisher.write(ident, "1.1.0", body="the second zebra")
    publisher.publish()
    return reader


def assert_goes_on(reader: Reader, publisher: Publisher) -> None:
    """No file of a pull passes for a person's own; the rest comes, and nothing stays behind."""
    reader.check()
    found = set(reader.hits("giraffe")), set(reader.hits("zebra"))
    assert (found[0] | found[1], found[0] & found[1]) == (set(IDS), set())
    report = reader.sync()
    assert (report["kept"], report["failed"], report["seen"]) == (0, 0, 3)
    assert (reader.hits("giraffe"), reader.hits("zebra")) == ([], list(IDS))
    for ident in IDS:
        published = publisher.files()[f"entries/{ident}.md"]
        assert (reader.knowledge / f"{ident}.md").read_bytes() == published
    assert reader.counts(reader.sync()) == {"unchanged": 3}
    reader.check()
    assert reader.stats()["jobs"] == {"ready": 0, "running": 0, "failed": 0}


@pytest.mark.parametrize("name", POINTS)
def test_an_update_killed(behind: Reader, publisher: Publisher, name: str) -> None:
    """Each entry is found by its old text or its new one, and the next run ends it."""
    assert behind.run("sync-knowledge", armed=f"{name}=kill").code == KILLED
    assert behind.hit()[-1] == name
    assert_goes_on(behind, publisher)


@pytest.mark.parametrize("name", OWN)
def test_a_first_pull_killed(
    tmp_path: Path, publisher: Publisher, server: LoopbackServer, name: str
) -> None:
    """What is half there is taken for the registry's, also when a newer version is out by now."""
    reader = Reader(tmp_path / "reader")
    reader.follow("team", publisher.served_by(server))
    assert reader.run("sync-knowledge", armed=f"{name}=kill").code == KILLED
    for ident in IDS:
        publisher.write(ident, "1.1.0", body="the second zebra")
    publisher.publish()
    assert reader.counts(reader.sync()) == {"new": 3}
    assert (reader.hits("giraffe"), reader.hits("zebra")) == ([], list(IDS))
    reader.check()


@pytest.mark.parametrize("name", OWN)
def test_a_failing_disk_is_said(behind: Reader, publisher: Publisher, name: str) -> None:
    """One line and exit code 1; nothing is lost."""
    said = behind.run("sync-knowledge", armed=f"{name}=enospc")
    assert said.code == 1
    assert_one_clear_line(said)
    assert_goes_on(behind, publisher)
