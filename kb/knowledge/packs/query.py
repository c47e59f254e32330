"""Queries a pack's manifest: lists docs, searches them, follows their links. Pure."""

from collections.abc import Callable, Iterator
from typing import Final

from msgspec import Struct

from kb.knowledge.packs.load import Pack
from kb.knowledge.packs.manifest import EdgeType, PackDoc, PackEdge, PackFinding, normal_kind

# A field that contains the query adds this to the score; twice as much if it equals the query.
_WEIGHTS: Final[tuple[tuple[str, int, Callable[[PackDoc], tuple[str, ...]]], ...]] = (
    ("id", 100, lambda doc: (doc.id,)),
    ("selector", 90, lambda doc: (doc.selector,)),
    ("title", 80, lambda doc: (doc.title,)),
    ("tag", 70, lambda doc: doc.tags),
    ("summary", 60, lambda doc: (doc.summary,)),
)


class PackFilter(Struct, frozen=True, kw_only=True):
    """Filters of docs; a filter that is not set lets all pass."""

    tags: tuple[str, ...] = ()
    """Tags that a doc must have, as written."""
    kind: str | None = None
    """A kind in any spelling; compared as a slug."""
    selector_prefix: str | None = None
    related_to: str | None = None
    """A doc must link to this: the target as written, or the target's id or selector."""
    edge_type: EdgeType | None = None
    """The type of that link; without `related_to` it has no effect."""


class PackHit(Struct, frozen=True, kw_only=True):
    """A doc whose manifest matches."""

    document: PackDoc
    score: int
    matched: tuple[str, ...]
    """The names of the fields that contain the query, sorted."""


class NeighborEdge(Struct, frozen=True, kw_only=True):
    """A link and the doc that it leads to."""

    type: EdgeType
    target: PackDoc


class Neighbors(Struct, frozen=True, kw_only=True):
    """A doc and where its links lead."""

    document: PackDoc
    edges: tuple[NeighborEdge, ...]
    """By the target's selector, then by type; none twice."""
    dangling: tuple[PackFinding, ...]
    """Links whose target the pack does not have."""


def list_docs(pack: Pack, filters: PackFilter = PackFilter()) -> list[PackDoc]:  # noqa: B008  frozen
    """The docs that pass the filter, in the order of the manifest."""
    kind = None if filters.kind is None else normal_kind(filters.kind)
    return [
        doc
        for doc in pack.manifest.docs
        if kind in (None, doc.kind)
        and doc.selector.startswith(filters.selector_prefix or "")
        and set(filters.tags) <= set(doc.tags)
        and (filters.related_to is None or _is_related(pack, doc, filters.related_to, filters))
    ]


def _is_related(pack: Pack, doc: PackDoc, name: str, filters: PackFilter) -> bool:
    return any(
        filters.edge_type in (None, edge.type) and _leads_to(pack, edge, name)
        for edge in doc.related
    )


def _leads_to(pack: Pack, edge: PackEdge, name: str) -> bool:
    target = pack.find(edge.target)
    return edge.target == name or (target is not None and name in (target.id, target.selector))


def search(pack: Pack, query: str, filters: PackFilter = PackFilter()) -> list[PackHit]:  # noqa: B008  frozen
    """Docs whose id, selector, title, tags or summary contain the query, best first.

    Ties are sorted by selector. Letter case and white space at the ends do not matter. Each tag
    that matches adds to the score. An empty query finds every doc that passes the filter, with a
    point for each field and tag.
    """
    needle = _folded(query)
    hits = (_hit(doc, needle) for doc in list_docs(pack, filters))
    matching = [hit for hit in hits if hit.score]
    return sorted(matching, key=lambda hit: (-hit.score, hit.document.selector))


def _hit(doc: PackDoc, needle: str) -> PackHit:
    score, matched = 0, set()
    for label, weight, texts_of in _WEIGHTS:
        for text in texts_of(doc):
            points = _points(_folded(text), needle, weight)
            score += points
            if points and needle:
                matched.add(label)
    return PackHit(document=doc, score=score, matched=tuple(sorted(matched)))


def _points(text: str, needle: str, weight: int) -> int:
    if not needle:
        return 1
    if text == needle:
        return 2 * weight
    return weight if needle in text else 0


def _folded(text: str) -> str:
    return text.strip().lower()


def neighbors(pack: Pack, name: str, edge_type: EdgeType | None = None) -> Neighbors:
    """The targets of a doc's links, of one type or of all. Raises UnknownPackDoc."""
    doc = pack.require(name)
    edges: dict[tuple[str, EdgeType], NeighborEdge] = {}
    dangling_edges = []
    for edge in doc.related:
        if edge_type not in (None, edge.type):
            continue
        target = pack.find(edge.target)
        if target is None:
            dangling_edges.append(_dangling(doc, edge))
        else:
            edges.setdefault(
                (target.selector, edge.type), NeighborEdge(type=edge.type, target=target)
            )
    return Neighbors(
        document=doc,
        edges=tuple(edges[key] for key in sorted(edges)),
        dangling=tuple(dangling_edges),
    )


def dangling(pack: Pack) -> Iterator[PackFinding]:
    """Every link of a pack whose target it does not have, in the order of the docs."""
    for doc in pack.manifest.docs:
        for edge in doc.related:
            if pack.find(edge.target) is None:
                yield _dangling(doc, edge)


def _dangling(doc: PackDoc, edge: PackEdge) -> PackFinding:
    detail = f"its {edge.type} link leads to {edge.target}, which the pack does not have"
    return PackFinding(code="dangling_target", doc=doc.selector, detail=detail)
