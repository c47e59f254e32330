"""Browse one pack as the person at the machine does: its docs, whole, with all that it says."""

from msgspec import Struct

from kb.knowledge.packs import query
from kb.knowledge.packs.brief import variables, warnings_of
from kb.knowledge.packs.load import Pack
from kb.knowledge.packs.manifest import EDGE_TYPES, EdgeType, PackDoc
from kb.knowledge.packs.query import NeighborEdge, PackFilter, PackHit

__all__ = [
    "EDGE_TYPES",
    "EdgeType",
    "PackDoc",
    "PackDocText",
    "PackDocs",
    "PackFilter",
    "PackHits",
    "PackNeighbors",
    "PackVariables",
    "list_docs",
    "neighbors",
    "prompt_variables",
    "read",
    "search",
]


class PackDocs(Struct, frozen=True, kw_only=True):
    """Docs of a pack, in the order of its manifest."""

    pack_id: str
    docs: list[PackDoc]
    warnings: tuple[str, ...]


class PackDocText(Struct, frozen=True, kw_only=True):
    """A doc of a pack and its body; None where that cannot be read."""

    pack_id: str
    document: PackDoc
    content: str | None
    warnings: tuple[str, ...]


class PackHits(Struct, frozen=True, kw_only=True):
    """Docs of a pack that match, best first."""

    pack_id: str
    query: str
    hits: list[PackHit]
    warnings: tuple[str, ...]


class PackNeighbors(Struct, frozen=True, kw_only=True):
    """Where the links of a doc lead."""

    pack_id: str
    document: PackDoc
    edges: tuple[NeighborEdge, ...]
    warnings: tuple[str, ...]


class PackVariables(Struct, frozen=True, kw_only=True):
    """Variables for a prompt, by name."""

    pack_id: str
    variables: dict[str, str]
    warnings: tuple[str, ...]


def list_docs(pack: Pack, filters: PackFilter) -> PackDocs:
    """The docs that a filter lets through, in the order of the manifest."""
    return PackDocs(
        pack_id=pack.manifest.pack_id,
        docs=query.list_docs(pack, filters),
        warnings=warnings_of(pack.findings),
    )


def read(pack: Pack, selector: str) -> PackDocText:
    """A doc and its body. Raises UnknownPackDoc."""
    doc = pack.read(selector)
    return PackDocText(
        pack_id=pack.manifest.pack_id,
        document=doc.document,
        content=doc.content,
        warnings=doc.warnings,
    )


def search(pack: Pack, words: str, filters: PackFilter) -> PackHits:
    """The docs whose id, selector, title, tags or summary hold the words, best first."""
    return PackHits(
        pack_id=pack.manifest.pack_id,
        query=words,
        hits=query.search(pack, words, filters),
        warnings=warnings_of(pack.findings),
    )


def neighbors(pack: Pack, selector: str, edge: EdgeType | None) -> PackNeighbors:
    """Where the links of a doc lead, by one type of link or all. Raises UnknownPackDoc."""
    links = query.neighbors(pack, selector, edge)
    return PackNeighbors(
        pack_id=pack.manifest.pack_id,
        document=links.document,
        edges=links.edges,
        warnings=warnings_of((*pack.findings, *links.dangling)),
    )


def prompt_variables(pack: Pack) -> PackVariables:
    """A variable for each doc: its name, and what the doc is in a line."""
    named = variables(pack)
    return PackVariables(
        pack_id=pack.manifest.pack_id,
        variables=named.variables,
        warnings=(*warnings_of(pack.findings), *named.warnings),
    )
