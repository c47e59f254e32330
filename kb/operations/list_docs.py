"""List the active docs that there are, page by page."""

import heapq
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Final

import msgspec
from msgspec import Meta, Struct

from kb.home.open_home import OpenHome
from kb.home.spaces.each import ask_each, warnings_of
from kb.model.doc import Doc, Kind, Scope
from kb.model.ids import Lsid
from kb.model.search import Filters, SpaceName
from kb.operations.budget import rows_fitting
from kb.operations.fields import BUDGET, FILTER_BOUNDS, ROWS, MaxTokens
from kb.operations.locate import locate_filters
from kb.operations.near_filters import filter_hints
from kb.operations.operation import Address, Operation, Tool
from kb.search.filters import allowed_sources, may_appear
from kb.store import docs
from kb.store.kv import ReadTxn
from kb.store.records import LEDGER

if TYPE_CHECKING:
    from kb.home.spaces.each import FailedSpace
    from kb.home.spaces.spaces import Spaces

Cursor = Annotated[
    str,
    Meta(
        pattern="^[0-9]{1,18}\\.d[0-9a-f]{1,63}$",
        max_length=84,
        description="The next_cursor of the page before; without it, the first page.",
        extra={"expects": "a cursor is the next_cursor of the page before"},
    ),
]
_Place = tuple[int, str]


class ListDocsRequest(Filters, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which docs are wanted."""

    limit: Annotated[int, Meta(ge=1, description="How many are wanted.")] = 50
    cursor: Cursor | None = None
    max_tokens: MaxTokens = None


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


class DocsPage(Struct, frozen=True, kw_only=True):
    """A page of docs, the newest change first."""

    docs: tuple[ListedDoc, ...]
    total: int
    """How many match, on all pages."""
    more: bool
    next_cursor: str | None
    warnings: tuple[str, ...] = ()


class DocInSpace(ListedDoc, frozen=True, kw_only=True):
    """A doc as it is listed, and where it is."""

    space: SpaceName | None


class DocsPageInSpaces(DocsPage, frozen=True, kw_only=True):
    """A page of docs, the newest change first, and where each is."""

    docs: tuple[DocInSpace, ...]


class _Page(Struct, frozen=True, kw_only=True):
    """The docs of a page, each with its home, and what is said beside them."""

    rows: tuple[tuple[OpenHome, ListedDoc], ...]
    total: int
    more: bool
    warnings: tuple[str, ...]

    @property
    def next_cursor(self) -> str | None:
        if not self.more or not self.rows:
            return None
        last = self.rows[-1][1]
        return f"{last.updated_ms}.{last.doc_id}"


def run(spaces: "Spaces", request: ListDocsRequest, scope: Scope) -> DocsPage:
    """A page of the docs that a scope sees, the newest change first, then by id.

    Of a source that several spaces have, the first one's doc is listed. A doc that changes between
    two pages goes to the front; no other is shown twice or missed. Tokens are estimated from the
    JSON of the rows. Raises a space's own error where none can be read.
    """
    page = _page(spaces, request, scope)
    return DocsPage(
        docs=tuple(row for _, row in page.rows),
        total=page.total,
        more=page.more,
        next_cursor=page.next_cursor,
        warnings=page.warnings,
    )


def _run_address(spaces: "Spaces", request: ListDocsRequest, scope: Scope) -> DocsPageInSpaces:
    page = _page(spaces, request, scope)
    rows = (DocInSpace(**msgspec.structs.asdict(row), space=home.name) for home, row in page.rows)
    return DocsPageInSpaces(
        docs=tuple(rows),
        total=page.total,
        more=page.more,
        next_cursor=page.next_cursor,
        warnings=page.warnings,
    )


def _page(spaces: "Spaces", request: ListDocsRequest, scope: Scope) -> _Page:
    failed = list(spaces.failed)
    all_docs = matching_in_spaces(spaces, request.filters, scope, failed)
    start = _parsed(request.cursor)
    later = (pair for pair in all_docs if start is None or _place(pair[1]) > start)
    page = heapq.nsmallest(request.limit + 1, later, key=lambda pair: _place(pair[1]))
    rows = [(home, _row(home, doc)) for home, doc in page[: request.limit]]
    rows = rows[: rows_fitting([row for _, row in rows], request.max_tokens)]
    hints = () if all_docs else filter_hints(spaces.homes, request.filters, scope)
    return _Page(
        rows=tuple(rows),
        total=len(all_docs),
        more=len(rows) < len(page),
        warnings=(*warnings_of(failed, scope), *hints),
    )


def matching_in_spaces(
    spaces: "Spaces", filters: Filters, scope: Scope, failed: "list[FailedSpace]"
) -> list[tuple[OpenHome, Doc]]:
    """The active docs of every space that pass the filters and that a scope sees.

    Of a source that several spaces have, the first one's doc. A space that cannot be read is added
    to `failed`. Raises a space's own error where none can be read.
    """
    located = locate_filters(spaces.homes, filters, scope, failed)

    def matches(home: OpenHome) -> tuple[Doc, ...]:
        with home.store.read() as txn:
            return tuple(matching(txn, located.of(home), home.scope(scope)))

    homes = located.homes(spaces.homes)
    all_docs: list[tuple[OpenHome, Doc]] = []
    places: set[Lsid] = set()
    for home, home_docs in ask_each(homes, matches, failed) if homes else []:
        by_place = [(home.store.local_place(doc.place), doc) for doc in home_docs]
        all_docs += [(home, doc) for place, doc in by_place if place not in places]
        places |= {place for place, _ in by_place}
    return all_docs


def _row(home: OpenHome, doc: Doc) -> ListedDoc:
    with home.store.read() as txn:
        return listed(txn, doc)


def matching(txn: ReadTxn, filters: Filters, scope: Scope) -> Iterator[Doc]:
    """The active docs that pass the filters and that a scope sees, in no order."""
    numbers = allowed_sources(txn, filters, scope)
    if numbers is None:
        pool: Iterator[Doc | None] = docs.all_latest(txn)
    else:
        pool = (docs.latest(txn, number) for number in numbers)
    return (doc for doc in pool if doc is not None and may_appear(doc, filters, scope))


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
        date=doc.day,
        version=doc.version,
        chars=doc.md_chars,
        pages=doc.coverage.pages if doc.coverage else None,
        indexed=doc.status == "active" and (entry is None or entry.state != "pending"),
        added_ms=doc.added_ms,
        updated_ms=doc.updated_ms,
    )


_BOUNDS: Final = {**FILTER_BOUNDS, "limit": ROWS, "max_tokens": BUDGET}

LIST_DOCS: Final = Operation(
    name="list-docs",
    summary="List docs, page by page.",
    request=ListDocsRequest,
    results=(DocsPage,),
    run=run,
    tool=Tool(
        name="kb_list_docs",
        description=(
            "List the docs that there are, the newest change first, with title, source, kind "
            "and tags, and how many there are in all. Use it to learn what the knowledge base is "
            "about, which tags can narrow a search, or what changed lately; to find a text, "
            "use kb_search."
        ),
        request=ListDocsRequest,
        output=DocsPage,
        run=run,
        untold=("site_versions",),
        bounds=_BOUNDS,
    ),
    addresses=(
        Address(
            path="/v1/docs",
            summary="List docs, page by page.",
            request=ListDocsRequest,
            result=DocsPageInSpaces,
            run=_run_address,
            bounds=_BOUNDS,
        ),
    ),
)
