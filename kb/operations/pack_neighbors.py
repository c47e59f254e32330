"""List where the links of a pack's doc lead."""

from typing import TYPE_CHECKING, Final

from msgspec import Struct

from kb.knowledge.packs.brief import BriefDoc, brief, warnings_of
from kb.knowledge.packs.manifest import EdgeType
from kb.model.doc import Scope
from kb.operations.budget import rows_fitting
from kb.operations.fields import BUDGET, MaxTokens
from kb.operations.operation import Operation, Tool
from kb.operations.pack import DocName, PackName, has_packs, of_pack

if TYPE_CHECKING:
    from kb.home.spaces.spaces import Spaces
    from kb.knowledge.packs.load import Pack


class PackNeighborsRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The doc whose links are wanted."""

    pack: PackName
    doc: DocName
    edge_type: EdgeType | None = None
    max_tokens: MaxTokens = None


class PackLink(Struct, frozen=True, kw_only=True):
    """A link and the doc that it leads to."""

    type: EdgeType
    target: BriefDoc


class PackLinks(Struct, frozen=True, kw_only=True):
    """Where a doc's links lead, by selector and then by type."""

    pack_id: str
    document: BriefDoc
    edges: tuple[PackLink, ...]
    total: int
    warnings: tuple[str, ...]


def run(spaces: "Spaces", request: PackNeighborsRequest, scope: Scope) -> PackLinks:
    """Where the links of a doc lead. Raises UnknownPack, SharedSelector and UnknownPackDoc."""
    return of_pack(spaces, request.pack, scope, lambda pack: _links(pack, request))


def _links(pack: "Pack", request: PackNeighborsRequest) -> PackLinks:
    from kb.knowledge.packs import query

    neighbors = query.neighbors(pack, request.doc, request.edge_type)
    rows = [PackLink(type=edge.type, target=brief(edge.target)) for edge in neighbors.edges]
    return PackLinks(
        pack_id=pack.manifest.pack_id,
        document=brief(neighbors.document),
        edges=tuple(rows[: rows_fitting(rows, request.max_tokens)]),
        total=len(rows),
        warnings=warnings_of((*pack.findings, *neighbors.dangling)),
    )


PACK_NEIGHBORS: Final = Operation(
    name="pack-neighbors",
    summary="List where the links of a pack's doc lead.",
    request=PackNeighborsRequest,
    results=(PackLinks,),
    run=run,
    tool=Tool(
        name="kb_pack_neighbors",
        description=(
            "List the docs that a doc of a knowledge pack links to, and how: what it is part of, "
            "depends on, extends, defines, governs, classifies, references or is related to. Use "
            "it to go on from a doc that was useful."
        ),
        request=PackNeighborsRequest,
        output=PackLinks,
        run=run,
        bounds={"max_tokens": BUDGET},
        has_answers=has_packs,
    ),
)
