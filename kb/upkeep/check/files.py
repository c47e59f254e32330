"""Check the content files of docs, and their chunks against their markdown."""

from typing import Literal

from kb.errors import StoreDamaged
from kb.model.doc import Doc
from kb.store import chunks
from kb.store.content.files import ContentStore
from kb.store.kv import ReadTxn
from kb.store.records import DOCS
from kb.upkeep.check.collector import FindingCollector
from kb.upkeep.check.lookup import awaits_chunking, find, find_chunk, find_newest_doc
from kb.upkeep.check.repairs import Rechunk, RestoreFile


def check_files(txn: ReadTxn, collector: FindingCollector, content: ContentStore) -> None:
    """Check every doc's files by their hashes, and its chunks against its markdown."""
    for key, _ in txn.scan("docs"):
        doc = find(DOCS, txn, key)
        if doc is None:
            continue
        if doc.raw_path:
            _read(collector, content, doc, "raw")
        markdown = _read(collector, content, doc, "md")
        if markdown is not None:
            _check_text(txn, collector, doc, markdown.decode())


def _read(
    collector: FindingCollector, content: ContentStore, doc: Doc, part: Literal["raw", "md"]
) -> bytes | None:
    """One of a doc's two files; None, with a finding, if it is damaged."""
    collector.count("files", 1)
    is_raw = part == "raw"
    path, sha256 = (doc.raw_path, doc.raw_sha256) if is_raw else (doc.md_path, doc.md_sha256)
    try:
        return content.read(path, sha256)
    except StoreDamaged as error:
        repair = RestoreFile(doc.doc_id, part)
        collector.add(path, f"{error.fields['detail']}; it is of {doc.doc_id}", repair)
        return None


def _check_text(txn: ReadTxn, collector: FindingCollector, doc: Doc, markdown: str) -> None:
    latest = find_newest_doc(txn, doc.source_no)
    if latest is None or latest.doc_id != doc.doc_id or awaits_chunking(txn, doc):
        return
    for no in _numbers(txn, doc.source_no):
        chunk = find_chunk(txn, no)
        if chunk is None or chunk.doc_id != doc.doc_id:
            continue
        if markdown[chunk.start : chunk.end] != chunk.text:
            problem = "its text is not at its place in the markdown"
            collector.add(chunk.chunk_id, problem, Rechunk(doc.source_no))


def _numbers(txn: ReadTxn, source_no: int) -> list[int]:
    try:
        return list(chunks.numbers_of(txn, source_no))
    except StoreDamaged:
        return []


def drop_removed_docs(txn: ReadTxn, collector: FindingCollector) -> None:
    """Drop findings about files whose docs were removed meanwhile, as a compaction does."""
    for repair in [repair for repair in collector.repairs if isinstance(repair, RestoreFile)]:
        if txn.get("docs", repair.doc_id.encode()) is None:
            del collector.repairs[repair]
            for place, problem in list(collector.findings):
                if problem.endswith(f"; it is of {repair.doc_id}"):
                    del collector.findings[place, problem]
