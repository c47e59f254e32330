"""What may be found: the caller's limits, and what the caller may see."""

from collections.abc import Callable
from typing import Final

from kb.model.doc import Audience, Doc, Scope
from kb.model.search import Filters
from kb.model.source import is_within
from kb.store import docs
from kb.store.kv import ReadTxn

_ASKERS_MAX: Final = 16


def keep_doc(doc: Doc, filters: Filters, scope: Scope) -> bool:
    """Whether a doc may appear in an answer: active, visible, and within the limits."""
    return doc.status == "active" and doc.visible_to(scope) and within(doc, filters)


def within(doc: Doc, filters: Filters) -> bool:
    """Whether a doc has all the tags, and one of the kinds, packs and sources that are named."""
    return (
        all(tag in doc.tags for tag in filters.tags)
        and (not filters.kinds or doc.kind in filters.kinds)
        and (not filters.packs or (doc.pack is not None and doc.pack.pack_id in filters.packs))
        and (not filters.sources or any(is_within(doc.source, one) for one in filters.sources))
    )


def audiences_read(txn: ReadTxn, scope: Scope) -> tuple[Audience, ...]:
    """The audiences that docs have and whose docs a scope sees."""
    return tuple(audience for audience in docs.audiences(txn) if scope.reads(audience))


def has_filters(request: Filters) -> bool:
    """Whether a request itself keeps docs out, whoever asks."""
    return any(getattr(request, name) for name in Filters.__struct_fields__)


def of_audiences(txn: ReadTxn, audiences: tuple[Audience, ...]) -> frozenset[int]:
    """Numbers of the sources whose docs have one of the audiences; half a microsecond to each."""
    return frozenset(no for one in audiences for no in docs.with_facet(txn, "audience", one))


class KnownAudiences:
    """`of_audiences`, which does not look twice at the same state of a store; any thread may ask.

    Keeps the sets of the last few askers, 60 bytes to a source.
    """

    def __init__(self) -> None:
        self._kept: dict[tuple[Audience, ...], tuple[int, frozenset[int]]] = {}

    def __call__(self, txn: ReadTxn, audiences: tuple[Audience, ...]) -> frozenset[int]:
        """As `of_audiences`."""
        last_txn = txn.last_txn()
        known = self._kept.get(audiences)
        if known is not None and known[0] == last_txn:
            return known[1]
        found = of_audiences(txn, audiences)
        if len(self._kept) >= _ASKERS_MAX:
            self._kept = {}
        self._kept[audiences] = (last_txn, found)
        return found


def allowed_sources(
    txn: ReadTxn,
    filters: Filters,
    scope: Scope,
    visible: Callable[[ReadTxn, tuple[Audience, ...]], frozenset[int]] = of_audiences,
) -> "frozenset[int] | None":
    """Numbers of the sources that can pass `keep_doc`; None where every one can.

    From the facets, so that a filter which lets one source in ten thousand through is found
    among the candidates and not after them. `visible` gives what `of_audiences` does.
    """
    limits: list[frozenset[int] | set[int]] = []
    if not all(scope.reads(audience) for audience in docs.audiences(txn)):
        limits.append(visible(txn, audiences_read(txn, scope)))
    limits += [set(docs.with_facet(txn, "tag", tag)) for tag in filters.tags]
    if filters.kinds:
        limits.append({no for kind in filters.kinds for no in docs.with_facet(txn, "kind", kind)})
    if filters.packs:
        limits.append({no for one in filters.packs for no in docs.with_facet(txn, "pack", one)})
    if filters.sources:
        limits.append(set().union(*(docs.within(txn, place) for place in filters.sources)))
    if filters.doc_ids:
        named = [docs.get(txn, doc_id) for doc_id in filters.doc_ids]
        limits.append({doc.source_no for doc in named if doc is not None})
    if not limits:
        return None
    first, *rest = limits
    # One set by itself is not copied.
    return frozenset(first.intersection(*rest) if rest else first)
