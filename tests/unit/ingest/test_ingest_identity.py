"""No two sources have one id, whatever became of the first one at a place."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from homes import DAY_MIN, SmallHome

from kb.intake.ingest import ingest
from kb.intake.ingest.changes import move_doc, tombstone
from kb.intake.ingest.ingest import seen_record
from kb.model.doc import Doc
from kb.model.ids import Lsid, generation_lsid, split_generation
from kb.store import docs, generations
from kb.store.kv import WriteTxn
from kb.store.meta import FORMAT_WITHOUT_GENERATIONS, get_word, set_word
from kb.store.records import BIRTHS, DOCS
from kb.upkeep.check import Finding


@pytest.fixture
def home(tmp_path: Path) -> Iterator[SmallHome]:
    home = SmallHome(tmp_path / "home")
    yield home
    home.close()


def rename(home: SmallHome, doc: Doc, name: str) -> None:
    """Say that a doc's file has another name now, as a sync does."""
    request = home.request(name, "unread")
    assert request.stamp is not None
    seen = seen_record(request.lsid, doc.doc_id, doc.raw_sha256, request.stamp)
    with home.store.write() as txn:
        newest = docs.latest(txn, doc.source_no)
        assert newest is not None
        moved = msgspec.structs.replace(newest, source=request.source)
        move_doc(txn, home.store, moved, request.lsid, seen)


def compact(home: SmallHome, days: int = 0) -> None:
    for _ in range(2):
        home.compact(grace_min=0)
    home.wait_min(days * DAY_MIN)
    home.compact(grace_min=0)


def texts(home: SmallHome) -> dict[str, str]:
    """What each place says, by its newest doc and its passages."""
    with home.store.read() as txn:
        return {
            doc.source: home.content.read(doc.md_path, doc.md_sha256).decode()
            for doc in docs.all_latest(txn)
            if doc.status == "active"
        }


def ids(home: SmallHome) -> list[str]:
    with home.store.read() as txn:
        return [doc.doc_id for doc in docs.all_latest(txn)]


def renamed_after_compaction(home: SmallHome) -> None:
    """An edit, a compaction that takes the first version, a rename, and a new file and its edit."""
    home.add("a.md", "# Alpha\n\nfirst\n")
    alpha = home.add("a.md", "# Alpha\n\nsecond, harbour\n")
    compact(home)
    rename(home, alpha, "b.md")
    home.add("a.md", "# New\n")
    home.add("a.md", "# New edited\n")


def test_a_name_is_free_after_a_rename(home: SmallHome) -> None:
    """The renamed doc stays what it is, though its first version is gone."""
    renamed_after_compaction(home)
    assert texts(home) == {
        "/notes/a.md": "# New edited\n",
        "/notes/b.md": "# Alpha\n\nsecond, harbour\n",
    }
    assert len(set(ids(home))) == 2
    assert home.check().findings == ()


def test_each_birth_at_a_place_has_a_number(home: SmallHome) -> None:
    """Three sources in turn begin at one place, each purged or moved away, and share no id."""
    given: list[str] = []
    for text in ("one", "two", "three"):
        doc = home.add("a.md", f"# {text}\n")
        given.append(doc.doc_id)
        tombstone(home.store, [doc.doc_id])
        compact(home, days=40)
        assert texts(home) == {}
    assert len(set(given)) == 3
    with home.store.read() as txn:
        assert generations.last_generation(txn, Lsid("file:///notes/a.md")) == 3


def test_equal_histories_give_equal_ids(tmp_path: Path) -> None:
    """The ids in a home tell nothing of what else was ever added there."""
    found: list[list[str]] = []
    for others in (0, 7):
        home = SmallHome(tmp_path / str(others))
        for number in range(others):
            home.add(f"other-{number}.md", f"# Other {number}\n")
        alpha = home.add("a.md", "# Alpha\n")
        rename(home, alpha, "b.md")
        again = home.add("a.md", "# Beta\n")
        found.append([alpha.doc_id, again.doc_id])
        home.close()
    assert found[0] == found[1]


def test_a_place_that_another_took_is_not_freed(home: SmallHome) -> None:
    """To purge a source forgets its place only while the place is its own."""
    gone = home.add("a.md", "# Gone\n")
    rename(home, gone, "b.md")
    tombstone(home.store, [gone.doc_id])
    here = home.add("c.md", "# Here\n")
    rename(home, here, "b.md")
    compact(home, days=40)
    with home.store.read() as txn:
        found = docs.latest_of(txn, Lsid("file:///notes/b.md"))
    assert found is not None
    assert found.doc_id == here.doc_id
    assert home.check().findings == ()


