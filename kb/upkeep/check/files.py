"""Do the files hold what their docs say?"""

from kb.errors import StoreDamaged
from kb.model.doc import Doc
from kb.store import chunks
from kb.store.content.files import ContentStore
from kb.store.kv import ReadTxn
from kb.store.records import DOCS
from kb.upkeep.check.lookup import find, is_waiting, newest, passage
from kb.upkeep.check.mends import Recut, RestoreFile
from kb.upkeep.check.notes import Notes


def check_files(txn: ReadTxn, notes: Notes, content: ContentStore) -> None:
    """Every doc's two files by their hashes, and its passages against its markdown."""
    for key, _ in txn.scan("docs"):
        doc = find(DOCS, txn, key)
        if doc is None:
            continue
        notes.count("files", 2)
        try:
            content.read(doc.raw_path, doc.raw_sha256)
        except StoreDamaged as error:
            mend = RestoreFile(doc.doc_id, "raw")
            notes.add(doc.raw_path, f"{error.fields['detail']}; it is of {doc.doc_id}", mend)
        try:
            markdown = content.read(doc.md_path, doc.md_sha256).decode()
        except StoreDamaged as error:
            mend = RestoreFile(doc.doc_id, "md")
            notes.add(doc.md_path, f"{error.fields['detail']}; it is of {doc.doc_id}", mend)
            continue
        _check_text(txn, notes, doc, markdown)


def _check_text(txn: ReadTxn, notes: Notes, doc: Doc, markdown: str) -> None:
    latest = newest(txn, doc.source_no)
    if latest is None or latest.doc_id != doc.doc_id or is_waiting(txn, doc):
        return
    for no in _numbers(txn, doc.source_no):
        chunk = passage(txn, no)
        if chunk is None or chunk.doc_id != doc.doc_id:
            continue
        if markdown[chunk.start : chunk.end] != chunk.text:
            problem = "its text does not stand in the markdown where it says"
            notes.add(chunk.chunk_id, problem, Recut(doc.source_no))


def _numbers(txn: ReadTxn, source_no: int) -> list[int]:
    try:
        return list(chunks.numbers_of(txn, source_no))
    except StoreDamaged:
        return []


def drop_settled(txn: ReadTxn, notes: Notes) -> None:
    """Forget findings about files of docs that are no more: compaction took both meanwhile."""
    for mend in [mend for mend in notes.mends if isinstance(mend, RestoreFile)]:
        if txn.get("docs", mend.doc_id.encode()) is None:
            del notes.mends[mend]
            for place, problem in list(notes.findings):
                if problem.endswith(f"; it is of {mend.doc_id}"):
                    del notes.findings[place, problem]
