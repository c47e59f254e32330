"""What is read, and how? Folders, pages, topics and packs, each by the room that knows it."""

import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from kb.config import Settings
from kb.errors import ConfigError, NotFound, SourceError, UsageError
from kb.ingest.request import Wishes
from kb.model.doc import OPERATOR, Doc, Kind
from kb.model.ids import Lsid
from kb.model.origin import Origin, origin_id
from kb.model.pack import PackRecord
from kb.model.search import LearnCall
from kb.model.source import member_lsid, member_of
from kb.store.store import Store
from kb.sync.collection import Collection
from kb.sync.items import Member
from kb.sync.report import AddReport
from kb.sync.walk import Found, Passed

if TYPE_CHECKING:
    from kb.sync.add import Adder, AddOptions
    from kb.topics import Topic

_ENTRIES_MAX: Final = 20_000


def learn_call(settings: Settings, doc: Doc) -> LearnCall | None:
    """What loads a subject that was taken in; None where the settings keep it from everyone now."""
    from kb.topics import is_disabled, subject_at

    name, path = member_of(doc.place)
    said = settings.kb.topic.get(name)
    subject = subject_at(path)
    if said is None or not (said.enable and said.index) or subject.is_hidden:
        return None
    if is_disabled(said.disabled, subject):
        return None
    return LearnCall(topic=name, subject=subject.slug)


class HomeSources:
    """Reads the sources of one home for one sync; see kb.sync.current.Reach."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        topics_root: Path,
        adder: "Callable[[AddOptions], Adder]",
        options: "AddOptions",
    ) -> None:
        self._store = store
        self._settings = settings
        self._topics_root = topics_root
        self._adder = adder
        self._options = options

    def take_in(self, origin: Origin, seen: Sequence[Found | Passed]) -> tuple[AddReport, Origin]:
        """Take in a page, or what a walk brought of a folder; with what was asked for it once."""
        wishes = Wishes(tags=origin.tags, visibility=origin.visibility, owner=origin.owner)
        asked = msgspec.structs.replace(self._options, extensions=origin.extensions, wishes=wishes)
        adder = self._adder(asked)
        if origin.kind == "folder":
            return adder.add_walked(seen), origin
        report = adder.add([origin.location])
        if adder.error is not None:
            raise adder.error
        cursor = adder.cursors.get(origin.location, origin.cursor)
        return report, msgspec.structs.replace(origin, cursor=cursor)

    def declared(self) -> list[Origin]:
        """The topics that the settings name and want to have searched."""
        now_ms = self._store.clock.now_ms()
        return [
            Origin(origin_id=origin_id("topic", name), kind="topic", location=name, added_ms=now_ms)
            for name, said in self._settings.kb.topic.items()
            if said.enable and said.index
        ]

    def collect(self, origin: Origin) -> Collection:
        """What a topic or a pack names now."""
        return self._topic(origin) if origin.kind == "topic" else self._pack(origin)

    def take_members(self, collection: Collection) -> AddReport:
        """Take in what a collection names."""
        return self._adder(self._options).add_members(collection.members)

    def _topic(self, origin: Origin) -> Collection:
        from kb.config import KbSettings
        from kb.topics import resolved

        name = origin.location
        said = self._settings.kb.topic.get(name)
        if said is None or not (said.enable and said.index):
            return _collection(origin, is_gone=True)
        try:
            (topic,) = resolved(KbSettings(topic={name: said}), self._topics_root)
            return self._subjects(origin, topic)
        except (ConfigError, SourceError) as error:
            return _collection(origin, amiss=str(error))

    def _subjects(self, origin: Origin, topic: "Topic") -> Collection:
        from kb.topics import open_shelf

        shelf = open_shelf(topic, _ENTRIES_MAX)
        found = [subject for subject in shelf.subjects if not subject.is_hidden]
        sound = [(subject.path, Wishes()) for subject in found if not subject.problem]
        unsure = [subject.path for subject in found if subject.problem]
        members = _members("topic", topic.id, topic.folder, sound)
        return _collection(origin, tuple(members), _unsure("topic", topic.id, unsure))

    def _pack(self, origin: Origin) -> Collection:
        from kb.packs.register import listed, open_registered

        with self._store.read() as txn:
            records = listed(txn, OPERATOR)
        record = next((one for one in records if one.pack_id == origin.location), None)
        if record is None:
            return _collection(origin, is_gone=True)
        try:
            pack = open_registered(record)
        except (SourceError, NotFound, UsageError) as error:
            return _collection(origin, amiss=str(error))
        docs = pack.manifest.docs
        named = [(doc.source_path, _wishes(record, doc.title, doc.tags)) for doc in docs]
        members = list(_members("pack", record.pack_id, pack.path.parent, named))
        known = {member.lsid for member in members}
        unsure = {member_lsid("pack", record.pack_id, path) for path, _ in named} - known
        return _collection(origin, tuple(members), frozenset(unsure))


def _wishes(record: PackRecord, title: str, tags: tuple[str, ...]) -> Wishes:
    return Wishes(title=title or None, tags=tags, visibility=record.visibility, owner=record.owner)


def _collection(
    origin: Origin,
    members: tuple[Member, ...] = (),
    unsure: frozenset[Lsid] = frozenset(),
    *,
    amiss: str | None = None,
    is_gone: bool = False,
) -> Collection:
    kind: Kind = "topic" if origin.kind == "topic" else "pack"
    return Collection(
        name=f"the {kind} {origin.location}",
        kind=kind,
        start=member_lsid(kind, origin.location, ""),
        members=members,
        unsure=unsure,
        amiss=amiss,
        is_gone=is_gone,
    )


def _members(
    kind: Kind, name: str, folder: Path, named: Sequence[tuple[str, Wishes]]
) -> Iterator[Member]:
    """Those that lie inside the folder; no link leads out of it."""
    top = os.path.realpath(folder)
    for path, wishes in named:
        real = os.path.realpath(os.path.join(top, path))
        if os.path.commonpath((top, real)) == top and os.path.isfile(real):
            lsid = member_lsid(kind, name, path)
            yield Member(lsid=lsid, kind=kind, path=Path(real), wishes=wishes)


def _unsure(kind: Kind, name: str, paths: Sequence[str]) -> frozenset[Lsid]:
    return frozenset(member_lsid(kind, name, path) for path in paths)
