"""List docs of any state, as `kb ls` does."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any, Final, Literal

import msgspec
from msgspec import Meta, Struct

from kb.errors import UsageError
from kb.model.doc import Doc, DocStatus, LedgerState, Scope, Visibility
from kb.model.search import Filters, SpaceName
from kb.operations.list_docs import ListedDoc, listed, matching
from kb.operations.operation import Operation
from kb.search.filters import matches_filters, named_sources
from kb.store import chunks, docs
from kb.store.kv import ReadTxn
from kb.store.records import LEDGER

if TYPE_CHECKING:
    from kb.home.open_home import OpenHome
    from kb.home.spaces.spaces import Spaces


class DocsRequest(Filters, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which docs are to be listed."""

    status: Annotated[
        DocStatus | Literal["all"],
        Meta(description="Only docs that are active, superseded or tombstoned (removed); or all."),
    ] = "active"
    sort: Annotated[
        Literal["changed", "date", "added", "title", "source"],
        Meta(
            description="Newest first by when kb took them up, by their date or by when they were "
            "added; or in the order of titles or places."
        ),
    ] = "changed"
    limit: Annotated[int, Meta(ge=0, description="How many are wanted; 0 for all.")] = 50


class DocRow(ListedDoc, frozen=True, kw_only=True):
    """A doc as it is listed, with its state and where it is."""

    visibility: Visibility
    status: DocStatus
    ledger: LedgerState
    passages: int
    space: SpaceName | None


class Docs(Struct, frozen=True, kw_only=True):
    """Docs of every space, the newest change first and then by source, and how many match."""

    docs: tuple[DocRow, ...]
    total: int
    warnings: tuple[str, ...]

    def __iter__(self) -> Iterator[DocRow]:
        """The docs, the newest change first."""
        return iter(self.docs)

    def __len__(self) -> int:
        """How many docs are in this answer."""
        return len(self.docs)

    def __getitem__(self, place: int) -> DocRow:
        """One of the docs."""
        return self.docs[place]


def run(spaces: "Spaces", request: DocsRequest, scope: Scope) -> Docs:
    """The docs of a state that pass the filters and that a scope sees.

    A source that two spaces have is listed in both. Others than active docs are listed to an
    operator alone: an older version may have been open to others than its doc is now. Raises
    UsageError where a scope is that in no space, and a space's own error where none can be read.
    """
    from kb.home.spaces.each import ask_each, warnings_of
    from kb.operations.locate import doc_named, doc_of_any_state, locate_filters
    from kb.operations.near_filters import filter_hints

    listing = [
        home for home in spaces.homes if request.status == "active" or home.scope(scope).operator
    ]
    if not listing:
        raise UsageError("only the owner of the home may list older versions and removed docs")
    left_out = (
        f"the {home.name} space lists older versions and removed docs to its owner alone"
        for home in spaces.homes
        if home not in listing
    )
    failed = list(spaces.failed)
    finds = doc_named if request.status == "active" else doc_of_any_state
    located = locate_filters(spaces.homes, request.filters, scope, failed, finds)

    def rows_of(home: "OpenHome") -> tuple[list[DocRow], int]:
        with home.store.read() as txn:
            matches = sorted(
                _docs(txn, located.of(home), request.status, home.scope(scope)),
                key=lambda doc: _order(doc, request.sort),
            )
            shown = matches[: request.limit or None]
            return [doc_row(txn, doc, home.name) for doc in shown], len(matches)

    homes = located.homes(listing)
    each = ask_each(homes, rows_of, failed) if homes else []
    rows = [row for _, (rows, _) in each for row in rows]
    rows.sort(key=lambda row: _order(row, request.sort))
    hints = () if rows else filter_hints(homes, request.filters, scope)
    return Docs(
        docs=tuple(rows[: request.limit or None]),
        total=sum(total for _, (_, total) in each),
        warnings=(*warnings_of(failed, scope), *left_out, *hints),
    )


def _order(doc: Doc | DocRow, sort: str) -> tuple[Any, ...]:
    """The place of a doc among others, for one way to sort them."""
    match sort:
        case "date":
            day = doc.day if isinstance(doc, Doc) else doc.date
            return (tuple(-ord(sign) for sign in day or " "), doc.source)
        case "added":
            return (-doc.added_ms, doc.source)
        case "title":
            return (doc.title.casefold(), doc.source)
        case "source":
            return (doc.source,)
        case _:
            return (-doc.updated_ms, doc.source)


def _docs(txn: ReadTxn, filters: Filters, status: str, scope: Scope) -> Iterator[Doc]:
    if status == "active":
        return matching(txn, filters, scope)
    pool = docs.all_latest(txn) if status == "tombstoned" else docs.all_docs(txn)
    numbers = named_sources(txn, filters) if filters.doc_ids else None
    return (
        doc
        for doc in pool
        if status in ("all", doc.status)
        and matches_filters(doc, filters)
        and (numbers is None or doc.source_no in numbers)
    )


def doc_row(txn: ReadTxn, doc: Doc, space: SpaceName | None) -> DocRow:
    """A doc as it is listed, with its state and where it is."""
    entry = LEDGER.get(txn, doc.doc_id.encode())
    is_older = doc.status == "superseded"
    return DocRow(
        **msgspec.structs.asdict(listed(txn, doc)),
        visibility=doc.visibility,
        status=doc.status,
        ledger=entry.state if entry else "done",
        # The chunks of its source are those of a newer version.
        passages=0 if is_older else len(chunks.numbers_of(txn, doc.source_no)),
        space=space,
    )


DOCS: Final = Operation(
    name="ls",
    summary="List docs, as `kb ls` does.",
    request=DocsRequest,
    results=(Docs,),
    run=run,
)
