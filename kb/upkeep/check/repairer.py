"""Apply repairs: records in bounded transactions first, then files, then caches."""

import os
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Final, assert_never

import msgspec

from kb.errors import KbError
from kb.intake.canonicalize import CanonicalizeInput, Parser
from kb.intake.entities import extract
from kb.model.doc import Doc, LedgerEntry, VersionPointer
from kb.model.ids import sha256_hex
from kb.model.source import path_of
from kb.search.index.dense import DenseIndex
from kb.search.index.lexical_indexes import LexicalIndexes
from kb.store import docs, generations, log
from kb.store.codec import from_u64, u64
from kb.store.content.files import ContentStore
from kb.store.content.originals import read_parsed
from kb.store.jobs import queue
from kb.store.keys import entity_prefix, lsid_key, text_key
from kb.store.kv import WriteTxn
from kb.store.meta import raise_number
from kb.store.records import (
    CHUNK_IDS,
    DOCS,
    ENTITIES,
    LEDGER,
    LSIDS,
    SOURCE_CHUNKS,
    SOURCE_DOCS,
    VERSIONS,
    ChunkRef,
    DocRef,
    Entity,
    SourceRef,
)
from kb.store.store import Store
from kb.upkeep.check.caches import WAIT_S
from kb.upkeep.check.lookup import DERIVED_TABLES, find, find_chunk, find_newest_doc, has_target
from kb.upkeep.check.recover import recover_overwritten
from kb.upkeep.check.repairs import (
    CountGenerations,
    DropRecord,
    ManualRepair,
    QueueEmbedding,
    RaiseCounter,
    RebuildCache,
    Rechunk,
    RecoverSource,
    Repair,
    RepairNotebook,
    RestoreFile,
    RewriteChunkLinks,
    RewriteFacets,
    RewriteJobLists,
    RewritePointers,
    SyncNotebook,
)

REPAIRS_PER_TXN: Final = 200


class Repairer:
    """Applies repairs. Each checks its finding again first: others may have written meanwhile."""

    def __init__(
        self,
        store: Store,
        content: ContentStore,
        lexical: LexicalIndexes,
        dense: DenseIndex,
        fingerprint: str,
    ) -> None:
        self._store = store
        self._content = content
        self._caches: dict[str, LexicalIndexes | DenseIndex] = {"lexical": lexical, "dense": dense}
        self._fingerprint = fingerprint

    def apply(self, repairs: Sequence[Repair]) -> None:
        """Apply all repairs, those that need a transaction first."""
        waiting = iter(repairs)
        while page := list(islice(waiting, REPAIRS_PER_TXN)):
            with self._store.write() as txn:
                for repair in page:
                    self._apply_in_txn(txn, repair)
        with Parser() as parser:
            for repair in repairs:
                if isinstance(repair, RestoreFile):
                    self._restore_file(repair, parser)
                elif isinstance(repair, RecoverSource):
                    recover_overwritten(self._store, self._content, parser, repair.source_no)
        for repair in repairs:
            if isinstance(repair, RebuildCache):
                self._caches[repair.cache].catch_up(self._store, wait_s=WAIT_S, rebuild=True)

    def _apply_in_txn(self, txn: WriteTxn, repair: Repair) -> None:
        match repair:
            case DropRecord():
                _drop_record(txn, repair)
            case RewritePointers(doc_id):
                _rewrite_pointers(txn, doc_id)
            case RewriteFacets(doc_id):
                _rewrite_facets(txn, doc_id)
            case RewriteChunkLinks(no):
                _rewrite_chunk_links(txn, no)
            case Rechunk(source_no, drop):
                self._rechunk(txn, source_no, drop)
            case QueueEmbedding(doc_id):
                work = queue.dedupe_key("embed", doc_id, self._fingerprint)
                queue.enqueue(txn, self._store.clock, "embed", doc_id, key=work)
            case RewriteJobLists():
                queue.relist(txn)
            case RaiseCounter() | CountGenerations():
                _raise_count(txn, repair)
            case (
                RecoverSource()
                | RestoreFile()
                | RebuildCache()
                | ManualRepair()
                | RepairNotebook()
                | SyncNotebook()
            ):
                pass
            case _:
                assert_never(repair)

    def _rechunk(self, txn: WriteTxn, source_no: int, drop: int | None) -> None:
        if drop is not None:
            txn.delete("chunks", u64(drop))
            log.append(txn, [drop], words=True, vectors=True)
        doc = find_newest_doc(txn, source_no)
        if doc is None:
            return
        entry = LedgerEntry(
            doc_id=doc.doc_id,
            state="pending",
            new_paths=(doc.raw_path, doc.md_path),
            updated_ms=self._store.clock.now_ms(),
        )
        LEDGER.put(txn, doc.doc_id.encode(), entry)
        key = queue.dedupe_key("chunk", doc.doc_id)
        queue.enqueue(txn, self._store.clock, "chunk", doc.doc_id, key=key)

    def _restore_file(self, repair: RestoreFile, parser: Parser) -> None:
        with self._store.read() as txn:
            doc = find(DOCS, txn, repair.doc_id.encode())
        if doc is None:
            return
        raw = repair.part == "raw"
        relative, sha256 = (doc.raw_path, doc.raw_sha256) if raw else (doc.md_path, doc.md_sha256)
        for data in self._from_source(doc) if raw else self._from_raw(doc, parser):
            if sha256_hex(data) == sha256:
                self._replace(relative, sha256, data)

    def _from_source(self, doc: Doc) -> Iterator[bytes]:
        """The bytes of the doc's source file, if it exists and has its former length."""
        path = path_of(doc.place, self._store.machine)
        if path is None or not path.is_file() or path.stat().st_size != doc.raw_bytes:
            return
        try:
            yield path.read_bytes()
        except OSError:
            return

    def _from_raw(self, doc: Doc, parser: Parser) -> Iterator[bytes]:
        """The markdown that the source's bytes convert to now, as UTF-8."""
        try:
            raw = read_parsed(self._content, doc)
            name = os.path.basename(doc.source) or doc.source
            source = CanonicalizeInput(data=raw, mime=doc.mime, name=name, charset=doc.charset)
            yield parser.parse(source).markdown.encode()
        except KbError:
            return

    def _replace(self, relative: str, sha256: str, data: bytes) -> None:
        try:
            self._content.read(relative, sha256)
        except KbError:
            self._content.replace(relative, data)


