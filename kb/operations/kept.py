"""What is kept of docs, with their state: no agent's tool reads this way.

Older versions and removed docs are for the person at the machine alone, for an older version may
have been open to others than its doc is now.
"""

from collections.abc import Iterator
from typing import Literal

import msgspec
from msgspec import Struct

from kb.errors import UsageError
from kb.model.doc import Doc, DocStatus, LedgerState, Scope, Visibility
from kb.model.ids import SourceNo
from kb.model.search import Filters
from kb.model.text import Chunk
from kb.operations.entries import Reference, entry_doc, references_of, referrers_of
from kb.operations.fetch import around
from kb.operations.kit import ToolKit
from kb.operations.list_docs import ListedDoc, listed, matching
from kb.search.filters import matches_filters
from kb.search.resolve import resolve_id, resolve_unchecked
from kb.store import chunks, docs
from kb.store.kv import ReadTxn
from kb.store.records import LEDGER

Status = DocStatus | Literal["all"]


class KeptDoc(ListedDoc, frozen=True, kw_only=True):
    """A doc as it is listed, with its state."""

    visibility: Visibility
    status: DocStatus
    ledger: LedgerState
    passages: int


class KeptDocs(Struct, frozen=True, kw_only=True):
    """Docs, the newest change first and then by source, and how many match in all."""

    docs: tuple[KeptDoc, ...]
    total: int


class Passage(Struct, frozen=True, kw_only=True):
    """A passage as it is kept."""

    chunk_id: str
    doc_id: str
    ordinal: int
    heading: tuple[str, ...]
    page: int | None
    start: int
    end: int
    tokens: int
    text: str


class WholeDoc(Struct, frozen=True, kw_only=True):
    """A doc and its passages in reading order."""

    doc: Doc
    passages: tuple[Passage, ...]
    references: tuple[Reference, ...] = ()
    """Of an entry: where it refers to, as it says."""
    referrers: tuple[Reference, ...] = ()
    """Of an entry: the entries that refer to it, by their ids."""


class PassageInPlace(Struct, frozen=True, kw_only=True):
    """A passage, its doc, and what stands before and after it."""

    passage: Passage
    doc: Doc
    before: Passage | None
    after: Passage | None


def kept_docs(kit: ToolKit, limits: Filters, status: Status, limit: int, scope: Scope) -> KeptDocs:
    """The docs of a status within the limits that a scope sees; at most `limit`, 0 for all.

    Raises UsageError where a scope that is no operator's asks for others than active ones.
    """
    if status != "active" and not scope.operator:
        raise UsageError("older versions and removed docs are for the person at the machine")
    with kit.store.read() as txn:
        docs_of = _of(txn, limits, status, scope)
        found = sorted(docs_of, key=lambda doc: (-doc.updated_ms, doc.source))
        rows = tuple(_row(txn, doc) for doc in found[: limit or None])
    return KeptDocs(docs=rows, total=len(found))


def kept(kit: ToolKit, ident: str, scope: Scope) -> WholeDoc | PassageInPlace:
    """What an entry's whole id names, or else an id, whole or short, for a scope.

    One that is no operator's gets the newest version of a doc that it sees. Raises NotFound and
    AmbiguousId.
    """
    with kit.store.read() as txn:
        entry = entry_doc(txn, ident)
        if entry is not None and entry.visible_to(scope):
            return _whole(txn, entry, scope)
        if not scope.operator:
            opened = resolve_id(txn, ident, scope)
            if opened.chunk is not None:
                return _in_place(txn, opened.chunk, opened.doc, scope)
            return _whole(txn, opened.doc, scope)
        found = resolve_unchecked(txn, ident, scope)
        if isinstance(found, Chunk):
            return _in_place(txn, found, docs.require(txn, found.doc_id), scope)
        return _whole(txn, found, scope)


def _of(txn: ReadTxn, limits: Filters, status: Status, scope: Scope) -> Iterator[Doc]:
    if status == "active":
        return matching(txn, limits, scope)
    pool = docs.all_latest(txn) if status == "tombstoned" else docs.every(txn)
    return (doc for doc in pool if status in ("all", doc.status) and matches_filters(doc, limits))


def _row(txn: ReadTxn, doc: Doc) -> KeptDoc:
    entry = LEDGER.get(txn, doc.doc_id.encode())
    return KeptDoc(
        **msgspec.structs.asdict(listed(txn, doc)),
        visibility=doc.visibility,
        status=doc.status,
        ledger=entry.state if entry else "done",
        passages=0 if _is_older(doc) else len(chunks.numbers_of(txn, doc.source_no)),
    )


def _whole(txn: ReadTxn, doc: Doc, scope: Scope) -> WholeDoc:
    rows = [] if _is_older(doc) else chunks.of_source(txn, doc.source_no)
    return WholeDoc(
        doc=_for(doc, scope),
        passages=tuple(_passage(chunk) for chunk in rows),
        references=references_of(txn, doc, scope),
        referrers=referrers_of(txn, doc, scope),
    )


def _for(doc: Doc, scope: Scope) -> Doc:
    """A doc as a scope is shown it: its number, which counts what others have, is not for all."""
    return doc if scope.operator else msgspec.structs.replace(doc, source_no=SourceNo(0))


def _is_older(doc: Doc) -> bool:
    """Whether the passages of its source are those of a newer version."""
    return doc.status == "superseded"


def _in_place(txn: ReadTxn, chunk: Chunk, doc: Doc, scope: Scope) -> PassageInPlace:
    row, place = around(txn, chunk, 1)
    after = row[place + 1 :]
    return PassageInPlace(
        passage=_passage(chunk),
        doc=_for(doc, scope),
        before=_passage(row[0]) if place else None,
        after=_passage(after[0]) if after else None,
    )


def _passage(chunk: Chunk) -> Passage:
    return msgspec.convert(chunk, Passage, from_attributes=True)
