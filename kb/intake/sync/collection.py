"""Collections: compares the members of a topic, a pack or a folder of entries with their docs."""

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
    """The files that a topic, a pack or a folder of entries consists of now."""

    name: str
    kind: Kind
    lsid_prefix: str
    """The prefix of the lsids of its members, and of no others."""
    text_prefix: str | None = None
    """The prefix of the lsids of other text files in its folder; these have the kind `file`."""
    members: tuple[CollectionMember, ...] = ()
    skipped: tuple[SkippedFile, ...] = ()
    """Files that were found and left out."""
    unreadable: frozenset[Lsid] = frozenset()
    """Members that cannot be read now; their docs stay."""
    problem: str | None = None
    """Why its members are not known now; its docs stay."""
    is_removed: bool = False
    """It was unregistered: all its docs go."""


class CollectionDiff(Struct, frozen=True, kw_only=True):
    """The docs that a collection no longer contains."""

    vanished: list[Doc]
    hold_back_reason: str | None
    """Why none may be removed without a confirmation."""


def diff_collection(store: Store, collection: Collection) -> CollectionDiff:
    """Compare a collection with its docs, by name only.

    A doc whose file has another name in the collection now is always removed: nothing is lost.
    """
    member_lsids = {member.lsid for member in collection.members} | collection.unreadable
    here = {display_name(member.path, store.machine) for member in collection.members}
    with store.read() as txn:
        docs_before = list(_collection_docs(txn, collection))
    vanished = [doc for doc in docs_before if doc.place not in member_lsids]
    if collection.is_removed:
        return CollectionDiff(vanished=vanished, hold_back_reason=None)
    lost = sum(doc.source not in here for doc in vanished)
    why = hold_back_reason(collection.problem, len(here), lost, len(docs_before))
    return CollectionDiff(vanished=[] if collection.problem else vanished, hold_back_reason=why)


def _collection_docs(txn: ReadTxn, collection: Collection) -> Iterator[Doc]:
    yield from _docs_with_prefix(txn, collection.kind, collection.lsid_prefix)
    if collection.text_prefix is not None:
        yield from _docs_with_prefix(txn, "file", collection.text_prefix)


def _docs_with_prefix(txn: ReadTxn, kind: Kind, lsid_prefix: str) -> Iterator[Doc]:
    for number in docs.with_facet(txn, "kind", kind):
        doc = docs.latest(txn, number)
        if doc is not None and doc.place.startswith(lsid_prefix):
            yield doc
