"""Bytes that earlier programs wrote, opened with today's code.

`samples.json` holds, per record format, every record type's table, key and stored bytes in hex. A
format is added by `write_samples` when one is retired; what is there is never rewritten.
"""

# Long because the samples of all tables stand together.

import json
from pathlib import Path
from typing import Any, Final

import msgspec
import pytest

from kb.errors import StoreDamaged
from kb.model.code import Definition
from kb.model.doc import Coverage, Doc, LedgerEntry, PackPart, SourceStamp, VersionPointer
from kb.model.embedder import EmbedderChoice, EmbedderSet, EmbedderSpec
from kb.model.entry import EntryMeta
from kb.model.ids import ChunkId, ChunkNo, DocId, JobId, Lsid, SourceNo
from kb.model.job import Job, LogEntry
from kb.model.mail import MailHead
from kb.model.node import CacheContents, Follower, WorkerRow
from kb.model.note import Note, NoteText
from kb.model.origin import Origin
from kb.model.pack import PackRecord
from kb.model.push import Push
from kb.model.registry import PulledEntry, RegistryRecord
from kb.model.sheet import SheetRows
from kb.model.signal import Signal
from kb.model.site import SiteOptions, SitePage
from kb.model.text import Chunk
from kb.model.token import Token
from kb.store import records
from kb.store.codec import RECORD_VERSION, RecordTable, seal, u64, unseal
from kb.store.keys import lsid_key, site_page_key, text_key, vector_key
from kb.store.memory import MemoryEnvironment
from kb.store.records import (
    AnsweredQuestion,
    ChunkRef,
    ContentPart,
    DocRef,
    Entity,
    HomeFile,
    JobRef,
    Orphan,
    SourceRef,
    StoredValue,
)

FILE: Final = Path(__file__).with_name("samples.json")
LSID: Final = Lsid("file:///notes/%E6%A0%87.md")
DOC: Final = DocId("d0123456789abcdef0123")
_MODEL: Final = EmbedderChoice(
    kind="sentence-transformers",
    model="a/b",
    query_prefix="query: ",
    passage_prefix="passage: ",
    scripts=("Latin",),
)
JOB: Final = JobId("j000000000007")
CHUNK: Final = ChunkId("c0123456789abcdef01234567")
VECTOR_KEY: Final = vector_key("model-a", "ab" * 16)
VECTOR: Final = bytes.fromhex("0000003f000080bf00005040")