def _drop_record(txn: WriteTxn, repair: DropRecord) -> None:
    table, key = repair.table, repair.key
    if txn.get(table, key) != repair.stored or (
        table in DERIVED_TABLES and has_target(txn, table, key)
    ):
        return
    txn.delete(table, key)
    if table == "chunks":
        log.append(txn, [from_u64(key)], words=True, vectors=True)


def _raise_count(txn: WriteTxn, repair: RaiseCounter | CountGenerations) -> None:
    if isinstance(repair, RaiseCounter):
        raise_number(txn, repair.name, repair.at_least)
    else:
        generations.recount(txn, lost=repair.lost)


def _rewrite_pointers(txn: WriteTxn, doc_id: str) -> None:
    doc = find(DOCS, txn, doc_id.encode())
    if doc is None:
        return
    SOURCE_DOCS.put(txn, u64(doc.source_no) + u64(doc.version), DocRef(doc_id=doc.doc_id))
    LSIDS.put(txn, lsid_key(doc.place), SourceRef(source_no=doc.source_no, lsid=doc.place))
    pointer = find(VERSIONS, txn, u64(doc.source_no))
    if pointer is None or pointer.version <= doc.version:
        newest_pointer = VersionPointer(
            doc_id=doc.doc_id, version=doc.version, source_no=doc.source_no
        )
        VERSIONS.put(txn, u64(doc.source_no), newest_pointer)
    elif doc.status == "active":
        superseded = msgspec.structs.replace(doc, status="superseded")
        DOCS.put(txn, doc.doc_id.encode(), superseded)


def _rewrite_facets(txn: WriteTxn, doc_id: str) -> None:
    doc = find(DOCS, txn, doc_id.encode())
    latest = find_newest_doc(txn, doc.source_no) if doc else None
    if doc is not None and latest is not None and latest.doc_id == doc_id:
        for key in docs.facet_keys(doc):
            txn.put("facets", key, b"")


def _rewrite_chunk_links(txn: WriteTxn, no: int) -> None:
    chunk = find_chunk(txn, no)
    if chunk is None:
        return
    CHUNK_IDS.put(txn, chunk.chunk_id.encode(), ChunkRef(no=chunk.no))
    SOURCE_CHUNKS.put(txn, u64(chunk.source_no) + u64(chunk.ordinal), ChunkRef(no=chunk.no))
    for mention in extract(chunk.text):
        if mention.key in chunk.entities:
            txn.put("entity_chunks", entity_prefix(mention.key) + u64(no), b"")
            entity = Entity(kind=mention.kind, surface=mention.surface, key=mention.key)
            ENTITIES.put(txn, text_key(mention.key), entity)
