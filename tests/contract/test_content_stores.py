"""What every place for content promises: files of a folder, records of a database, a bucket."""

import contextlib
import random
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import s3_server
from homes import SmallHome
from postgres_server import PostgresServer

from kb.errors import StoreDamaged
from kb.model.ids import DocId, sha256_hex
from kb.store import docs
from kb.store.bucket.place import BucketPlace
from kb.store.bucket_content import LARGE_BYTES
from kb.store.content.files import ContentFiles
from kb.store.content.layout import raw_path
from kb.store.kv import WriteTxn
from kb.store.records import CONTENT
from kb.store.stored_content import head_key
from kb.upkeep.compactor import orphans

MARKDOWN = "md/file/rope--1--2.md"


class StoredHome:
    """A home, and what a test can do to its content from outside."""

    def __init__(self, home: SmallHome, server: s3_server.S3Server | None) -> None:
        self.home = home
        self.store = home.store
        self.content = home.content
        self.server = server

    def add(self, path: str, data: bytes) -> None:
        """Stage and keep a content, as a doc's transaction does."""
        self.content.stage(path, data)
        while not self.keep(path, data):
            self.content.stage(path, data)

    def keep(self, path: str, data: bytes) -> bool:
        with self.store.write() as txn:
            return self.content.keep(txn, path, data)

    def paths(self) -> list[str]:
        with self.store.read() as txn:
            return sorted(self.content.all_paths(txn))

    def remove(self, path: str) -> int | None:
        with self.store.write() as txn:
            removed = self.content.remove(txn, path)
        if removed is None:
            return None
        self.content.discard([removed.object] if removed.object else [])
        return removed.size_bytes

    def spoil(self, path: str, data: bytes | None) -> None:
        """Put other bytes in the place of a content, or none."""
        if isinstance(self.content, ContentFiles):
            file = self.home.file(path)
            file.unlink() if data is None else file.write_bytes(data)
            return
        with self.store.write() as txn:
            head = CONTENT.get(txn, head_key(path))
            assert head is not None
            if head.object:
                self._spoil_object(head.object, data)
            elif data is None:
                self.content.remove(txn, path)
            else:
                self._spoil_record(txn, path, data)

    def _spoil_record(self, txn: WriteTxn, path: str, data: bytes) -> None:
        from kb.store.stored_content import parts_of

        for key, part in parts_of(path, data):
            CONTENT.put(txn, key, part)

    def _spoil_object(self, name: str, data: bytes | None) -> None:
        assert self.server is not None
        (key,) = [key for key in self.server.objects if key.endswith(name)]
        del self.server.objects[key]
        if data is not None:
            self.server.objects[key] = data

    def compact(self) -> None:
        self.home.compact(grace_min=0)

    def kept_bytes(self) -> int:
        """All bytes of content, wherever they are and whether or not anything names them."""
        if isinstance(self.content, ContentFiles):
            return sum(self.home.file(path).stat().st_size for path in self.home.files())
        with self.store.read() as txn:
            stored = sum(len(part.data) for _, part in CONTENT.scan(txn))
        return stored + sum(map(len, self.server.objects.values() if self.server else ()))


