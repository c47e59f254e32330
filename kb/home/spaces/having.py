"""Which space has what an id names."""

from collections.abc import Callable, Mapping, Sequence

from kb.errors import AmbiguousId, NotFound
from kb.home.spaces.asked import FailedSpace, OpenSpace, ask
from kb.knowledge.packs.load import UnknownPack
from kb.knowledge.packs.register import resolve
from kb.model.doc import Scope
from kb.model.search import SpaceName
from kb.operations.fetch import opened_by
from kb.search.resolve import ResolvedId, resolve_doc, resolve_id

Finds = Callable[[OpenSpace], str]
"""The full id of what is sought in a space. Raises NotFound, and AmbiguousId for a short one."""


def having(
    spaces: Sequence[OpenSpace], ident: str, finds: Finds, failed: list[FailedSpace]
) -> Mapping[SpaceName, str]:
    """The full id that `finds` finds for an id, by the spaces that have it, in their order.

    Raises AmbiguousId where it is short for one thing here and for another there, NotFound
    where it names nothing, and a space's own error where only that one could tell.
    """

    def look(space: OpenSpace) -> str | None:
        try:
            return finds(space)
        except NotFound:
            return None

    given = ask(spaces, look, failed)
    found = {space.name: full for space, full in given if full is not None}
    if len({full for full in found.values() if full.startswith(ident)}) > 1:
        each = (f"{full} in the {name} space" for name, full in found.items())
        raise AmbiguousId(id=ident, candidates=", ".join(each))
    if not found:
        raise failed[0].error if failed else NotFound(id=ident)
    return found


def having_pack(
    spaces: Sequence[OpenSpace], name: str, scope: Scope, failed: list[FailedSpace]
) -> Mapping[SpaceName, str]:
    """The id of the pack that a name means, by space. Raises UnknownPack, SharedSelector."""

    def look(space: OpenSpace) -> str:
        with space.app.store.read() as txn:
            return resolve(txn, name, scope).pack_id

    try:
        return having(spaces, name, look, failed)
    except NotFound as error:
        raise UnknownPack(id=name) from error


def doc_named(ident: str, scope: Scope) -> Finds:
    """Finds the doc that an id names for a scope."""

    def finds(space: OpenSpace) -> str:
        with space.app.store.read() as txn:
            return resolve_doc(txn, ident, scope).doc_id

    return finds


def doc_or_passage(ident: str, scope: Scope) -> Finds:
    """Finds the doc or the passage that an id names for a scope."""

    def finds(space: OpenSpace) -> str:
        with space.app.store.read() as txn:
            return _full(resolve_id(txn, ident, scope))

    return finds


def text_named(ident: str, scope: Scope) -> Finds:
    """Finds the doc, passage or entry that an id names for a scope."""

    def finds(space: OpenSpace) -> str:
        with space.app.store.read() as txn:
            return _full(opened_by(txn, ident, scope))

    return finds


def _full(opened: ResolvedId) -> str:
    return opened.chunk.chunk_id if opened.chunk else opened.doc.doc_id
