"""Find docs of a pack by what its manifest says of them."""

from typing import TYPE_CHECKING, Annotated, Final

from msgspec import Meta, Struct

from kb.knowledge.packs.brief import BriefDoc, brief, warnings_of
from kb.knowledge.packs.manifest import EdgeType
from kb.model.doc import Scope
from kb.operations.budget import rows_fitting
from kb.operations.fields import BUDGET, ROWS, MaxTokens, Tags
from kb.operations.operation import Operation, Tool
from kb.operations.pack import PackKind, PackName, Prefix, Target, has_packs, of_pack

if TYPE_CHECKING:
    from kb.home.spaces.spaces import Spaces
    from kb.knowledge.packs.load import Pack


class PackSearchRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What to look for in a pack's manifest."""

    pack: PackName
    query: Annotated[str, Meta(max_length=1_000, description="Words as they stand in a manifest.")]
    tags: Tags = ()
    kind: PackKind | None = None
    prefix: Prefix | None = None
    related_to: Target | None = None
    edge_type: EdgeType | None = None
    limit: Annotated[int, Meta(ge=1, description="How many are wanted.")] = 20
    max_tokens: MaxTokens = None

    def __post_init__(self) -> None:
        """Raise ValueError where fields do not go together."""
        if self.edge_type and self.related_to is None:
            raise ValueError("field `edge_type` goes with `related_to`")


class PackMatch(Struct, frozen=True, kw_only=True):
    """A doc that matches, and where."""

    document: BriefDoc
    score: int
    matched: tuple[str, ...]


class PackMatches(Struct, frozen=True, kw_only=True):
    """Docs that match, best first."""

    pack_id: str
    hits: tuple[PackMatch, ...]
    total: int
    warnings: tuple[str, ...]


def run(spaces: "Spaces", request: PackSearchRequest, scope: Scope) -> PackMatches:
    """Docs whose id, selector, title, tags or summary hold the query, best first.

    Raises UnknownPack and SharedSelector.
    """
    return of_pack(spaces, request.pack, scope, lambda pack: _matches(pack, request))


def _matches(pack: "Pack", request: PackSearchRequest) -> PackMatches:
    from kb.knowledge.packs import query

    filters = query.PackFilter(
        tags=request.tags,
        kind=request.kind,
        selector_prefix=request.prefix,
        related_to=request.related_to,
        edge_type=request.edge_type,
    )
    hits = query.search(pack, request.query, filters)
    page = [
        PackMatch(document=brief(hit.document), score=hit.score, matched=hit.matched)
        for hit in hits[: request.limit]
    ]
    return PackMatches(
        pack_id=pack.manifest.pack_id,
        hits=tuple(page[: rows_fitting(page, request.max_tokens)]),
        total=len(hits),
        warnings=warnings_of(pack.findings),
    )


PACK_SEARCH: Final = Operation(
    name="pack-search",
    summary="Find docs of a pack by what its manifest says of them.",
    request=PackSearchRequest,
    results=(PackMatches,),
    run=run,
    tool=Tool(
        name="kb_pack_search",
        description=(
            "Find docs of a knowledge pack by words in their id, selector, title, tags or "
            "summary, not in their text. Use few words: the whole query must stand in a field "
            "as it is."
        ),
        request=PackSearchRequest,
        output=PackMatches,
        run=run,
        bounds={"limit": ROWS, "max_tokens": BUDGET},
        has_answers=has_packs,
    ),
)
