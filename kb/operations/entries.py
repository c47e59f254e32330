"""Entries and what they refer to: for the person at the machine, as `kb.operations.kept` is."""

from collections.abc import Iterator

from msgspec import Struct

from kb.errors import NotFound, NotYours
from kb.home.open_home import OpenHome
from kb.model.doc import Doc, Scope
from kb.model.source import entry_lsid
from kb.search.resolve import resolve_doc
from kb.store import docs
from kb.store.kv import ReadTxn


class Reference(Struct, frozen=True, kw_only=True):
    """The id of an entry, and its doc; both others are None where no entry has the id."""

    zettel_id: str
    doc_id: str | None = None
    title: str | None = None


class ListedEntry(Struct, frozen=True, kw_only=True):
    """An entry as it is listed."""

    zettel_id: str
    title: str
    entry_type: str
    version: str
    author: str | None
    tags: tuple[str, ...]
    references: tuple[str, ...]
    dangling: tuple[str, ...]
    """Those of its references that no entry has as its id."""
    doc_id: str
    source: str


class Entries(Struct, frozen=True, kw_only=True):
    """Entries, by their ids."""

    entries: tuple[ListedEntry, ...]


def listed_entries(home: OpenHome, *, entry_type: str | None, dangling: bool) -> Entries:
    """The entries of a type, or all; with `dangling` those with references that lead nowhere."""
    with home.store.read() as txn:
        seen = (doc for doc in _active(txn, "kind", "entry") if doc.visible_to(home.caller))
        rows = [_listed(txn, doc, home.caller) for doc in seen]
    selected = [
        row
        for row in rows
        if (entry_type is None or row.entry_type == entry_type) and (row.dangling or not dangling)
    ]
    return Entries(entries=tuple(sorted(selected, key=lambda row: row.zettel_id)))


def doc_named(txn: ReadTxn, ident: str, scope: Scope) -> Doc:
    """What an entry's whole id names, or else the id of a doc, whole or short.

    For an operator also an older version or a removed doc, for others the newest version of a doc
    that they see. Raises NotFound or AmbiguousId.
    """
    entry = entry_doc(txn, ident)
    if entry is not None and entry.visible_to(scope):
        return entry
    if scope.operator:
        return docs.require(txn, docs.resolve_doc(txn, ident, scope))
    return resolve_doc(txn, ident, scope)


def doc_meant(txn: ReadTxn, ident: str, scope: Scope, machine: str, *, by_part: bool = True) -> Doc:
    """As `doc_named`, or else by a path as `doc_of` knows it, of a file of `machine`."""
    try:
        return doc_named(txn, ident, scope)
    except NotFound:
        from kb.operations.doc_at import doc_of, docs_by_source

        by_source = docs_by_source(txn, scope, machine)
        return doc_named(txn, doc_of(ident, by_source, by_part=by_part), scope)


def own_doc(txn: ReadTxn, ident: str, scope: Scope, machine: str) -> Doc:
    """As `doc_meant` by no part of a name, of a doc that is the scope's to change.

    An operator's are all. Raises NotYours for one that the scope sees and that belongs to somebody
    else.
    """
    doc = doc_meant(txn, ident, scope, machine, by_part=False)
    if not is_own(doc, scope):
        raise NotYours(id=ident)
    return doc


def is_own(doc: Doc, scope: Scope) -> bool:
    """Whether a doc is the scope's to change."""
    return scope.operator or doc.owner == scope.user


def entry_doc(txn: ReadTxn, zettel_id: str) -> Doc | None:
    """The doc of the entry that has this very id now."""
    doc = docs.latest_of(txn, entry_lsid(zettel_id))
    return doc if doc is not None and doc.status == "active" else None


def references_of(txn: ReadTxn, doc: Doc, scope: Scope) -> tuple[Reference, ...]:
    """Where an entry refers to, in its own order; nothing for a doc that is no entry.

    An entry that the scope does not see is as one that is not there.
    """
    targets = doc.entry.references if doc.entry else ()
    return tuple(_reference(txn, target, scope) for target in targets)


def referrers_of(txn: ReadTxn, doc: Doc, scope: Scope) -> tuple[Reference, ...]:
    """The entries that refer to this one, by their ids, as far as the scope sees them."""
    if doc.entry is None:
        return ()
    referrers = _active(txn, "reference", doc.entry.zettel_id)
    seen = (
        referrer.entry.zettel_id
        for referrer in referrers
        if referrer.entry and referrer.visible_to(scope)
    )
    return tuple(_reference(txn, ident, scope) for ident in sorted(seen))


def _active(txn: ReadTxn, facet: str, value: str) -> Iterator[Doc]:
    for number in docs.with_facet(txn, facet, value):
        doc = docs.latest(txn, number)
        if doc is not None:
            yield doc


def _reference(txn: ReadTxn, zettel_id: str, scope: Scope) -> Reference:
    doc = entry_doc(txn, zettel_id)
    if doc is None or not doc.visible_to(scope):
        return Reference(zettel_id=zettel_id)
    return Reference(zettel_id=zettel_id, doc_id=doc.doc_id, title=doc.title)


def _listed(txn: ReadTxn, doc: Doc, scope: Scope) -> ListedEntry:
    assert doc.entry is not None
    meta = doc.entry
    return ListedEntry(
        zettel_id=meta.zettel_id,
        title=doc.title,
        entry_type=meta.entry_type,
        version=meta.version,
        author=meta.author,
        tags=doc.tags,
        references=meta.references,
        dangling=tuple(
            target for target in meta.references if _reference(txn, target, scope).doc_id is None
        ),
        doc_id=doc.doc_id,
        source=doc.source,
    )