@pytest.mark.parametrize("birth", [1, 2, 17, 1 << 40])
@pytest.mark.parametrize("place", ["file:///a", "url:http://h/#2", "user:u/birth:2:a"])
def test_an_lsid_is_told_apart(place: str, birth: int) -> None:
    """Birthplace and number can be read from an lsid again."""
    assert split_generation(generation_lsid(Lsid(place), birth)) == (place, birth)


def as_of_the_format_before(home: SmallHome) -> None:
    with home.store.write() as txn:
        for key, _ in list(BIRTHS.scan(txn)):
            BIRTHS.delete(txn, key)
        set_word(txn, "format", FORMAT_WITHOUT_GENERATIONS)


def test_a_home_without_counts_is_migrated(home: SmallHome) -> None:
    """A home of the format before is sound, and counts its births with its next new doc."""
    home.add("a.md", "# Alpha\n\nfirst\n")
    alpha = home.add("a.md", "# Alpha\n\nsecond, harbour\n")
    compact(home)
    rename(home, alpha, "b.md")
    as_of_the_format_before(home)
    assert home.check().findings == ()
    home.add("a.md", "# New\n")
    home.add("a.md", "# New edited\n")
    with home.store.read() as txn:
        assert get_word(txn, "format") != FORMAT_WITHOUT_GENERATIONS
    assert len(texts(home)) == len(set(ids(home))) == 2
    assert home.check().findings == ()


def lose(home: SmallHome, what: str) -> None:
    """Damage the counts of births."""
    with home.store.write() as txn:
        for key, stored in list(txn.scan("births")):
            if what == "removed":
                BIRTHS.delete(txn, key)
            else:
                txn.put("births", key, stored[:-1] + bytes([stored[-1] ^ 1]))


@pytest.mark.parametrize("what", ["removed", "flipped"])
def test_lost_counts_are_made_again(home: SmallHome, what: str) -> None:
    """A count that is lost is named, and after the repair no number is given again."""
    doc = home.add("a.md", "# Alpha\n")
    rename(home, doc, "b.md")
    lose(home, what)
    assert home.check().findings != ()
    report = home.check(repair=True)
    assert report.sound
    again = home.add("a.md", "# Beta\n")
    assert again.doc_id != doc.doc_id
    assert len(texts(home)) == 2


def test_an_id_of_another_source_is_refused(
    home: SmallHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Should two sources ever come to one id, the second is refused and the first stays."""
    monkeypatch.setattr(ingest, "next_generation", lambda txn, place: 1)
    with pytest.raises(Exception, match="another source has its id"):
        renamed_after_compaction(home)
    assert texts(home)["/notes/b.md"] == "# Alpha\n\nsecond, harbour\n"


@pytest.fixture
def collided(home: SmallHome, monkeypatch: pytest.MonkeyPatch) -> SmallHome:
    """A home as a program without births left it: the new file's doc over the renamed one's."""

    def put(txn: WriteTxn, doc: Doc) -> None:
        if (known := docs.get(txn, doc.doc_id)) is not None and known.source_no != doc.source_no:
            DOCS.delete(txn, doc.doc_id.encode())
        put_new_version(txn, doc)

    put_new_version = docs.put_new_version
    with monkeypatch.context() as patched:
        patched.setattr(ingest, "next_generation", lambda txn, place: 1)
        patched.setattr(docs, "put_new_version", put)
        renamed_after_compaction(home)
    assert "/notes/b.md" not in texts(home)
    return home


def problems(findings: tuple[Finding, ...]) -> dict[str, str]:
    return {found.place: found.problem for found in findings}


def test_an_overwritten_doc_is_brought_back(collided: SmallHome) -> None:
    """A check names it by its file, and a repair takes it in again, for its owner alone."""
    told = problems(collided.check().findings)
    assert told["/notes/b.md"] == "another source's doc has its id and its place"
    assert collided.check(repair=True).sound
    collided.work()
    assert texts(collided) == {
        "/notes/a.md": "# New edited\n",
        "/notes/b.md": "# Alpha\n\nsecond, harbour\n",
    }
    with collided.store.read() as txn:
        back = docs.latest_of(txn, Lsid("file:///notes/b.md"))
    assert back is not None
    assert (back.visibility, back.tags) == ("private", ("recovered",))
    assert collided.check().findings == ()


def test_what_no_raw_file_holds_is_told_and_freed(collided: SmallHome) -> None:
    """Without its bytes an overwritten doc is named, and its place is free for the file."""
    for found in (collided.root / "raw").rglob("*.md"):
        if b"harbour" in found.read_bytes():
            found.unlink()
    assert "/notes/b.md" in problems(collided.check().findings)
    assert collided.check(repair=True).sound
    collided.work()
    assert texts(collided) == {"/notes/a.md": "# New edited\n"}
    collided.add("b.md", "# Alpha\n\nsecond, harbour\n")
    assert len(texts(collided)) == 2
