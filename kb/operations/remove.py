"""Docs, removed from an open home: hidden from every reader at once, freed later."""

from typing import TYPE_CHECKING

from msgspec import Struct

from kb.errors import NotFound
from kb.model.doc import Doc
from kb.model.ids import DocId

if TYPE_CHECKING:
    from kb.home.app import App


class NoSuchTag(NotFound):
    """No doc has this tag."""

    template = "there is no doc to remove with the tag {id}; `kb ls` lists the docs"


class RemovableDoc(Struct, frozen=True, kw_only=True):
    """A doc that can be removed."""

    doc_id: DocId
    title: str
    source: str


class RemoveResult(Struct, frozen=True, kw_only=True):
    """What was removed."""

    removed: list[DocId]
    transaction: str | None = None
    """The token of a state of the home in which they are removed."""


def chosen(
    app: "App", idents: tuple[str, ...] = (), tag: str | None = None
) -> tuple[RemovableDoc, ...]:
    """The docs that ids, whole or short, ids of entries, or paths name, or else all with a tag.

    Only what is the caller's to remove. Raises NotFound, also for a doc that is removed already or
    that the caller does not see, NotYours, AmbiguousId, and NoSuchTag.
    """
    rows = _named(app, idents) if tag is None else _tagged(app, tag)
    return tuple(
        RemovableDoc(doc_id=doc.doc_id, title=doc.title, source=doc.source) for doc in rows
    )


def run(app: "App", docs: tuple[RemovableDoc, ...]) -> RemoveResult:
    """Remove docs in one transaction; the result has those that were removed by this.

    Compaction frees them later; added again before, they come back. Raises ReadOnlyHome, StoreFull.
    """
    from kb.intake.ingest.changes import tombstone

    removed = tombstone(app.store, [doc.doc_id for doc in docs])
    return RemoveResult(removed=removed, transaction=app.transactions.token())


def _named(app: "App", idents: tuple[str, ...]) -> list[Doc]:
    from kb.operations.entries import own_doc

    with app.store.read() as txn:
        machine = app.store.machine
        docs_named = [own_doc(txn, ident, app.caller, machine) for ident in idents]
    for doc in docs_named:
        if doc.status == "tombstoned":
            raise NotFound(id=doc.doc_id)
    return docs_named


def _tagged(app: "App", tag: str) -> list[Doc]:
    from kb.operations.entries import is_own
    from kb.store import docs

    with app.store.read() as txn:
        tagged = (docs.latest(txn, number) for number in docs.with_facet(txn, "tag", tag))
        docs_tagged = [doc for doc in tagged if doc is not None and is_own(doc, app.caller)]
    if not docs_tagged:
        raise NoSuchTag(id=tag)
    return docs_tagged