@pytest.fixture(params=["files", "records", "bucket"])
def at(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[StoredHome]:
    """A home of each kind."""
    with contextlib.ExitStack() as stack:
        server = place = None
        if request.param == "bucket":
            server = stack.enter_context(s3_server.serving())
            for name, value in s3_server.ENVIRONMENT.items():
                monkeypatch.setenv(name, value)
            place = BucketPlace(url=f"s3://{s3_server.BUCKET}/kb", endpoint=server.endpoint)
        postgres: PostgresServer | None = None
        if request.param != "files":
            postgres = request.getfixturevalue("postgres")
        home = SmallHome(tmp_path / "home", postgres.new_address() if postgres else None, place)
        stack.callback(home.close)
        yield StoredHome(home, server)


def large(seed: int = 0) -> bytes:
    return random.Random(seed).randbytes(LARGE_BYTES + 1 + seed)


def path_of(data: bytes) -> str:
    return raw_path(sha256_hex(data), "bin")


@pytest.mark.parametrize("data", [b"", b"rope", large()], ids=["empty", "small", "large"])
def test_what_is_kept_is_read(at: StoredHome, data: bytes) -> None:
    """The bytes come back as they were, under the path that records name."""
    path = path_of(data)
    at.add(path, data)
    assert at.content.read(path, sha256_hex(data)) == data
    with at.store.read() as txn:
        assert at.content.size_of(txn, path) == len(data)
    assert at.paths() == [path]


def test_what_is_kept_twice_is_there_once(at: StoredHome) -> None:
    """Whoever brings the same bytes again adds nothing."""
    data = large()
    for _ in range(2):
        at.add(path_of(data), data)
    assert at.paths() == [path_of(data)]
    assert at.kept_bytes() == len(data)


def test_another_length_under_a_name_is_damage(at: StoredHome) -> None:
    """A name stands for its bytes: others are refused, and those that are there stay."""
    data = large()
    at.add(path_of(data), data)
    with pytest.raises(StoreDamaged, match="another file has this name"):
        at.add(path_of(data), data + b"x")
    assert at.content.read(path_of(data), sha256_hex(data)) == data


def test_what_is_not_committed_is_not_named(at: StoredHome) -> None:
    """A transaction that ends by an error names nothing, and may be tried again."""
    data = large()
    at.content.stage(path_of(data), data)

    def fail() -> None:
        with at.store.write() as txn:
            assert at.content.keep(txn, path_of(data), data)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        fail()
    assert at.keep(path_of(data), data)
    assert at.content.read(path_of(data), sha256_hex(data)) == data


@pytest.mark.parametrize("path", [path_of(large()), MARKDOWN])
@pytest.mark.parametrize("found", [None, b"other bytes", b""])
def test_damage_is_found_and_mended(at: StoredHome, path: str, found: bytes | None) -> None:
    """Nobody is given bytes that were not written; `replace` brings the right ones back."""
    data = large()
    at.add(path, data)
    at.spoil(path, found)
    with pytest.raises(StoreDamaged):
        at.content.read(path, sha256_hex(data))
    at.content.replace(path, data)
    assert at.content.read(path, sha256_hex(data)) == data


def test_what_is_missing_is_damage(at: StoredHome) -> None:
    """A path that nothing is kept under is an error, not empty bytes."""
    with pytest.raises(StoreDamaged):
        at.content.read(path_of(b"x"), sha256_hex(b"x"))


@pytest.mark.parametrize("data", [b"rope", large()], ids=["small", "large"])
def test_what_is_removed_is_gone(at: StoredHome, data: bytes) -> None:
    """A removal says how much it freed, and leaves no byte; a second one finds nothing."""
    at.add(path_of(data), data)
    assert at.remove(path_of(data)) == len(data)
    assert at.remove(path_of(data)) is None
    assert (at.paths(), at.kept_bytes()) == ([], 0)


def test_what_nobody_named_goes_in_two_compactions(at: StoredHome) -> None:
    """A crash between bytes and record leaves garbage, which is marked first and then removed."""
    data = large()
    at.content.stage(path_of(data), data)
    at.compact()
    at.compact()
    assert (at.paths(), at.kept_bytes()) == ([], 0)
    assert at.home.count("orphans") == 0


def test_two_compactions_between_bytes_and_record_lose_nothing(at: StoredHome) -> None:
    """A doc's transaction notices that its bytes were removed, and they are written again."""
    text = "rope " * LARGE_BYTES
    staged = at.home.stage("a.md", text)
    at.compact()
    at.compact()
    doc = at.home.doc(at.home.commit(staged))
    assert doc is not None
    assert at.content.read(doc.raw_path, doc.raw_sha256) == text.encode()


def test_a_mark_does_no_harm_to_what_is_taken_into_use(at: StoredHome) -> None:
    """Bytes that a compaction has marked stay, if a doc names them before the next one."""
    text = "rope " * LARGE_BYTES
    staged = at.home.stage("a.md", text)
    at.compact()
    doc = at.home.doc(at.home.commit(staged))
    assert doc is not None
    at.compact()
    at.compact()
    assert at.content.read(doc.raw_path, doc.raw_sha256) == text.encode()


def test_a_doc_that_comes_between_a_look_and_a_removal_keeps_its_bytes(
    at: StoredHome, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A compaction looks again, in the transaction that removes, at what it has found unnamed."""
    text = "rope " * LARGE_BYTES
    staged = at.home.stage("a.md", text)
    at.compact()
    added: list[DocId] = []
    drop = orphans._drop_stale_marks

    def commit_first(*arguments: Any) -> None:
        added.append(at.home.commit(staged))
        drop(*arguments)

    with monkeypatch.context() as patch:
        patch.setattr(orphans, "_drop_stale_marks", commit_first)
        at.compact()
    at.compact()
    doc = at.home.doc(added[0])
    assert doc is not None
    assert at.content.read(doc.raw_path, doc.raw_sha256) == text.encode()


def test_of_many_writers_each_has_its_bytes(at: StoredHome) -> None:
    """Threads that bring the same content at once all find it, and one copy stays."""
    data = large()
    threads = [threading.Thread(target=at.add, args=(path_of(data), data)) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert at.content.read(path_of(data), sha256_hex(data)) == data
    at.compact()
    with at.store.read() as txn:
        named = [path for path in at.content.all_paths(txn) if path == path_of(data)]
    assert named == [path_of(data)]


@pytest.mark.parametrize("seed", range(2))
def test_a_random_history_keeps_what_docs_name_and_nothing_else(at: StoredHome, seed: int) -> None:
    """Adds that are put off, edits, removals and compactions in any order, against a dictionary."""
    chance = random.Random(seed)
    known: dict[str, str] = {}
    waiting = []
    texts = [f"{word} " * (LARGE_BYTES // 4) for word in ("hemp", "jute", "sisal", "coir")]
    for _ in range(24):
        name = f"{chance.randrange(4)}.md"
        match chance.randrange(6):
            case 0 | 1:
                text = chance.choice(texts)
                waiting.append((name, text, at.home.stage(name, text)))
            case 2 | 3 if waiting:
                # Whoever was stopped comes later, in any order.
                name, text, staged = waiting.pop(chance.randrange(len(waiting)))
                if at.home.ingestor.commit([staged])[0] is not None:
                    known[name] = text
            case 4 if waiting:
                waiting.pop()
            case _:
                at.compact()
        _check(at, known)
    waiting.clear()
    for _ in range(3):
        at.home.work("chunk")
        at.compact()
    _check(at, known)
    with at.store.read() as txn:
        kept = {p for doc in docs.all_docs(txn) for p in (doc.raw_path, doc.md_path)}
    assert set(at.paths()) == kept
    assert at.home.check().sound


def _check(at: StoredHome, known: dict[str, str]) -> None:
    with at.store.read() as txn:
        latest = {doc.place.rpartition("/")[2]: doc for doc in docs.all_latest(txn)}
    assert set(latest) == set(known)
    for name, text in known.items():
        doc = latest[name]
        assert at.content.read(doc.raw_path, doc.raw_sha256) == text.encode()
        assert at.content.read(doc.md_path, doc.md_sha256)
