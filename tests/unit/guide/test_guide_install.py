"""kb's own entries are written, brought up to date, and left alone where somebody touched them."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from fakes import FakeClock

import kb.knowledge.guide.install
from kb.errors import ReadOnlyHome
from kb.knowledge.guide.core import CoreEntry
from kb.knowledge.guide.install import Installed, install
from kb.store.memory import MemoryEnvironment
from kb.store.store import Store


def entry(ident: str, version: str = "1.0.0", body: str = "text") -> CoreEntry:
    text = f"---\nzettel_id: {ident}\ntitle: T\nversion: {version}\n---\n{body}\n"
    return CoreEntry(zettel_id=ident, version=version, data=text.encode())


class Shop:
    """A folder, a store, and what ships."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        self.store = Store(MemoryEnvironment(), FakeClock())
        self.shipped = [entry("a"), entry("b")]
        monkeypatch.setattr(kb.knowledge.guide.install, "core_entries", lambda: tuple(self.shipped))

    def install(self) -> Installed:
        return install(self.store, self.folder)

    def file(self, ident: str) -> Path:
        return self.folder / f"{ident}.md"


@pytest.fixture
def shop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    return Shop(tmp_path / "knowledge" / "kb", monkeypatch)


def test_what_is_missing_is_written_once(shop: Shop) -> None:
    """Then all is unchanged, byte for byte, and nothing lies beside the entries."""
    assert shop.install().written == ("a", "b")
    files = {path.name: path.read_bytes() for path in shop.folder.iterdir()}
    assert files == {one.file_name: one.data for one in shop.shipped}
    again = shop.install()
    assert (again.unchanged, again.written, again.updated) == (("a", "b"), (), ())


def test_a_later_version_comes_and_an_earlier_does_not(shop: Shop) -> None:
    """By semantic versions: 1.10.0 is later than 1.9.0, and a new entry is just written."""
    shop.shipped = [entry("a", "1.9.0"), entry("b", "2.0.0")]
    shop.install()
    shop.shipped = [entry("a", "1.10.0", "new"), entry("b", "1.9.9", "old"), entry("c")]
    done = shop.install()
    assert (done.updated, done.unchanged, done.written) == (("a",), ("b",), ("c",))
    assert shop.file("a").read_bytes() == shop.shipped[0].data
    assert b"2.0.0" in shop.file("b").read_bytes()
    shop.shipped[0] = entry("a", "1.11.0", "newer still")
    assert shop.install().updated == ("a",)


def test_an_edited_entry_is_never_overwritten(shop: Shop) -> None:
    """Whatever comes later; the others still come."""
    shop.install()
    mine = shop.file("a").read_bytes() + b"mine\n"
    shop.file("a").write_bytes(mine)
    shop.shipped = [entry("a", "3.0.0", "new"), entry("b", "3.0.0", "new")]
    done = shop.install()
    assert (done.edited, done.updated) == (("a",), ("b",))
    assert shop.file("a").read_bytes() == mine


def test_a_file_of_somebody_else_is_not_ours(shop: Shop) -> None:
    """One that was there before is taken for edited, as is a folder of that name."""
    shop.file("a").parent.mkdir(parents=True)
    shop.file("a").write_text("a note of mine")
    shop.file("b").mkdir()
    assert shop.install().edited == ("a", "b")
    assert shop.file("a").read_text() == "a note of mine"


def test_a_removed_entry_stays_away_until_all_are(shop: Shop) -> None:
    """Removing one is a wish; removing the folder asks for all of them anew."""
    shop.install()
    shop.file("a").unlink()
    done = shop.install()
    assert (done.removed, done.unchanged) == (("a",), ("b",))
    assert not shop.file("a").exists()
    shop.file("b").unlink()
    shop.folder.rmdir()
    assert shop.install().written == ("a", "b")


def test_a_crash_before_the_file_is_no_edit(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it ends between the note in the store and the file, the next run goes on."""
    shop.install()
    shop.shipped = [entry("a", "2.0.0", "new"), entry("b")]

    def ends(path: Path, content: bytes) -> Path:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(kb.knowledge.guide.install, "write_temporary", ends)
        with pytest.raises(KeyboardInterrupt):
            shop.install()
    assert shop.install().updated == ("a",)
    assert shop.file("a").read_bytes() == shop.shipped[0].data


def test_a_folder_that_cannot_be_made_is_named(shop: Shop) -> None:
    """The place is in the error."""
    shop.folder.parent.parent.joinpath("knowledge").write_text("a file")
    with pytest.raises(ReadOnlyHome, match="knowledge"):
        shop.install()
