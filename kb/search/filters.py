"""Filters: which docs a request asks for, and which of them its scope may see."""

import functools
from collections.abc import Callable, Iterable
from typing import Final, TypeVar

from kb.model.doc import Audience, Doc, Scope, is_tag_within
from kb.model.ids import DocId, Lsid
from kb.model.mail import MailHead, is_person
from kb.model.search import Filters
from kb.model.source import is_within
from kb.store import chunks, docs, links
from kb.store.kv import ReadTxn

_T = TypeVar("_T")
_SETS_MAX: Final = 16


def may_appear(doc: Doc, filters: Filters, scope: Scope) -> bool:
    """Whether a doc may appear in a result: active, visible to the scope, and let through."""
    return doc.status == "active" and doc.visible_to(scope) and matches_filters(doc, filters)


def is_answerable(txn: ReadTxn, place: Lsid, filters: Filters, scope: Scope) -> bool:
    """Whether a source is in a home, may appear in a result, and has chunks to be found by."""
    doc = docs.latest_of(txn, place)
    if doc is None or not may_appear(doc, filters, scope):
        return False
    return bool(chunks.numbers_of(txn, doc.source_no))


def matches_filters(doc: Doc, filters: Filters) -> bool:
    """Whether a doc meets every filter but those that name docs, and none that leaves out."""
    return _meets(doc, filters) and not any(_meets(doc, one) for one in filters.without)


def _meets(doc: Doc, filters: Filters) -> bool:
    return (
        all(any(is_tag_within(tag, wanted) for tag in doc.tags) for wanted in filters.tags)
        and (not filters.kinds or docs.is_of_kind(doc, filters.kinds))
        and (not filters.packs or (doc.pack is not None and doc.pack.pack_id in filters.packs))
        and (not filters.sources or any(is_within(doc.source, place) for place in filters.sources))
        and _is_of_version(doc.source, filters.site_versions)
        and (not (filters.since or filters.until) or docs.is_dated(doc.day, filters))
        and _is_between(doc.mail, filters)
    )


def _is_of_version(source: str, wanted: tuple[str, ...]) -> bool:
    if not wanted:
        return True
    from kb.model.site_version import site_version

    return site_version(source) in {version.lower() for version in wanted}


def _is_between(mail: MailHead | None, filters: Filters) -> bool:
    """Whether a mail is from and to the people that are wanted."""
    if not (filters.sender or filters.recipient):
        return True
    if mail is None:
        return False
    is_from = not filters.sender or is_person(mail.sender, filters.sender)
    wanted = filters.recipient
    return is_from and (not wanted or any(is_person(one, wanted) for one in mail.recipients))


def _linked(
    txn: ReadTxn,
    doc_ids: Iterable[DocId],
    scope: Scope,
    others: Callable[[ReadTxn, Doc, Scope], list[Doc]],
) -> set[int]:
    """Numbers of the sources at the other end of the links of these docs."""
    named = (docs.get(txn, doc_id) for doc_id in doc_ids)
    return {
        other.source_no
        for doc in named
        if doc is not None and doc.visible_to(scope)
        for other in others(txn, doc, scope)
    }


def readable_audiences(txn: ReadTxn, scope: Scope) -> tuple[Audience, ...]:
    """The audiences of docs that the scope may see."""
    return tuple(audience for audience in docs.audiences(txn) if scope.reads(audience))


def has_filters(request: Filters) -> bool:
    """Whether a request says which docs it wants, whatever its scope and what it leaves out."""
    return any(getattr(request, name) for name in Filters.__struct_fields__)


def sources_of_audiences(txn: ReadTxn, audiences: tuple[Audience, ...]) -> frozenset[int]:
    """Numbers of the sources whose docs have one of the audiences; takes about 0.5 us each."""
    return frozenset(
        no for audience in audiences for no in docs.with_facet(txn, "audience", audience)
    )


def named_sources(txn: ReadTxn, filters: Filters) -> set[int]:
    """Numbers of the sources of the docs that are named, whatever their state."""
    named = (docs.get(txn, doc_id) for doc_id in filters.doc_ids)
    return {doc.source_no for doc in named if doc is not None}


