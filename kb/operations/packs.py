"""`kb_pack_list`, `kb_pack_read`, `kb_pack_search`, `kb_pack_neighbors`: what is in a pack."""

from collections.abc import Sequence
from typing import Annotated

from msgspec import Meta, Struct

from kb.errors import UsageError
from kb.knowledge.packs import query
from kb.knowledge.packs.brief import BriefDoc, brief, warnings_of
from kb.knowledge.packs.load import DOCS_MAX, Pack
from kb.knowledge.packs.manifest import EdgeType
from kb.knowledge.packs.register import listed, open_registered, resolve
from kb.model.doc import Scope
from kb.model.pack import PackRecord
from kb.operations.budget import cut_to, rows_fitting
from kb.operations.fields import TOKENS_MAX_DEFAULT, Rows, Tags, TokensMax, Word
from kb.operations.kit import ToolKit

PackName = Annotated[Word, Meta(description="A pack's id or selector, as kb_pack_list says it.")]
DocName = Annotated[
    str, Meta(min_length=1, max_length=1_000, description="A doc's selector or id.")
]
PackKind = Annotated[Word, Meta(description="Only docs of this kind.")]
Prefix = Annotated[str, Meta(max_length=512, description="Only docs whose selector starts so.")]
Target = Annotated[str, Meta(max_length=1_000, description="Only docs that link to this doc.")]
Query = Annotated[str, Meta(max_length=1_000, description="Words as they stand in a manifest.")]
Skip = Annotated[
    int, Meta(ge=0, le=DOCS_MAX, description="How many to leave out: next_skip of the page before.")
]
Start = Annotated[
    int,
    Meta(ge=0, le=1 << 40, description="The first character wanted: `rest` of the call before."),
]


