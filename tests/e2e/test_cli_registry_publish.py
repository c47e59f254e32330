"""Publishing entries as plain files: only what changed, and nothing that is wrong."""

import tarfile
from pathlib import Path

import pytest
from registry_host import Publisher, Reader, entry_text, published


@pytest.fixture
def publisher(tmp_path: Path) -> Publisher:
    return published(tmp_path)


def test_publishing_again_changes_only_what_changed(publisher: Publisher) -> None:
    """The same entries give the same bytes; an edit with a new version its own files alone."""
    before = publisher.files()
    assert publisher.publish()["unchanged"] == 3
    assert publisher.files() == before
    publisher.write("boats", "1.1.0", "another text")
    report = publisher.publish()
    assert (report["updated"], report["unchanged"], report["embedded"]) == (1, 2, 2)
    after = publisher.files()
    changed = {path for path in before if before[path] != after[path]}
    assert {path.rpartition("/")[2] for path in changed} == {"index.json", "boats.md", "boats.bin"}
    (publisher.source / "wood.md").unlink()
    assert publisher.publish()["removed"] == 1
    assert not [path for path in publisher.files() if "wood" in path]


def test_a_changed_text_needs_a_new_version(publisher: Publisher) -> None:
    """Nothing is published, and the file is named with its line; nor may a version go back."""
    before = publisher.files()
    publisher.write("boats", body="another text")
    publisher.write("sails", "0.9.0")
    said = publisher.call()
    assert said.code == 6
    assert f"{publisher.source}/boats.md:2: the text of boats has changed" in said.err
    assert f"{publisher.source}/sails.md:2: sails 0.9.0 is lower than 1.0.0" in said.err
    assert publisher.files() == before


def test_a_faulty_file_holds_all_back_unless_it_is_skipped(publisher: Publisher) -> None:
    """Each problem has its file and line; what was published of a skipped entry stays."""
    before = publisher.files()
    publisher.write("oars")
    (publisher.source / "no.md").write_text("---\ntitle: No id\nversion: one\n---\ntext")
    (publisher.source / "z-twice.md").write_text(entry_text("oars"))
    publisher.write("boats", body="another text")
    said = publisher.call()
    assert said.code == 6
    assert f"{publisher.source}/no.md:1: zettel_id is missing" in said.err
    assert f"{publisher.source}/no.md:3: version is not a semantic version" in said.err
    assert f"{publisher.source}/z-twice.md:2: {publisher.source}/" in said.err
    assert publisher.files() == before
    skipped = publisher.call("--skip-bad", "--json")
    assert (skipped.code, skipped.json["new"], skipped.json["entries"]) == (3, 1, 4)
    assert publisher.files()["entries/boats.md"] == before["entries/boats.md"]


def test_a_tar_has_the_files_of_the_folder(publisher: Publisher, tmp_path: Path) -> None:
    """Unpacked it is a registry; published again it is the same bytes."""
    tar = tmp_path / "all.tar"
    key = tmp_path / "key"
    assert publisher.rig.call("pack", "keygen", key).code == 0
    command = ("registry", "publish", publisher.source, "--to", tar, "--key", key)
    assert publisher.rig.call(*command).code == 0
    first = tar.read_bytes()
    assert publisher.rig.call(*command).code == 0
    assert tar.read_bytes() == first
    with tarfile.open(tar) as archive:
        archive.extractall(tmp_path / "unpacked", filter="data")
    names = {path for path in publisher.files() if path != "index.json"}
    unpacked = Publisher.__new__(Publisher)
    unpacked.to = tmp_path / "unpacked"
    assert set(unpacked.files()) == {*names, "index.json", "index.sig"}
    reader = Reader(tmp_path / "reader")
    reader.follow("team", unpacked.to)
    assert reader.sync()["ready"] == 3
