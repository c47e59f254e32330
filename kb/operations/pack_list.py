"""List the docs of a pack, or the packs that there are."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Final

from msgspec import Meta, Struct

from kb.knowledge.packs.brief import BriefDoc, brief, warnings_of
from kb.knowledge.packs.load import DOCS_MAX, Pack
from kb.knowledge.packs.manifest import EdgeType
from kb.model.doc import Scope
from kb.model.pack import PackRecord
from kb.operations.budget import rows_fitting
from kb.operations.fields import BUDGET, ROWS, MaxTokens, Tags
from kb.operations.operation import Address, Operation, Tool
from kb.operations.pack import PackKind, PackName, Prefix, Target, has_packs, of_pack

if TYPE_CHECKING:
    from kb.home.open_home import OpenHome
    from kb.home.spaces.spaces import Spaces

Skip = Annotated[
    int, Meta(ge=0, le=DOCS_MAX, description="How many to leave out: next_skip of the page before.")
]


class PackListRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which docs of a pack are wanted; without a pack, which packs there are."""

    pack: PackName | None = None
    tags: Tags = ()
    kind: PackKind | None = None
    prefix: Prefix | None = None
    related_to: Target | None = None
    edge_type: EdgeType | None = None
    limit: Annotated[int, Meta(ge=1, description="How many are wanted.")] = 50
    skip: Skip = 0
    max_tokens: MaxTokens = None

    def __post_init__(self) -> None:
        """Raise ValueError where fields do not go together."""
        if self.edge_type and self.related_to is None:
            raise ValueError("field `edge_type` goes with `related_to`")
        if self.pack is None and (self.tags or self.kind or self.prefix or self.related_to):
            raise ValueError("field `pack` is required to choose docs")


class ListedPack(Struct, frozen=True, kw_only=True):
    """A pack as it is listed."""

    pack_id: str
    selector: str | None
    version: str


class PackDocsPage(Struct, frozen=True, kw_only=True):
    """Docs in the order of the manifest, or packs by id."""

    pack_id: str | None
    packs: tuple[ListedPack, ...]
    docs: tuple[BriefDoc, ...]
    total: int
    """How many match, on all pages."""
    next_skip: int | None
    warnings: tuple[str, ...]


def run(spaces: "Spaces", request: PackListRequest, scope: Scope) -> PackDocsPage:
    """Docs of a pack in the order of its manifest, or the packs of all spaces by id.

    Raises UnknownPack and SharedSelector, and a space's own error where only that one could tell.
    """
    from kb.home.spaces.each import ask_each
    from kb.home.spaces.each import warnings_of as failures

    if request.pack is not None:
        return of_pack(spaces, request.pack, scope, lambda pack: _docs(pack, request))
    failed = list(spaces.failed)
    each = ask_each(spaces.homes, lambda home: _packs(home, scope), failed)
    by_id = {record.pack_id: record for _, records in reversed(each) for record in records}
    records = [by_id[pack_id] for pack_id in sorted(by_id)]
    return _page(records, request, failures(failed, scope))


def _packs(home: "OpenHome", scope: Scope) -> tuple[PackRecord, ...]:
    from kb.knowledge.packs.register import listed

    with home.store.read() as txn:
        return tuple(listed(txn, home.scope(scope)))


def _docs(pack: Pack, request: PackListRequest) -> PackDocsPage:
    from kb.knowledge.packs import query

    filters = query.PackFilter(
        tags=request.tags,
        kind=request.kind,
        selector_prefix=request.prefix,
        related_to=request.related_to,
        edge_type=request.edge_type,
    )
    docs = query.list_docs(pack, filters)
    page = [brief(doc) for doc in docs[request.skip : request.skip + request.limit]]
    page = page[: rows_fitting(page, request.max_tokens)]
    return PackDocsPage(
        pack_id=pack.manifest.pack_id,
        packs=(),
        docs=tuple(page),
        total=len(docs),
        next_skip=_next_skip(request, len(page), len(docs)),
        warnings=warnings_of(pack.findings),
    )


def _page(
    records: Sequence[PackRecord], request: PackListRequest, warnings: tuple[str, ...]
) -> PackDocsPage:
    page = [
        ListedPack(pack_id=record.pack_id, selector=record.selector, version=record.version)
        for record in records[request.skip : request.skip + request.limit]
    ]
    page = page[: rows_fitting(page, request.max_tokens)]
    return PackDocsPage(
        pack_id=None,
        packs=tuple(page),
        docs=(),
        total=len(records),
        next_skip=_next_skip(request, len(page), len(records)),
        warnings=warnings,
    )


def _next_skip(request: PackListRequest, shown: int, total: int) -> int | None:
    after = request.skip + shown
    return after if shown and after < total else None


_BOUNDS: Final = {"limit": ROWS, "max_tokens": BUDGET}

PACK_LIST: Final = Operation(
    name="pack-list",
    summary="List packs, or the docs of one.",
    request=PackListRequest,
    results=(PackDocsPage,),
    run=run,
    tool=Tool(
        name="kb_pack_list",
        description=(
            "List the docs of a knowledge pack with title, summary, kind, tags and links, by the "
            "order of its manifest; without `pack`, list the packs that there are. A pack is a "
            "set of docs that somebody has described and linked: choose a doc by what is said of "
            "it, then read it with kb_pack_read."
        ),
        request=PackListRequest,
        output=PackDocsPage,
        run=run,
        bounds=_BOUNDS,
        has_answers=has_packs,
    ),
    addresses=(
        Address(
            path="/v1/packs",
            summary="List packs, or the docs of one.",
            request=PackListRequest,
            result=PackDocsPage,
            tells_spaces=False,
            run=run,
            bounds=_BOUNDS,
        ),
    ),
)
