"""Collections: what a topic, a pack or a folder of entries names is brought level with its docs."""

from collections.abc import Iterator

from msgspec import Struct

from kb.intake.sync.folder import hold_back_reason
from kb.intake.sync.items import CollectionMember
from kb.intake.sync.walk import SkippedFile
from kb.model.doc import Doc, Kind
from kb.model.ids import Lsid
from kb.model.source import display_name
from kb.store import docs
from kb.store.kv import ReadTxn
from kb.store.store import Store


class Collection(Struct, frozen=True, kw_only=True):
    """What is to be in, as its owner says now."""

    name: str
    kind: Kind
    start: str
    """The logical source ids of its members start so, and no others do."""
    texts: str | None = None
    """Those of files of its folder that are no more than text, of the kind `file`, start so."""
    members: tuple[CollectionMember, ...] = ()
    passed: tuple[SkippedFile, ...] = ()
    """Files that were seen and left out."""
    unsure: frozenset[Lsid] = frozenset()
    """Members that cannot be read now: their docs stay as they are."""
    amiss: str | None = None
    """Why nothing can be said of it now; its docs stay."""
    is_gone: bool = False
    """Its owner has taken it off: its docs go, however many they are."""


class CollectionDiff(Struct, frozen=True, kw_only=True):
    """Docs that a collection no longer names."""

    vanished: list[Doc]
    hold_back_reason: str | None
    """Why none may be removed without a confirmation."""


def diff_collection(store: Store, collection: Collection) -> CollectionDiff:
    """Compare a collection with its docs, by their names alone.

    A doc whose file is there under another name has not been lost, and goes for sure.
    """
    kept = {member.lsid for member in collection.members} | collection.unsure
    here = {display_name(member.path) for member in collection.members}
    with store.read() as txn:
        known = list(_collection_docs(txn, collection))
    vanished = [doc for doc in known if doc.place not in kept]
    if collection.is_gone:
        return CollectionDiff(vanished=vanished, hold_back_reason=None)
    lost = sum(doc.source not in here for doc in vanished)
    why = hold_back_reason(collection.name, collection.amiss, len(here), lost, len(known))
    return CollectionDiff(vanished=[] if collection.amiss else vanished, hold_back_reason=why)


def _collection_docs(txn: ReadTxn, collection: Collection) -> Iterator[Doc]:
    yield from _docs_with_prefix(txn, collection.kind, collection.start)
    if collection.texts is not None:
        yield from _docs_with_prefix(txn, "file", collection.texts)


def _docs_with_prefix(txn: ReadTxn, kind: Kind, start: str) -> Iterator[Doc]:
    for number in docs.with_facet(txn, "kind", kind):
        doc = docs.latest(txn, number)
        if doc is not None and doc.place.startswith(start):
            yield doc
