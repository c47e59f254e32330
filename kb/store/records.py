"""The typed tables of a store. Field names and table names are the file format."""

from typing import Final

from msgspec import Struct

from kb.model.doc import Doc, LedgerEntry, SourceStamp, VersionPointer
from kb.model.embedder import EmbedderSet
from kb.model.ids import ChunkNo, DocId, JobId, Lsid, SourceNo
from kb.model.job import Job, LogEntry
from kb.model.node import Follower, WorkerRow
from kb.model.note import Note, NoteText
from kb.model.origin import Origin
from kb.model.pack import PackRecord
from kb.model.push import Push
from kb.model.registry import PulledEntry, RegistryRecord
from kb.model.signal import Signal
from kb.model.site import SitePage
from kb.model.text import Chunk, EntityKind
from kb.model.token import Token
from kb.store.codec import RecordTable


class SourceRef(Struct, frozen=True, kw_only=True):
    """The number of a logical source; `lsid` guards against a hash collision."""

    source_no: SourceNo
    lsid: Lsid


class ChunkRef(Struct, frozen=True, kw_only=True):
    """The number of a chunk."""

    no: ChunkNo


class JobRef(Struct, frozen=True, kw_only=True):
    """The id of a job."""

    job_id: JobId


class DocRef(Struct, frozen=True, kw_only=True):
    """The id of a doc."""

    doc_id: DocId


class Entity(Struct, frozen=True, kw_only=True):
    """An entity that some chunk mentions."""

    kind: EntityKind
    surface: str
    key: str


class AnsweredQuestion(Struct, frozen=True, kw_only=True):
    """A question, and the source that answers it; several if there is a record for each."""

    query: str
    place: Lsid
    added_ms: int


class Orphan(Struct, frozen=True, kw_only=True):
    """The mark of a file that no record named."""

    marked_ms: int
    marked_run: int = 0
    """How many compactions had finished then."""


class ContentPart(Struct, frozen=True, kw_only=True):
    """A part of the bytes of a doc or a file, in homes whose content lies in the store."""

    data: bytes
    path: str = ""
    """Of the first part: the path that the doc names, or that of the file."""
    size_bytes: int = 0
    """Of the first part: the bytes of all parts."""
    object: str = ""
    """Of the first part: the object of the home's bucket that has the bytes; then no part does."""


class HomeFile(Struct, frozen=True, kw_only=True):
    """A file of the home itself (settings, entries, the notebook) that lies in its database."""

    path: str
    """Where it lies in the home's folder, with slashes."""
    size_bytes: int = 0
    sha256: str = ""
    link: str | None = None
    """The target of a symbolic link as written, which has no bytes; None for a file."""
    executable: bool = False


class StoredValue(Struct, frozen=True, kw_only=True):
    """A number or a text: a counter, a stamp or a named text of the store itself."""

    number: int = 0
    text: str = ""


DOCS: Final = RecordTable("docs", Doc)
LSIDS: Final = RecordTable("lsids", SourceRef)
# place -> how many sources began there: the newest generation.
BIRTHS: Final = RecordTable("births", StoredValue)
VERSIONS: Final = RecordTable("versions", VersionPointer)
# source_no + version -> doc id, for every version that still has a record.
SOURCE_DOCS: Final = RecordTable("source_docs", DocRef)
SOURCES: Final = RecordTable("sources", Origin)
# origin id + NUL + hash of the address -> what is known of the page.
SITE_PAGES: Final = RecordTable("site_pages", SitePage)
SEEN: Final = RecordTable("seen", SourceStamp)
# place -> when the doc that a person removed there was purged.
HOLDS: Final = RecordTable("holds", StoredValue)
LEDGER: Final = RecordTable("ledger", LedgerEntry)
JOBS: Final = RecordTable("jobs", Job)
JOBS_READY: Final = RecordTable("jobs_ready", JobRef)
JOBS_RUNNING: Final = RecordTable("jobs_running", JobRef)
JOBS_FAILED: Final = RecordTable("jobs_failed", JobRef)
JOBS_DEDUPE: Final = RecordTable("jobs_dedupe", JobRef)
CHUNKS: Final = RecordTable("chunks", Chunk)
CHUNK_IDS: Final = RecordTable("chunk_ids", ChunkRef)
# source_no + ordinal -> chunk number, in reading order.
SOURCE_CHUNKS: Final = RecordTable("source_chunks", ChunkRef)
ENTITIES: Final = RecordTable("entities", Entity)
EMBEDDERS: Final = RecordTable("embedders", EmbedderSet)
PACKS: Final = RecordTable("packs", PackRecord)
REGISTRIES: Final = RecordTable("registries", RegistryRecord)
# entry id -> the entry.
PULLED: Final = RecordTable("pulled", PulledEntry)
# id of the job that places the note -> the note.
NOTES: Final = RecordTable("notes", Note)
NOTE_TEXTS: Final = RecordTable("note_texts", NoteText)
PUSHES: Final = RecordTable("pushes", Push)
SIGNALS: Final = RecordTable("signals", Signal)
# name -> the token.
TOKENS: Final = RecordTable("tokens", Token)
# 16 bytes of the path's hash + number of the part; empty where content lies in files.
CONTENT: Final = RecordTable("content", ContentPart)
# 16 bytes of the path's hash -> the file; empty where these lie in the home's folder.
HOME_FILES: Final = RecordTable("home_files", HomeFile)
# 16 bytes of the path's hash + number of the part -> its bytes.
HOME_FILE_PARTS: Final = RecordTable("home_file_parts", ContentPart)
# A hash of both -> a question and the source that answers it.
QUESTIONS: Final = RecordTable("questions", AnsweredQuestion)
ORPHANS: Final = RecordTable("orphans", Orphan)
# Of homes that machines share: a hash of node and place -> a cache and how far it is.
FOLLOWERS: Final = RecordTable("followers", Follower)
# A hash of the process -> what its workers have done.
WORKERS: Final = RecordTable("workers", WorkerRow)
LOG: Final = RecordTable("log", LogEntry)
META: Final = RecordTable("meta", StoredValue)