class PackListInput(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which docs of a pack are wanted; without a pack, which packs there are."""

    pack: PackName | None = None
    tags: Tags = ()
    kind: PackKind | None = None
    prefix: Prefix | None = None
    related_to: Target | None = None
    edge_type: EdgeType | None = None
    limit: Rows = 50
    skip: Skip = 0
    max_tokens: TokensMax = TOKENS_MAX_DEFAULT

    def __post_init__(self) -> None:
        """Raise ValueError where fields do not go together."""
        if self.edge_type and self.related_to is None:
            raise ValueError("field `edge_type` goes with `related_to`")
        if self.pack is None and (self.tags or self.kind or self.prefix or self.related_to):
            raise ValueError("field `pack` must be said where docs are chosen")


class ListedPack(Struct, frozen=True, kw_only=True):
    """A pack as it is listed."""

    pack_id: str
    selector: str | None
    version: str


class PackListOutput(Struct, frozen=True, kw_only=True):
    """Docs in the order of the manifest, or packs by id."""

    pack_id: str | None
    packs: tuple[ListedPack, ...]
    docs: tuple[BriefDoc, ...]
    total: int
    """How many match, on all pages."""
    next_skip: int | None
    warnings: tuple[str, ...]


class PackReadInput(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Which doc is wanted, and from where on."""

    pack: PackName
    doc: DocName
    start: Start = 0
    max_tokens: TokensMax = TOKENS_MAX_DEFAULT


class PackReadOutput(Struct, frozen=True, kw_only=True):
    """A doc and the part of its text from `start` that fits."""

    pack_id: str
    document: BriefDoc
    text: str | None
    """None where it cannot be read; a warning says why."""
    start: int
    chars: int
    """Length of the whole text."""
    rest: int | None
    """Where what was cut begins."""
    warnings: tuple[str, ...]


class PackSearchInput(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to look for in a pack's manifest."""

    pack: PackName
    query: Query
    tags: Tags = ()
    kind: PackKind | None = None
    prefix: Prefix | None = None
    limit: Rows = 20
    max_tokens: TokensMax = TOKENS_MAX_DEFAULT


class PackFound(Struct, frozen=True, kw_only=True):
    """A doc that matches, and where."""

    document: BriefDoc
    score: int
    matched: tuple[str, ...]


class PackSearchOutput(Struct, frozen=True, kw_only=True):
    """Docs that match, best first."""

    pack_id: str
    hits: tuple[PackFound, ...]
    total: int
    warnings: tuple[str, ...]


class PackNeighborsInput(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The doc whose links are wanted."""

    pack: PackName
    doc: DocName
    edge_type: EdgeType | None = None
    max_tokens: TokensMax = TOKENS_MAX_DEFAULT


class PackLink(Struct, frozen=True, kw_only=True):
    """A link and the doc that it leads to."""

    type: EdgeType
    target: BriefDoc


class PackNeighborsOutput(Struct, frozen=True, kw_only=True):
    """Where a doc's links lead, by selector and then by type."""

    pack_id: str
    document: BriefDoc
    edges: tuple[PackLink, ...]
    total: int
    warnings: tuple[str, ...]


def run_list(kit: ToolKit, request: PackListInput, scope: Scope) -> PackListOutput:
    """Docs of a pack, or packs that the scope sees. Raises UnknownPack and SharedSelector."""
    if request.pack is None:
        return page_of(seen(kit, scope), request)
    pack = _opened(kit, request.pack, scope)
    wanted = query.PackFilter(
        tags=request.tags,
        kind=request.kind,
        selector_prefix=request.prefix,
        related_to=request.related_to,
        edge_type=request.edge_type,
    )
    found = query.list_docs(pack, wanted)
    page = [brief(doc) for doc in found[request.skip : request.skip + request.limit]]
    page = page[: rows_fitting(page, request.max_tokens)]
    return PackListOutput(
        pack_id=pack.manifest.pack_id,
        packs=(),
        docs=tuple(page),
        total=len(found),
        next_skip=_next_skip(request, len(page), len(found)),
        warnings=warnings_of(pack.findings),
    )


def seen(kit: ToolKit, scope: Scope) -> tuple[PackRecord, ...]:
    """The packs of a home that a scope sees, by id."""
    with kit.store.read() as txn:
        return tuple(listed(txn, scope))


def page_of(
    found: Sequence[PackRecord], request: PackListInput, warnings: tuple[str, ...] = ()
) -> PackListOutput:
    """The page of them that is asked for."""
    page = [
        ListedPack(pack_id=record.pack_id, selector=record.selector, version=record.version)
        for record in found[request.skip : request.skip + request.limit]
    ]
    page = page[: rows_fitting(page, request.max_tokens)]
    return PackListOutput(
        pack_id=None,
        packs=tuple(page),
        docs=(),
        total=len(found),
        next_skip=_next_skip(request, len(page), len(found)),
        warnings=warnings,
    )


def _next_skip(request: PackListInput, shown: int, total: int) -> int | None:
    after = request.skip + shown
    return after if shown and after < total else None


def run_read(kit: ToolKit, request: PackReadInput, scope: Scope) -> PackReadOutput:
    """A doc's text, as much of it as fits. Tokens are estimated from its bytes.

    Raises UnknownPack, SharedSelector, UnknownPackDoc, and UsageError where the text is shorter
    than `start`.
    """
    pack = _opened(kit, request.pack, scope)
    found = pack.read(request.doc)
    whole = found.content or ""
    if request.start > len(whole):
        raise UsageError(f"field `start` is beyond the {len(whole)} characters of the text")
    text = cut_to(whole[request.start :], request.max_tokens)
    end = request.start + len(text)
    return PackReadOutput(
        pack_id=pack.manifest.pack_id,
        document=brief(found.document),
        text=None if found.content is None else text,
        start=request.start,
        chars=len(whole),
        rest=end if end < len(whole) else None,
        warnings=found.warnings,
    )


def run_search(kit: ToolKit, request: PackSearchInput, scope: Scope) -> PackSearchOutput:
    """Docs whose id, selector, title, tags or summary hold the query. Raises as `run_list` does."""
    pack = _opened(kit, request.pack, scope)
    wanted = query.PackFilter(tags=request.tags, kind=request.kind, selector_prefix=request.prefix)
    found = query.search(pack, request.query, wanted)
    page = [
        PackFound(document=brief(hit.document), score=hit.score, matched=hit.matched)
        for hit in found[: request.limit]
    ]
    return PackSearchOutput(
        pack_id=pack.manifest.pack_id,
        hits=tuple(page[: rows_fitting(page, request.max_tokens)]),
        total=len(found),
        warnings=warnings_of(pack.findings),
    )


def run_neighbors(kit: ToolKit, request: PackNeighborsInput, scope: Scope) -> PackNeighborsOutput:
    """Where the links of a doc lead. Raises as `run_read` does."""
    pack = _opened(kit, request.pack, scope)
    found = query.neighbors(pack, request.doc, request.edge_type)
    rows = [PackLink(type=edge.type, target=brief(edge.target)) for edge in found.edges]
    return PackNeighborsOutput(
        pack_id=pack.manifest.pack_id,
        document=brief(found.document),
        edges=tuple(rows[: rows_fitting(rows, request.max_tokens)]),
        total=len(rows),
        warnings=warnings_of((*pack.findings, *found.dangling)),
    )


def _opened(kit: ToolKit, name: str, scope: Scope) -> Pack:
    with kit.store.read() as txn:
        record = resolve(txn, name, scope)
    return open_registered(record, kit.content.paths.root)
