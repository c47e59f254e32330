"""Doing what mends: records in bounded transactions, then files, then caches."""

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
from kb.search.index import DenseIndex, LexicalIndexes
from kb.store import births, docs, log
from kb.store.codec import from_u64, u64
from kb.store.content.files import ContentStore
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
from kb.upkeep.check.lookup import LEADING, find, is_named, newest, passage
from kb.upkeep.check.mends import (
    BringBack,
    ByHand,
    CountBirths,
    DropRecord,
    Embed,
    Mend,
    MendNotebook,
    RaiseCounter,
    Rebuild,
    Recut,
    Refacet,
    Relink,
    Relist,
    Repoint,
    RestoreFile,
    SyncNotebook,
)
from kb.upkeep.check.reborn import bring_back

MENDS_PER_TXN: Final = 200


class Repairer:
    """Applies mends. Each looks again before it acts, for others may have been at work."""

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

    def apply(self, mends: Sequence[Mend]) -> None:
        """Do all of them, those that need a transaction first."""
        waiting = iter(mends)
        while page := list(islice(waiting, MENDS_PER_TXN)):
            with self._store.write() as txn:
                for mend in page:
                    self._write(txn, mend)
        with Parser() as parser:
            for mend in mends:
                if isinstance(mend, RestoreFile):
                    self._restore(mend, parser)
                elif isinstance(mend, BringBack):
                    bring_back(self._store, self._content, parser, mend.source_no)
        for mend in mends:
            if isinstance(mend, Rebuild):
                self._caches[mend.cache].catch_up(self._store, wait_s=WAIT_S, rebuild=True)

    def _write(self, txn: WriteTxn, mend: Mend) -> None:
        match mend:
            case DropRecord():
                _drop(txn, mend)
            case Repoint(doc_id):
                _repoint(txn, doc_id)
            case Refacet(doc_id):
                _refacet(txn, doc_id)
            case Relink(no):
                _relink(txn, no)
            case Recut(source_no, drop):
                self._recut(txn, source_no, drop)
            case Embed(doc_id):
                work = queue.dedupe_key("embed", doc_id, self._fingerprint)
                queue.enqueue(txn, self._store.clock, "embed", doc_id, key=work)
            case Relist():
                queue.relist(txn)
            case RaiseCounter() | CountBirths():
                _count(txn, mend)
            case (
                BringBack() | RestoreFile() | Rebuild() | ByHand() | MendNotebook() | SyncNotebook()
            ):
                pass
            case _:
                assert_never(mend)

    def _recut(self, txn: WriteTxn, source_no: int, drop: int | None) -> None:
        if drop is not None:
            txn.delete("chunks", u64(drop))
            log.append(txn, [drop], words=True, vectors=True)
        doc = newest(txn, source_no)
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

    def _restore(self, mend: RestoreFile, parser: Parser) -> None:
        with self._store.read() as txn:
            doc = find(DOCS, txn, mend.doc_id.encode())
        if doc is None:
            return
        raw = mend.part == "raw"
        relative, sha256 = (doc.raw_path, doc.raw_sha256) if raw else (doc.md_path, doc.md_sha256)
        for data in self._from_source(doc) if raw else self._from_raw(doc, parser):
            if sha256_hex(data) == sha256:
                self._replace(relative, sha256, data)

    def _from_source(self, doc: Doc) -> Iterator[bytes]:
        """The bytes of the file that the doc came from, if it is one and as long as it was."""
        path = path_of(doc.place)
        if path is None or not path.is_file() or path.stat().st_size != doc.raw_bytes:
            return
        try:
            yield path.read_bytes()
        except OSError:
            return

    def _from_raw(self, doc: Doc, parser: Parser) -> Iterator[bytes]:
        """The markdown that the raw bytes give now."""
        try:
            raw = self._content.read(doc.raw_path, doc.raw_sha256)
            name = os.path.basename(doc.source) or doc.source
            source = CanonicalizeInput(data=raw, mime=doc.mime, name=name, charset=doc.charset)
            yield parser.parse(source).markdown.encode()
        except KbError:
            return

    def _replace(self, relative: str, sha256: str, data: bytes) -> None:
        try:
            self._content.read(relative, sha256)
        except KbError:
            # What lies there is not what any doc says; a whole file takes its place.
            path = self._content.paths.root / relative
            if path.is_symlink() or path.is_file():
                path.unlink(missing_ok=True)
            self._content.write_if_new(relative, data)


def _drop(txn: WriteTxn, mend: DropRecord) -> None:
    table, key = mend.table, mend.key
    if txn.get(table, key) != mend.stored or (table in LEADING and is_named(txn, table, key)):
        return
    txn.delete(table, key)
    if table == "chunks":
        log.append(txn, [from_u64(key)], words=True, vectors=True)


def _count(txn: WriteTxn, mend: RaiseCounter | CountBirths) -> None:
    if isinstance(mend, RaiseCounter):
        raise_number(txn, mend.name, mend.at_least)
    else:
        births.recount(txn, lost=mend.lost)


def _repoint(txn: WriteTxn, doc_id: str) -> None:
    doc = find(DOCS, txn, doc_id.encode())
    if doc is None:
        return
    SOURCE_DOCS.put(txn, u64(doc.source_no) + u64(doc.version), DocRef(doc_id=doc.doc_id))
    LSIDS.put(txn, lsid_key(doc.place), SourceRef(source_no=doc.source_no, lsid=doc.place))
    pointer = find(VERSIONS, txn, u64(doc.source_no))
    if pointer is None or pointer.version <= doc.version:
        made = VersionPointer(doc_id=doc.doc_id, version=doc.version, source_no=doc.source_no)
        VERSIONS.put(txn, u64(doc.source_no), made)
    elif doc.status == "active":
        superseded = msgspec.structs.replace(doc, status="superseded")
        DOCS.put(txn, doc.doc_id.encode(), superseded)


def _refacet(txn: WriteTxn, doc_id: str) -> None:
    doc = find(DOCS, txn, doc_id.encode())
    latest = newest(txn, doc.source_no) if doc else None
    if doc is not None and latest is not None and latest.doc_id == doc_id:
        for key in docs.facet_keys(doc):
            txn.put("facets", key, b"")


def _relink(txn: WriteTxn, no: int) -> None:
    chunk = passage(txn, no)
    if chunk is None:
        return
    CHUNK_IDS.put(txn, chunk.chunk_id.encode(), ChunkRef(no=chunk.no))
    SOURCE_CHUNKS.put(txn, u64(chunk.source_no) + u64(chunk.ordinal), ChunkRef(no=chunk.no))
    for mention in extract(chunk.text):
        if mention.key in chunk.entities:
            txn.put("entity_chunks", entity_prefix(mention.key) + u64(no), b"")
            entity = Entity(kind=mention.kind, surface=mention.surface, key=mention.key)
            ENTITIES.put(txn, text_key(mention.key), entity)
