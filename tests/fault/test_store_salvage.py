"""A store of which a page is lost: the check goes on, and the repair loses nothing in silence."""

from pathlib import Path

import pytest
from child_processes import start
from crash_rig import Rig
from store_page_sweep import filled, pages_of, sweep

from kb.store.store import Store

# `make test-crash` has every page.
SAMPLED = 10
WORDS = ("quince", "medlar", "damson")


@pytest.fixture(scope="module")
def rig(tmp_path_factory: pytest.TempPathFactory) -> Rig:
    return filled(tmp_path_factory.mktemp("whole"))


@pytest.mark.parametrize("share", range(2))
def test_some_lost_pages(rig: Rig, tmp_path: Path, share: int) -> None:
    """Both roots, and pages from all over the file."""
    pages = sorted({0, 1, *(number * pages_of(rig) // SAMPLED for number in range(SAMPLED))})
    told = sweep(rig, pages[share::2], tmp_path)
    assert told.untouched + told.mended <= len(pages[share::2])


@pytest.fixture
def damaged(tmp_path: Path) -> Rig:
    """A home in which the records of two docs are not what was written."""
    rig = Rig(tmp_path)
    rig.write({f"{word}.md": f"# About {word}\n\nHere stands {word}." for word in WORDS})
    rig.add()
    rows = rig.docs()
    with Store.open(rig.home / "store") as store, store.write() as txn:
        for name in ("quince.md", "medlar.md"):
            key = rows[name]["doc_id"].encode()
            stored = txn.get("docs", key)
            assert stored is not None
            txn.put("docs", key, stored[:-1] + bytes([stored[-1] ^ 1]))
    return rig


def test_lost_docs_come_back_at_their_place(damaged: Rig) -> None:
    """They are private and marked, and the others keep their records; the old file is kept."""
    checked = damaged.call("check", "--json")
    assert (checked.code, checked.json["sound"]) == (5, False)
    old = (damaged.home / "store" / "data.mdb").read_bytes()
    done = damaged.call("check", "--repair", "--json")
    assert done.code == 0, done
    said = done.json["salvaged"]
    assert (said["docs"], said["recovered"], said["lost"], said["lost_unnamed"]) == (1, 2, [], 0)
    assert [table["name"] for table in said["tables"]] == ["docs"]
    assert (damaged.home / said["kept_as"]).read_bytes() == old
    damaged.drain()
    damaged.check()
    assert damaged.found(WORDS) == {word: [f"{word}.md"] for word in WORDS}
    rows = damaged.docs()
    assert (rows["damson.md"]["tags"], rows["damson.md"]["version"]) == ([], 1)
    for name in ("quince.md", "medlar.md"):
        assert (rows[name]["visibility"], rows[name]["tags"]) == ("private", ["recovered"])
    assert sorted(path.name for path in (damaged.home / "store").iterdir()) == [
        said["kept_as"].rpartition("/")[2],
        "data.mdb",
        "lock.mdb",
    ]


def test_what_raw_does_not_hold_is_named_as_lost(damaged: Rig) -> None:
    """Once, with exit 5; then the home is sound, and the file can be added again."""
    for raw in (damaged.home / "raw").glob("*/*"):
        if b"quince" in raw.read_bytes():
            raw.unlink()
    done = damaged.call("check", "--repair", "--json")
    assert (done.code, done.json["sound"]) == (5, False)
    (lost,) = done.json["salvaged"]["lost"]
    assert lost["place"] == str(damaged.sources / "quince.md")
    left = [one for one in done.json["findings"] if not one["repaired"]]
    assert [one["place"] for one in left] == [lost["place"]]
    damaged.drain()
    damaged.check()
    assert damaged.found(WORDS)["quince"] == []
    assert damaged.add()["added"] == 1
    assert damaged.found(WORDS) == {word: [f"{word}.md"] for word in WORDS}


def test_a_store_in_use_is_not_replaced(damaged: Rig) -> None:
    """Whoever has it open would go on writing into the old one."""
    code = """
import sys
from pathlib import Path
from kb.store.store import Store
with Store.open(Path(sys.argv[1])):
    print("open", flush=True)
    sys.stdin.read()
"""
    before = (damaged.home / "store" / "data.mdb").stat().st_ino
    other = start(code, damaged.home / "store")
    try:
        assert other.stdout is not None
        assert other.stdout.readline() == "open\n"
        said = damaged.call("check", "--repair")
        assert (said.code, "in use by another process" in said.err) == (1, True)
    finally:
        other.kill()
        other.communicate()
    assert (damaged.home / "store" / "data.mdb").stat().st_ino == before
    assert damaged.call("check", "--repair").code == 0


@pytest.mark.parametrize(
    "step", ["kb.upkeep.check.salvage.shutil.rmtree", "kb.upkeep.check.salvage.os.replace"]
)
def test_a_salvage_that_ends_early_is_done_again(
    damaged: Rig, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """Until the new store takes the old one's place nothing of the old one changes."""
    before = (damaged.home / "store" / "data.mdb").read_bytes()

    class EndedError(BaseException):
        pass

    def end(*_: object, **__: object) -> None:
        raise EndedError

    with monkeypatch.context() as patch:
        patch.setattr(step, end)
        with pytest.raises(EndedError):
            damaged.call("check", "--repair")
    assert (damaged.home / "store" / "data.mdb").read_bytes() == before
    assert damaged.call("check", "--repair").code == 0
    damaged.drain()
    damaged.check()