# Per records constant: the key and the record that its sample holds.
SAMPLES: Final[dict[str, tuple[bytes, msgspec.Struct]]] = {
    "DOCS": (
        DOC.encode(),
        Doc(
            doc_id=DOC,
            lsid=LSID,
            source_no=SourceNo(3),
            version=2,
            title="标 title",
            source="/notes/标.md",
            kind="file",
            mime="text/markdown",
            tags=("a", "标"),
            date="2024-05-06",
            visibility="shared",
            owner="ada",
            status="active",
            raw_sha256="0" * 64,
            raw_path="raw/00/00.md",
            md_path="md/file/title--00--00.md",
            md_sha256="1" * 64,
            raw_bytes=1234,
            md_chars=1200,
            coverage=Coverage(pages=9, pages_with_text=7),
            canonicalizer="markdown-1",
            added_ms=1_700_000_000_000,
            updated_ms=1_700_000_000_001,
            front_lines=5,
            tags_given=("a",),
            title_given="标 title",
            moved_to=Lsid("file:///notes/new.md"),
            charset="windows-1251",
            entry=EntryMeta(
                zettel_id="a-title",
                entry_type="pattern",
                version="1.2.0-rc.1",
                author="ada",
                references=("other",),
            ),
            pack=PackPart(pack_id="boats", selector="hull"),
            aliases=("Another name",),
            links=("wiki:Plan", "path:../b.md"),
            created="2023-01-02",
            modified="2024-05-07T08:09:10+02:00",
            has_names=True,
            by_name=True,
            definitions=(
                Definition(start=0, signature=9, head_end=20, end=44, name=13, name_end=16),
            ),
            sheet_rows=(SheetRows(sheet="Rent", left="A", right="F", row=1, line=3, count=1),),
            mail=MailHead(sender="Ada <ada@example.org>", recipients=("b@c.d",), message_id="1@x"),
            hidden_run=3,
        ),
    ),
    "LSIDS": (lsid_key(LSID), SourceRef(source_no=SourceNo(3), lsid=LSID)),
    "VERSIONS": (u64(3), VersionPointer(doc_id=DOC, version=2, source_no=SourceNo(3))),
    "SOURCE_DOCS": (u64(3) + u64(2), DocRef(doc_id=DOC)),
    "SITE_PAGES": (
        site_page_key("s0123456789abcdef", "https://docs.example/a"),
        SitePage(
            url="https://docs.example/a",
            state="same",
            depth=2,
            doc="dropped",
            cursor='etag:"x"',
            raw_sha256="0" * 64,
            text_sha256="1" * 64,
            lastmod="2024-03-01",
            asked_ms=1_700_000_000_000,
            pass_no=3,
            failures=1,
            leads_to="https://docs.example/b",
            reason="says the same",
            is_late=True,
            is_own=True,
        ),
    ),
    "SOURCES": (
        b"s0123456789abcdef",
        Origin(
            origin_id="s0123456789abcdef",
            kind="url",
            location="https://example.org/a",
            machine="bob-1a2b3c",
            extensions=("md",),
            tags=("a",),
            visibility="shared",
            owner="ada",
            cursor='etag:"x"',
            added_ms=1_700_000_000_000,
            tried_ms=1_700_000_000_001,
            synced_ms=1_700_000_000_002,
            next_try_ms=1_700_000_000_003,
            failures=2,
            last_error="status 503",
            files_failed=3,
            gone_since_ms=1_700_000_000_004,
            holder="boot/7/99",
            held_until_ms=99,
            site=SiteOptions(include=("/a*",), exclude=("/b",), pages_max=9, depth_max=2),
        ),
    ),
    "EMBEDDERS": (
        b"set",
        EmbedderSet(
            active=EmbedderSpec(choice=_MODEL, fingerprint="st:a:1", dim=384),
            settings=_MODEL,
            next=EmbedderSpec(choice=_MODEL, fingerprint="st:a:2", dim=8),
            previous=EmbedderSpec(choice=_MODEL, fingerprint="st:a:3", dim=1),
            switched_ms=1_700_000_000_000,
            switched_run=5,
        ),
    ),
    "SEEN": (
        lsid_key(LSID),
        SourceStamp(
            lsid=LSID,
            doc_id=DOC,
            raw_sha256="0" * 64,
            size_bytes=1234,
            mtime_ns=1_700_000_000_000_000_001,
            ctime_ns=1_700_000_000_000_000_002,
            inode=2**63 + 5,
            seen_ms=1_700_000_000_000,
            left_out=2,
        ),
    ),
    "LEDGER": (
        DOC.encode(),
        LedgerEntry(doc_id=DOC, state="pending", new_paths=("raw/a", "md/b"), updated_ms=5),
    ),
    "JOBS": (
        JOB.encode(),
        Job(
            job_id=JOB,
            order=8,
            kind="embed",
            doc_id=DOC,
            dedupe_key=f"embed:{DOC}:model-a",
            priority=5,
            state="failed",
            attempts=5,
            attempts_max=5,
            token=6,
            not_before_ms=0,
            deadline_ms=0,
            last_error="no room",
            holder="boot/7/99",
            enqueued_ms=1_700_000_000_000,
        ),
    ),
    "JOBS_READY": (b"\x05" + u64(0) + u64(8), JobRef(job_id=JOB)),
    "JOBS_RUNNING": (JOB.encode(), JobRef(job_id=JOB)),
    "JOBS_FAILED": (JOB.encode(), JobRef(job_id=JOB)),
    "JOBS_DEDUPE": (text_key(f"embed:{DOC}:model-a"), JobRef(job_id=JOB)),
    "CHUNKS": (
        u64(11),
        Chunk(
            chunk_id=CHUNK,
            no=ChunkNo(11),
            doc_id=DOC,
            lsid=LSID,
            ordinal=4,
            text="a passage, 一段",
            start=100,
            end=113,
            heading=("A", "B"),
            page=2,
            line=9,
            text_hash="ab" * 16,
            tokens=6,
            source_no=SourceNo(3),
            entities=("hashtag:x",),
        ),
    ),
    "CHUNK_IDS": (CHUNK.encode(), ChunkRef(no=ChunkNo(11))),
    "SOURCE_CHUNKS": (u64(3) + u64(4), ChunkRef(no=ChunkNo(11))),
    "ENTITIES": (b"hashtag:x", Entity(kind="hashtag", surface="#X", key="hashtag:x")),
    "PACKS": (
        b"boats",
        PackRecord(
            pack_id="boats",
            location="/packs/boats/manifest.yaml",
            form="package",
            selector="pkg:harbour.boats",
            version="7",
            signed_by="q1Vx" + 39 * "A" + "=",
            content_hash="sha256:" + "0" * 64,
            visibility="shared",
            owner="ada",
            added_ms=1_700_000_000_000,
        ),
    ),
    "SIGNALS": (
        b"g0123456789ab",
        Signal(
            signal_id="g0123456789ab",
            kind="checkpoint",
            reason="before the move",
            context='{"step":3}',
            added_ms=1_700_000_000_000,
            user="ada",
            backup="20231114T221320Z-0a1b2c",
            done_ms=1_700_000_000_001,
        ),
    ),
    "TOKENS": (
        b"laptop",
        Token(
            name="laptop",
            user="ada",
            role="writer",
            sha256="5" * 64,
            added_ms=1_700_000_000_000,
        ),
    ),
    "NOTES": (
        JOB.encode(),
        Note(
            job_id=JOB,
            hint="kitchen",
            tags=("soup",),
            added_ms=1_700_000_000_000,
            path="kitchen/onion-soup.md",
            commit="ab" * 20,
            doc_id=DOC,
            reason="placed by rule: no model",
            is_done=True,
            owner="ada",
        ),
    ),
    "NOTE_TEXTS": (JOB.encode(), NoteText(text="# 汤\n")),
    "PUSHES": (
        b"origin",
        Push(
            remote="https://git.example/notes.git",
            branch="refs/heads/main",
            state="diverged",
            tried_commit="ab" * 20,
            pushed_commit="cd" * 20,
            remote_commit="ef" * 20,
            attempts=2,
            tried_ms=1_700_000_000_000,
            pushed_ms=1_700_000_000_001,
            next_ms=1_700_000_000_002,
            last_error="the remote has commits that are not here",
        ),
    ),
    "REGISTRIES": (
        b"team",
        RegistryRecord(
            name="team",
            location="https://knowledge.example",
            trust="A" * 43 + "=",
            order=2,
            added_ms=1_700_000_000_000,
            cursor='etag:"7"',
            index_sha256="0" * 64,
            read_ms=1_700_000_000_001,
        ),
    ),
    "PULLED": (
        b"a-title",
        PulledEntry(
            zettel_id="a-title",
            registry="team",
            version="1.10.0",
            sha256="0" * 64,
            wanted_sha256="1" * 64,
            pulled_ms=1_700_000_000_000,
        ),
    ),
    "QUESTIONS": (
        lsid_key("when may I keep a cat?\0file:///notes/lease.md"),
        AnsweredQuestion(
            query="when may I keep a cat?",
            place=Lsid("file:///notes/lease.md"),
            added_ms=1_700_000_000_000,
        ),
    ),
    "CONTENT": (
        lsid_key("raw/00/00.md") + bytes(4),
        ContentPart(
            data=b"# \xe6\xb1\xa4\n", path="raw/00/00.md", size_bytes=6, object="md/file/a.md.00"
        ),
    ),
    "HOME_FILES": (
        lsid_key("kb.toml"),
        HomeFile(path="kb.toml", size_bytes=6, sha256="ab" * 32, executable=True),
    ),
    "HOME_FILE_PARTS": (
        lsid_key("kb.toml") + bytes(4),
        ContentPart(data=b"[kb]\n\n", path="kb.toml"),
    ),
    "FOLLOWERS": (
        lsid_key("bob:/caches/lexical"),
        Follower(
            node="bob-1a2b3c",
            cache="/caches/lexical",
            log_seq=21,
            seen_ms=1_700_000_000_000,
            contents=CacheContents(
                log_seq=21,
                rows=40,
                digest="9f" * 16,
                answers="e1" * 16,
                analysis=3,
                is_checked=True,
                problem="lexical: 40 passages, but 41 are live",
            ),
        ),
    ),
    "WORKERS": (
        lsid_key("boot/7/99"),
        WorkerRow(
            node="bob-1a2b3c",
            holder="boot/7/99",
            model="hashing",
            since_ms=1_700_000_000_000,
            seen_ms=1_700_000_000_001,
            texts=12,
        ),
    ),
    "ORPHANS": (b"raw/00/00.md", Orphan(marked_ms=1_700_000_000_000, marked_run=4)),
    "LOG": (u64(21), LogEntry(nos=(11, 12), words=True, vectors=False, nonce=7)),
    "HOLDS": (lsid_key("file:///notes/a.md"), StoredValue(number=1_700_000_000_000, text="")),
    "BIRTHS": (lsid_key("file:///notes/a.md"), StoredValue(number=2, text="")),
    "META": (b"counter:chunk", StoredValue(number=12, text="")),
}


