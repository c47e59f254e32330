"""Say where the source of a doc or a chunk lies, for whoever opens it."""

from typing import TYPE_CHECKING

from msgspec import Struct

from kb.errors import NotFound
from kb.model.doc import Doc, Scope
from kb.model.repository_view import repository_view
from kb.model.search import Freshness, SpaceName
from kb.model.source import machine_of, path_of
from kb.operations.locate import home_with
from kb.operations.show import PassageInPlace, ShowRequest
from kb.operations.show import run as show
from kb.search.freshness import KEPT_BY_THE_HOME, compared_file, freshness_of
from kb.search.hits import source_line
from kb.store import chunks

if TYPE_CHECKING:
    from kb.home.spaces.spaces import Spaces
    from kb.store.store import Store


__all__ = ["NoSource", "SourcePlace", "repository_view", "run"]


class NoSource(NotFound):
    """What a doc was read from is no file and no page, or is gone."""

    template = "{detail}; `kb show {id}` shows what kb keeps of it"


class SourcePlace(Struct, frozen=True, kw_only=True):
    """Where the source of a doc or a chunk lies."""

    space: SpaceName | None
    doc_id: str
    title: str
    mime: str
    url: str | None = None
    """Of a page, and of a repository's file on a host that is known."""
    file: str | None = None
    """The absolute path of a file that is there; without `url` there is one."""
    line: int | None = None
    """1-based line of a chunk in the file as kb last read it; None for a whole doc."""
    freshness: Freshness
    warnings: tuple[str, ...] = ()


def run(spaces: "Spaces", request: ShowRequest, scope: Scope) -> SourcePlace:
    """Where the source of what `kb show` shows for an id or a path lies.

    Raises NoSource where the source is gone or was neither a file nor a page, and what
    `kb.operations.show.run` raises.
    """
    result = show(spaces, request, scope)
    shown = result.shown
    doc = shown.doc
    home = home_with(spaces.homes, {result.space: doc.doc_id})
    store = home.store
    with store.read() as txn:
        freshness = freshness_of(txn, doc, store)
        chunk = (
            chunks.by_id(txn, shown.passage.chunk_id) if isinstance(shown, PassageInPlace) else None
        )
    line = None if chunk is None else source_line(doc, chunk)
    ident = request.id if chunk else doc.doc_id
    is_page = doc.source.startswith(("http://", "https://"))
    url = doc.source if is_page else repository_view(doc.source, line)
    return SourcePlace(
        space=result.space,
        doc_id=doc.doc_id,
        title=doc.title,
        mime=doc.mime,
        url=url,
        file=None if url else _file(doc, ident, freshness, store),
        line=None if url else line,
        freshness=freshness,
        warnings=result.warnings,
    )


def _file(doc: Doc, ident: str, freshness: Freshness, store: "Store") -> str:
    file = compared_file(doc, store)
    if file is None and store.is_shared and doc.kind in KEPT_BY_THE_HOME:
        raise NoSource("it is kept in the database", id=ident)
    if file is None and path_of(doc.place, machine_of(doc.place)) is not None:
        raise NoSource(f"its file is on another machine: {doc.source}", id=ident)
    if file is None or not file.startswith("/"):
        raise NoSource("it has no file and no page", id=ident)
    if freshness == "gone":
        raise NoSource(f"{file} is gone", id=ident)
    return file
