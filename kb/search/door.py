"""The way in: an id becomes a doc that the scope sees, or nothing that anybody could tell apart."""

from msgspec import Struct

from kb.errors import NotFound
from kb.model.doc import Doc, Scope
from kb.model.search import NO_FILTERS
from kb.model.text import Chunk
from kb.search.filters import keep_doc
from kb.store import chunks, docs
from kb.store.kv import ReadTxn


class Opened(Struct, frozen=True, kw_only=True):
    """What an id names: the newest doc of its source, and the passage if it is one's id."""

    doc: Doc
    chunk: Chunk | None
    is_older: bool
    """The id is that of an older version of the doc."""


def named(txn: ReadTxn, ident: str, scope: Scope) -> Doc | Chunk:
    """The passage, or the very version of a doc, that an id names, whole or short.

    A scope other than an operator's must still be asked whether it sees it, as `open_id` does.
    Raises NotFound and AmbiguousId.
    """
    full = docs.resolve(txn, ident, scope)
    found = chunks.by_id(txn, full) or docs.get(txn, full)
    if found is None:
        raise NotFound(id=ident)
    return found


def open_id(txn: ReadTxn, ident: str, scope: Scope) -> Opened:
    """What a doc's or passage's id, whole or short, names for a scope.

    Raises NotFound, which names no more than `ident` and is the same for what is hidden, removed
    or was never there, and AmbiguousId, which names only what the scope sees.
    """
    found = named(txn, ident, scope)
    doc = docs.latest(txn, found.source_no)
    if doc is None or not keep_doc(doc, NO_FILTERS, scope):
        raise NotFound(id=ident)
    chunk = found if isinstance(found, Chunk) else None
    return Opened(doc=doc, chunk=chunk, is_older=chunk is None and doc.doc_id != found.doc_id)


def open_doc(txn: ReadTxn, ident: str, scope: Scope) -> Doc:
    """The newest doc that a doc's id names. Raises as `open_id` does, also for a passage's id."""
    if not ident.startswith("d"):
        raise NotFound(id=ident)
    return open_id(txn, ident, scope).doc
