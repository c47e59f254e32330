"""`kb_list_docs`: which docs there are."""

import heapq
from collections.abc import Iterator, Sequence
from typing import Annotated

from msgspec import Meta, Struct

from kb.model.doc import Doc, Kind, Scope
from kb.model.ids import Lsid
from kb.model.search import Filters
from kb.operations.budget import rows_fitting
from kb.operations.fields import TOKENS_MAX_DEFAULT, Kinds, Rows, Sources, Tags, TokensMax
from kb.operations.kit import ToolKit
from kb.search.filters import allowed_sources, may_appear
from kb.store import docs
from kb.store.kv import ReadTxn
from kb.store.records import LEDGER

Cursor = Annotated[
    str,
    Meta(
        pattern="^[0-9]{1,18}\\.d[0-9a-f]{1,63}$",
        max_length=84,
        description="The next_cursor of the page before; without it, the first page.",
    ),
]
_Place = tuple[int, str]


class ListDocsInput(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which docs are wanted."""

    tags: Tags = ()
    kinds: Kinds = ()
    sources: Sources = ()
    limit: Rows = 50
    cursor: Cursor | None = None
    max_tokens: TokensMax = TOKENS_MAX_DEFAULT


class ListedDoc(Struct, frozen=True, kw_only=True):
    """A doc as it is listed."""

    doc_id: str
    title: str
    source: str
    kind: Kind
    mime: str
    tags: tuple[str, ...]
    date: str | None
    version: int
    chars: int
    pages: int | None
    indexed: bool
    """Whether all of its newest text is searched; false while it waits to be cut or embedded."""
    added_ms: int
    updated_ms: int


class ListDocsOutput(Struct, frozen=True, kw_only=True):
    """A page of docs, the newest change first."""

    docs: tuple[ListedDoc, ...]
    total: int
    """How many match, on all pages."""
    more: bool
    next_cursor: str | None
    warnings: tuple[str, ...] = ()


class Matches(Struct, frozen=True, kw_only=True):
    """The docs of one home that may be listed."""

    kit: ToolKit
    docs: tuple[Doc, ...]


def run(kit: ToolKit, request: ListDocsInput, scope: Scope) -> ListDocsOutput:
    """Docs that a scope sees, the newest change first, then by id, as `page_of` has them."""
    return page_of([matches(kit, request, scope)], request)


def matches(kit: ToolKit, request: ListDocsInput, scope: Scope) -> Matches:
    """The docs of a home that a scope sees and the request wants, on whatever page."""
    limits = Filters(tags=request.tags, kinds=request.kinds, sources=request.sources)
    with kit.store.read() as txn:
        return Matches(kit=kit, docs=tuple(matching(txn, limits, scope)))


def page_of(
    homes: Sequence[Matches], request: ListDocsInput, warnings: tuple[str, ...] = ()
) -> ListDocsOutput:
    """A page of what homes have; of what several have, that of the first.

    A doc that changes between two pages goes to the front; no other is shown twice or missed.
    Tokens are estimated from the JSON of the rows.
    """
    start = _parsed(request.cursor)
    found: list[tuple[ToolKit, Doc]] = []
    held: set[Lsid] = set()
    for home in homes:
        found += [(home.kit, doc) for doc in home.docs if doc.place not in held]
        held |= {doc.place for doc in home.docs}
    later = (one for one in found if start is None or _place(one[1]) > start)
    page = heapq.nsmallest(request.limit + 1, later, key=lambda one: _place(one[1]))
    rows = [_row(kit, doc) for kit, doc in page[: request.limit]]
    rows = rows[: rows_fitting(rows, request.max_tokens)]
    more = len(rows) < len(page)
    last = rows[-1] if rows else None
    return ListDocsOutput(
        docs=tuple(rows),
        total=len(found),
        more=more,
        next_cursor=f"{last.updated_ms}.{last.doc_id}" if more and last else None,
        warnings=warnings,
    )


def _row(kit: ToolKit, doc: Doc) -> ListedDoc:
    with kit.store.read() as txn:
        return listed(txn, doc)


def matching(txn: ReadTxn, limits: Filters, scope: Scope) -> Iterator[Doc]:
    """The active docs within the limits that a scope sees, in no order."""
    numbers = allowed_sources(txn, limits, scope)
    if numbers is None:
        pool: Iterator[Doc | None] = docs.all_latest(txn)
    else:
        pool = (docs.latest(txn, number) for number in numbers)
    return (doc for doc in pool if doc is not None and may_appear(doc, limits, scope))


def _place(doc: Doc) -> _Place:
    return -doc.updated_ms, doc.doc_id


def _parsed(cursor: str | None) -> _Place | None:
    if cursor is None:
        return None
    updated_ms, _, doc_id = cursor.partition(".")
    return -int(updated_ms), doc_id


def listed(txn: ReadTxn, doc: Doc) -> ListedDoc:
    """A doc as it is listed."""
    entry = LEDGER.get(txn, doc.doc_id.encode())
    return ListedDoc(
        doc_id=doc.doc_id,
        title=doc.title,
        source=doc.source,
        kind=doc.kind,
        mime=doc.mime,
        tags=doc.tags,
        date=doc.date,
        version=doc.version,
        chars=doc.md_chars,
        pages=doc.coverage.pages if doc.coverage else None,
        indexed=doc.status == "active" and (entry is None or entry.state != "pending"),
        added_ms=doc.added_ms,
        updated_ms=doc.updated_ms,
    )
