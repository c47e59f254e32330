"""Show a doc with its chunks, or a chunk in its place, as `kb show` does."""

from typing import TYPE_CHECKING, Annotated, Final

import msgspec
from msgspec import Meta, Struct

from kb.errors import NotFound
from kb.model.decoding import convert
from kb.model.doc import Doc, Scope
from kb.model.ids import SourceNo
from kb.model.search import SpaceName
from kb.model.text import Chunk
from kb.operations.entries import Reference, entry_doc, references_of, referrers_of
from kb.operations.fetch import around
from kb.operations.operation import Operation
from kb.search.resolve import resolve_id, resolve_unchecked
from kb.store import chunks, docs, links
from kb.store.kv import ReadTxn

if TYPE_CHECKING:
    from kb.home.open_home import OpenHome
    from kb.home.spaces.spaces import Spaces


__all__ = [
    "SHOW",
    "LinkedDoc",
    "PassageInPlace",
    "Reference",
    "ShowRequest",
    "ShownDoc",
    "ShownPassage",
    "WholeDoc",
    "run",
]


class ShowRequest(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is to be shown: an id, whole or short, or the path of a doc's source."""

    id: Annotated[str, Meta(min_length=1, max_length=4_096)]


class Passage(Struct, frozen=True, kw_only=True):
    """A passage as it is kept."""

    chunk_id: str
    doc_id: str
    ordinal: int
    heading: tuple[str, ...]
    page: int | None
    start: int
    end: int
    tokens: int
    text: str


class LinkedDoc(Struct, frozen=True, kw_only=True):
    """A doc at the other end of a link; the first two are None where no doc is there."""

    doc_id: str | None
    title: str | None
    source: str
    """Of the doc; without one, what the link says."""


class WholeDoc(Struct, frozen=True, kw_only=True):
    """A doc and its passages in reading order."""

    doc: Doc
    passages: tuple[Passage, ...]
    references: tuple[Reference, ...] = ()
    """Of an entry: where it refers to, as it says."""
    referrers: tuple[Reference, ...] = ()
    """Of an entry: the entries that refer to it, by their ids."""
    links: tuple[LinkedDoc, ...] = ()
    """Where it links to, in its own order."""
    backlinks: tuple[LinkedDoc, ...] = ()
    """The docs that link to it, by their sources."""


class PassageInPlace(Struct, frozen=True, kw_only=True):
    """A passage, its doc, and what stands before and after it."""

    passage: Passage
    doc: Doc
    before: Passage | None
    after: Passage | None


class ShownDoc(Struct, frozen=True, kw_only=True):
    """The doc that an id names, and where it is."""

    space: SpaceName | None
    shown: WholeDoc
    warnings: tuple[str, ...]


class ShownPassage(Struct, frozen=True, kw_only=True):
    """The passage that an id names, and where it is."""

    space: SpaceName | None
    shown: PassageInPlace
    warnings: tuple[str, ...]


def run(spaces: "Spaces", request: ShowRequest, scope: Scope) -> ShownDoc | ShownPassage:
    """What an entry's whole id names, or else an id, or a path, in the first space that has it.

    A path is that of `doc_at`. A scope that is no operator's gets the newest version of a doc that
    it sees. Raises NotFound, AmbiguousId, and a space's own error where none can be read.
    """
    try:
        return _run_by_id(spaces, request, scope)
    except NotFound:
        from kb.operations.doc_at import doc_at

        ident = doc_at(spaces.homes, request.id, scope, list(spaces.failed))
    return _run_by_id(spaces, ShowRequest(id=ident), scope)


def _run_by_id(spaces: "Spaces", request: ShowRequest, scope: Scope) -> ShownDoc | ShownPassage:
    from kb.home.spaces.each import warnings_of
    from kb.operations.locate import locate

    failed = list(spaces.failed)
    by_home: dict[SpaceName | None, WholeDoc | PassageInPlace] = {}

    def resolve(home: "OpenHome") -> str:
        shown = by_home[home.name] = _shown(home, request.id, scope)
        return shown.doc.doc_id if isinstance(shown, WholeDoc) else shown.passage.chunk_id

    name = next(iter(locate(spaces.homes, request.id, resolve, failed)))
    shown, warnings = by_home[name], warnings_of(failed, scope)
    if isinstance(shown, WholeDoc):
        return ShownDoc(space=name, shown=shown, warnings=warnings)
    return ShownPassage(space=name, shown=shown, warnings=warnings)


def _shown(home: "OpenHome", ident: str, asks: Scope) -> WholeDoc | PassageInPlace:
    scope = home.scope(asks)
    with home.store.read() as txn:
        entry = entry_doc(txn, ident)
        if entry is not None and entry.visible_to(scope):
            return _whole(txn, entry, scope)
        if not scope.operator:
            opened = resolve_id(txn, ident, scope)
            if opened.chunk is not None:
                return _in_place(txn, opened.chunk, opened.doc, scope)
            return _whole(txn, opened.doc, scope)
        record = resolve_unchecked(txn, ident, scope)
        if isinstance(record, Chunk):
            return _in_place(txn, record, docs.require(txn, record.doc_id), scope)
        return _whole(txn, record, scope)


def _whole(txn: ReadTxn, doc: Doc, scope: Scope) -> WholeDoc:
    rows = [] if _is_older(doc) else chunks.of_source(txn, doc.source_no)
    return WholeDoc(
        doc=_for(doc, scope),
        passages=tuple(_passage(chunk) for chunk in rows),
        references=references_of(txn, doc, scope),
        referrers=referrers_of(txn, doc, scope),
        links=tuple(_linked(link.doc, link.target) for link in links.links_of(txn, doc, scope)),
        backlinks=tuple(_linked(row, row.source) for row in links.backlinks_of(txn, doc, scope)),
    )


def _linked(doc: Doc | None, target: str) -> LinkedDoc:
    if doc is None:
        return LinkedDoc(doc_id=None, title=None, source=target)
    return LinkedDoc(doc_id=doc.doc_id, title=doc.title, source=doc.source)


def _for(doc: Doc, scope: Scope) -> Doc:
    """A doc as a scope is shown it: its number, which counts what others have, is not for all.

    Where its definitions are is said by its chunks.
    """
    source_no = doc.source_no if scope.operator else SourceNo(0)
    return msgspec.structs.replace(doc, source_no=source_no, definitions=())


def _is_older(doc: Doc) -> bool:
    """Whether the chunks of its source are those of a newer version."""
    return doc.status == "superseded"


def _in_place(txn: ReadTxn, chunk: Chunk, doc: Doc, scope: Scope) -> PassageInPlace:
    row, place = around(txn, chunk, 1)
    after = row[place + 1 :]
    return PassageInPlace(
        passage=_passage(chunk),
        doc=_for(doc, scope),
        before=_passage(row[0]) if place else None,
        after=_passage(after[0]) if after else None,
    )


def _passage(chunk: Chunk) -> Passage:
    return convert(chunk, Passage, from_attributes=True)


SHOW: Final = Operation(
    name="show",
    summary="Show a doc or a passage, as `kb show` does.",
    request=ShowRequest,
    results=(ShownDoc, ShownPassage),
    run=run,
)