def allowed_sources(
    txn: ReadTxn,
    filters: Filters,
    scope: Scope,
    visible: Callable[[ReadTxn, tuple[Audience, ...]], frozenset[int]] = sources_of_audiences,
) -> "frozenset[int] | None":
    """Numbers of the sources whose docs can pass `may_appear`; None where all can.

    Read from the facets, so that a filter which lets one source in ten thousand through limits
    the candidates before they are ranked. `visible` returns what `sources_of_audiences` does.
    """
    limits = _limits(txn, filters, scope, visible)
    if not limits:
        return None
    first, *rest = limits
    # A single set is not copied.
    allowed = frozenset(first.intersection(*rest) if rest else first)
    if not filters.without:
        return allowed
    left_out = (allowed_sources(txn, one, scope, visible) for one in filters.without)
    return allowed.difference(*filter(None, left_out))


def _limits(
    txn: ReadTxn,
    filters: Filters,
    scope: Scope,
    visible: Callable[[ReadTxn, tuple[Audience, ...]], frozenset[int]],
) -> list[frozenset[int] | set[int]]:
    """What each filter lets through, and the scope where it does not see all."""
    limits: list[frozenset[int] | set[int]] = []
    if not all(scope.reads(audience) for audience in docs.audiences(txn)):
        limits.append(visible(txn, readable_audiences(txn, scope)))
    limits += [{*docs.with_tag(txn, tag)} for tag in filters.tags]
    if filters.kinds:
        limits.append({*docs.of_kinds(txn, filters.kinds)})
    if filters.packs:
        limits.append({no for pack in filters.packs for no in docs.with_facet(txn, "pack", pack)})
    if filters.sources:
        limits.append(set().union(*(docs.within(txn, place) for place in filters.sources)))
    if filters.site_versions:
        limits.append({*docs.of_site_versions(txn, filters.site_versions)})
    if filters.since or filters.until:
        limits.append({*docs.dated(txn, filters)})
    limits += [
        {*docs.with_person(txn, name, wanted)}
        for name, wanted in (("from", filters.sender), ("to", filters.recipient))
        if wanted
    ]
    if filters.doc_ids:
        limits.append(named_sources(txn, filters))
    limits += [
        _linked(txn, idents, scope, others)
        for idents, others in (
            (filters.linked_to, links.backlinks_of),
            (filters.links_from, links.targets_of),
        )
        if idents
    ]
    if filters.without and not limits:
        limits.append(visible(txn, readable_audiences(txn, scope)))
    return limits


class AllowedSources:
    """What `allowed_sources` returns, kept for one state of a store. Thread-safe.

    Keeps a few sets, of about 60 bytes a source. Those of audiences are kept apart, so that many
    filters, one after another, do not push them out.
    """

    def __init__(self) -> None:
        self._filtered: dict[object, tuple[int, frozenset[int] | None]] = {}
        self._readable: dict[object, tuple[int, frozenset[int]]] = {}

    def __call__(self, txn: ReadTxn, filters: Filters, scope: Scope) -> frozenset[int] | None:
        """As `allowed_sources`."""
        wanted = (getattr(filters, name) for name in Filters.__struct_fields__)
        key = (readable_audiences(txn, scope), *wanted, filters.without)
        look_up = functools.partial(allowed_sources, txn, filters, scope, self._of_audiences)
        return _once(self._filtered, key, txn.last_txn(), look_up)

    def _of_audiences(self, txn: ReadTxn, audiences: tuple[Audience, ...]) -> frozenset[int]:
        look_up = functools.partial(sources_of_audiences, txn, audiences)
        return _once(self._readable, audiences, txn.last_txn(), look_up)


def _once(
    kept: dict[object, tuple[int, _T]], key: object, last_txn: int, look_up: Callable[[], _T]
) -> _T:
    """What is kept for a key of that state of the store, or else is looked up, and kept."""
    known = kept.get(key)
    if known is not None and known[0] == last_txn:
        return known[1]
    found = look_up()
    if len(kept) >= _SETS_MAX:
        kept.clear()
    kept[key] = (last_txn, found)
    return found