def record_tables() -> dict[str, RecordTable[Any]]:
    return {name: it for name, it in vars(records).items() if isinstance(it, RecordTable)}


def write_samples() -> None:
    """Add the samples of today's format to the file; run it once, before RECORD_VERSION moves."""
    stored = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
    if str(RECORD_VERSION) in stored:
        raise SystemExit(f"samples of record version {RECORD_VERSION} are there already")
    rows = {}
    for name, table in record_tables().items():
        key, record = SAMPLES[name]
        body = msgspec.msgpack.encode(record)
        rows[name] = {"key": key.hex(), "stored": seal(table.name, key, body).hex()}
    vector = seal("vectors", VECTOR_KEY, VECTOR).hex()
    rows["vectors"] = {"key": VECTOR_KEY.hex(), "stored": vector}
    stored[str(RECORD_VERSION)] = rows
    FILE.write_text(json.dumps(stored, indent=1) + "\n", encoding="utf-8")


STORED: Final = json.loads(FILE.read_text(encoding="utf-8")) if FILE.exists() else {}
CASES: Final = [(version, name) for version in STORED for name in SAMPLES]


# Fields that a record got after the first of it were stored.
LATER: Final = (
    ("NOTES", "owner", None),
    ("PACKS", "signed_by", ""),
    ("DOCS", "hidden_run", 0),
    ("DOCS", "aliases", ()),
    ("DOCS", "links", ()),
    ("DOCS", "created", None),
    ("DOCS", "modified", None),
    ("DOCS", "has_names", False),
    ("DOCS", "by_name", False),
    ("DOCS", "mail", None),
    ("SEEN", "left_out", 0),
    ("SOURCES", "site", None),
    ("SOURCES", "files_failed", 0),
    ("EMBEDDERS", "switched_run", 0),
    ("ORPHANS", "marked_run", 0),
    ("CONTENT", "object", ""),
    ("FOLLOWERS", "contents", None),
    ("LOG", "nonce", 0),
)


