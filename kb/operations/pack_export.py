"""Docs of an open home, written with their chunks and vectors into one archive."""

import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec
from msgspec import Struct

from kb.errors import UsageError
from kb.model.doc import Doc, Scope
from kb.model.ids import DocId
from kb.model.source import display_name

if TYPE_CHECKING:
    from kb.home.app import App
    from kb.knowledge.packs.manifest import PackDoc
    from kb.operations.signing import SigningKey
    from kb.store.kv import ReadTxn

QUERY_HITS: Final = 100
_SUFFIX: Final = ".tar"


class ExportPackRequest(Struct, frozen=True, kw_only=True):
    """The docs that are wanted, by one of the first four, and what the archive is called."""

    tag: str | None = None
    query: str | None = None
    """The docs of the first QUERY_HITS chunks found."""
    doc_ids: tuple[str, ...] = ()
    pack: str | None = None
    """The docs of a registered pack, with their links."""
    target: str
    """The archive's path, which ends in .tar."""
    pack_id: str | None = None
    """Without one that of the pack, or else one from the archive's name."""
    title: str = ""
    version: str = "1"
    force: bool = False
    """Whether a file that is there is overwritten."""


class ExportPackResult(Struct, frozen=True, kw_only=True):
    """An archive that was written."""

    pack_id: str
    version: str
    docs: int
    passages: int
    content_hash: str
    signed_by: str | None
    """The public key."""
    bytes: int
    left_out: tuple[str, ...]
    """Docs that were meant and are not in it, and why."""
    file: str
    private_left_out: int
    """Docs that only their owner sees, and that were not named one by one."""


class _Chosen(Struct, frozen=True, kw_only=True):
    """The docs that were asked for, in any order."""

    docs: list[Doc]
    pack_id: str = ""
    """Of the pack that they are of, where that was asked for."""
    described: "dict[DocId, PackDoc]" = {}
    """What the manifest of that pack says of them."""


def check(request: ExportPackRequest) -> None:
    """Raise UsageError where the request says not one way to choose docs, or names no archive."""
    ways = (request.tag, request.query, request.doc_ids, request.pack)
    if sum(map(bool, ways)) != 1:
        raise UsageError("give one of --tag, --query, --doc and --pack")
    if not request.target.endswith(_SUFFIX):
        raise UsageError(f"{request.target}: the name of an archive ends in {_SUFFIX}")


def run(
    app: "App", request: ExportPackRequest, *, key: "SigningKey | None" = None
) -> ExportPackResult:
    """Write an archive whole or not at all; the same docs give the same bytes.

    Private docs go into it only when they are named one by one; what is not indexed yet is left
    out. Raises what `check` raises, UsageError where the id can name no folder or the file is there
    already, NothingToExport, NotFound, UnknownPack, TooLarge, StoreDamaged.
    """
    from kb.knowledge.packs.export import ArchiveSelection, NothingToExport, export
    from kb.store.content.layout import slug

    check(request)
    chosen = _chosen(app, request)
    open_docs = [doc for doc in chosen.docs if request.doc_ids or not doc.is_private]
    private = len(chosen.docs) - len(open_docs)
    if not open_docs:
        raise NothingToExport(private_note(private) or "no doc is meant")
    target = request.target
    path = Path(os.path.realpath(os.path.dirname(target) or "."), os.path.basename(target))
    selection = ArchiveSelection(
        pack_id=request.pack_id or chosen.pack_id or slug(path.stem),
        title=request.title,
        version=request.version,
        docs=tuple(open_docs),
        described=chosen.described,
    )
    written = export(app.store, app.content, selection, path, key=key, force=request.force)
    return ExportPackResult(
        **msgspec.structs.asdict(written), file=display_name(path), private_left_out=private
    )


def private_note(count: int) -> str:
    """What is said of private docs that were left out; empty where none was."""
    if not count:
        return ""
    docs = "1 private doc" if count == 1 else f"{count:,} private docs"
    return f"{docs} left out; name them by --doc, or say `kb visibility ID public` of those meant"


def _chosen(app: "App", request: ExportPackRequest) -> _Chosen:
    from kb.operations.entries import doc_named
    from kb.store import docs

    idents = _found(app, request.query) if request.query else request.doc_ids
    with app.store.read() as txn:
        if request.pack:
            return _of_pack(app, txn, request.pack)
        if request.tag:
            rows = [docs.latest(txn, number) for number in docs.with_facet(txn, "tag", request.tag)]
        else:
            named = (doc_named(txn, ident, app.caller) for ident in idents)
            rows = [docs.latest(txn, doc.source_no) for doc in named]
    return _Chosen(docs=_active(rows, app.caller))


def _found(app: "App", query: str) -> tuple[str, ...]:
    from kb.home.spaces.spaces import Spaces
    from kb.operations import search
    from kb.operations.search import SearchRequest

    alone = Spaces([app.opened()])
    request = SearchRequest(query=query, k=QUERY_HITS)
    return tuple(hit.doc_id for hit in search.run(alone, request, app.caller).hits)


def _of_pack(app: "App", txn: "ReadTxn", name: str) -> _Chosen:
    from kb.knowledge.packs import register
    from kb.store import docs

    record = register.resolve(txn, name, app.caller)
    pack = register.open_registered(record, app.paths.root)
    numbers = docs.with_facet(txn, "pack", record.pack_id)
    active = _active((docs.latest(txn, number) for number in numbers), app.caller)
    described = {
        doc.doc_id: about
        for doc in active
        if doc.pack and (about := pack.find(doc.pack.selector)) is not None
    }
    return _Chosen(docs=active, pack_id=record.pack_id, described=described)


def _active(rows: Iterable[Doc | None], scope: Scope) -> list[Doc]:
    """The active docs among the rows that a scope sees, each once."""
    seen = (doc for doc in rows if doc is not None and doc.visible_to(scope))
    return list({doc.doc_id: doc for doc in seen if doc.status == "active"}.values())
