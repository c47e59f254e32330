"""Resolves ids of docs and chunks, and authorizes them against a scope."""

from msgspec import Struct

from kb.errors import NotFound
from kb.model.doc import Doc, Scope
from kb.model.search import NO_FILTERS
from kb.model.text import Chunk
from kb.search.filters import may_appear
from kb.store import chunks, docs
from kb.store.kv import ReadTxn


class ResolvedId(Struct, frozen=True, kw_only=True):
    """What an id names: the newest doc of its source, and the chunk if it is a chunk's id."""

    doc: Doc
    chunk: Chunk | None
    is_older: bool
    """The id is that of an older version of the doc."""


def resolve_unchecked(txn: ReadTxn, ident: str, scope: Scope) -> Doc | Chunk:
    """The chunk, or the exact version of a doc, that a whole or short id names.

    Does not check that the scope may see it: use `resolve_id`, except for an operator.
    Raises NotFound and AmbiguousId.
    """
    full_id = docs.resolve(txn, ident, scope)
    target = chunks.by_id(txn, full_id) or docs.get(txn, full_id)
    if target is None:
        raise NotFound(id=ident)
    return target


def resolve_id(txn: ReadTxn, ident: str, scope: Scope) -> ResolvedId:
    """What a whole or short id of a doc or a chunk names for a scope.

    Raises NotFound, which names only `ident` and is the same for a doc that is hidden, removed or
    was never there. Raises AmbiguousId, which names only what the scope sees.
    """
    target = resolve_unchecked(txn, ident, scope)
    doc = docs.latest(txn, target.source_no)
    if doc is None or not may_appear(doc, NO_FILTERS, scope):
        raise NotFound(id=ident)
    chunk = target if isinstance(target, Chunk) else None
    return ResolvedId(doc=doc, chunk=chunk, is_older=chunk is None and doc.doc_id != target.doc_id)


def resolve_doc(txn: ReadTxn, ident: str, scope: Scope) -> Doc:
    """The newest doc that a doc's id names. Raises as `resolve_id`; NotFound for a chunk's id."""
    if not ident.startswith("d"):
        raise NotFound(id=ident)
    return resolve_id(txn, ident, scope).doc