def stored_of(version: str, name: str) -> tuple[bytes, bytes]:
    row = STORED[version][name]
    return bytes.fromhex(row["key"]), bytes.fromhex(row["stored"])


@pytest.mark.parametrize(("version", "name"), CASES)
def test_a_stored_record_is_read(version: str, name: str) -> None:
    """What was stored under a record format is today's record, field by field, at its key."""
    key, stored = stored_of(version, name)
    table = record_tables()[name]
    wanted_key, wanted = SAMPLES[name]
    with MemoryEnvironment().write() as txn:
        txn.put(table.name, key, stored)
        assert (key, table.get(txn, key)) == (wanted_key, wanted)


@pytest.mark.parametrize("name", SAMPLES)
def test_todays_bytes_are_the_samples(name: str) -> None:
    """The same record is written as the same bytes, until RECORD_VERSION says otherwise."""
    table = record_tables()[name]
    key, record = SAMPLES[name]
    with MemoryEnvironment().write() as txn:
        table.put(txn, key, record)
        assert txn.get(table.name, key) == stored_of(str(RECORD_VERSION), name)[1]


@pytest.mark.parametrize("version", STORED)
def test_a_stored_vector_is_read(version: str) -> None:
    """A vector is little-endian float32 behind the same head."""
    key, stored = stored_of(version, "vectors")
    assert (key, unseal("vectors", key, stored)) == (VECTOR_KEY, VECTOR)


@pytest.mark.parametrize("name", SAMPLES)
def test_a_sample_in_another_table_is_refused(name: str) -> None:
    """No stored record passes for one of another table."""
    key, stored = stored_of(str(RECORD_VERSION), name)
    with pytest.raises(StoreDamaged):
        unseal("vectors", key, stored)


def test_every_record_type_has_a_sample() -> None:
    """A table of typed records without a sample is noticed here, as is a version without any."""
    assert set(SAMPLES) == set(record_tables())
    assert str(RECORD_VERSION) in STORED
    assert all(set(rows) == {*SAMPLES, "vectors"} for rows in STORED.values())


@pytest.mark.parametrize(("name", "field", "unsaid"), LATER)
def test_a_record_from_before_it_had_a_field(name: str, field: str, unsaid: object) -> None:
    """It is read as one in which that was not said."""
    key, record = SAMPLES[name]
    fields = msgspec.to_builtins(record, builtin_types=(bytes,)).items()
    before = {one: said for one, said in fields if one != field}
    table = record_tables()[name]
    with MemoryEnvironment().write() as txn:
        txn.put(table.name, key, seal(table.name, key, msgspec.msgpack.encode(before)))
        found = table.get(txn, key)
    assert found == msgspec.structs.replace(record, **{field: unsaid})


def test_every_field_is_told_apart() -> None:
    """Samples fill what may be left out, so that a field that is lost shows."""
    for name in ("DOCS", "CHUNKS", "JOBS", "SOURCES", "PACKS", "PUSHES", "SIGNALS"):
        record = SAMPLES[name][1]
        empty = [
            f.name for f in msgspec.structs.fields(record) if getattr(record, f.name) in (None, ())
        ]
        assert empty == [], name


if __name__ == "__main__":
    write_samples()
