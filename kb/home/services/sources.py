"""What is read, and how? Folders, pages and collections, each by the room that knows it."""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import structs

from kb.errors import ConfigError, HeldBack, NotFound, Refused, SourceError, UsageError
from kb.home.services import entries as home_entries
from kb.home.services import notebook as home_notebook
from kb.intake.chunks import PrecomputedChunks
from kb.intake.ingest.request import IngestOptions
from kb.intake.sync.collection import Collection
from kb.intake.sync.items import CollectionMember
from kb.intake.sync.origins import is_elsewhere, lies_on, new_origin
from kb.intake.sync.report import AddReport, SiteReport
from kb.intake.sync.walk import SkippedFile, WalkedFile
from kb.model.config import Settings
from kb.model.doc import OPERATOR, Doc, Kind, PackPart, Visibility
from kb.model.ids import Lsid
from kb.model.origin import FOLDERS, Origin
from kb.model.pack import PackRecord
from kb.model.search import LearnCall
from kb.model.source import from_machine, member_lsid, member_of, on_machine
from kb.store.content.inside import resolve_inside
from kb.store.content.layout import HomePaths
from kb.store.store import Store

if TYPE_CHECKING:
    from kb.intake.crawl.site_sources import SiteSources
    from kb.intake.sync.add import Adder, AddOptions
    from kb.knowledge.packs.manifest import PackDoc
    from kb.knowledge.topics import Topic

_ENTRIES_MAX: Final = 20_000
_NO_BODY: Final = "the pack's folder has no such file; its doc stays as it was"


def learn_call(settings: Settings, doc: Doc, machine: str = "") -> LearnCall | None:
    """What loads a subject that was taken in; None where the settings keep it from everyone now.

    None for a topic of another machine than this one, `machine`, too.
    """
    from kb.knowledge.topics import is_disabled, subject_at

    collection, path = member_of(doc.place)
    name = from_machine(collection, machine) or ""
    topic = settings.kb.topic.get(name)
    subject = subject_at(path)
    if topic is None or not (topic.enable and topic.index) or subject.is_hidden:
        return None
    if is_disabled(topic.disabled, subject):
        return None
    return LearnCall(topic=name, subject=subject.slug)


class HomeSources:
    """Reads the sources of one home for one sync; see kb.intake.sync.sync_all.Reach."""

    def __init__(
        self,
        store: Store,
        settings: Settings,
        topics_root: Path,
        paths: HomePaths,
        adder: "Callable[[AddOptions], Adder]",
        options: "AddOptions",
        ready: Mapping[Lsid, PrecomputedChunks],
        sites: "Callable[[], SiteSources]",
    ) -> None:
        self._store = store
        self._settings = settings
        self._topics_root = topics_root
        self._paths = paths
        self._adder = adder
        self._options = options
        self._ready = ready
        self._sites = sites

    def take_in(
        self, origin: Origin, seen: Sequence[WalkedFile | SkippedFile]
    ) -> tuple[AddReport, Origin]:
        """Take in a page, or what a walk brought of a folder; with what was asked for it once."""
        ingest_options = IngestOptions(
            tags=origin.tags, visibility_first=origin.visibility, owner=origin.owner
        )
        options = structs.replace(
            self._options, extensions=origin.extensions, ingest_options=ingest_options
        )
        adder = self._adder(options)
        if origin.kind in FOLDERS:
            return adder.add_walked(seen), origin
        report = adder.add([origin.location])
        if adder.error is not None:
            raise adder.error
        cursor = adder.cursors.get(origin.location, origin.cursor)
        return report, structs.replace(origin, cursor=cursor)

    def follow(self, origin: Origin, *, accept_deletions: bool) -> SiteReport:
        """Bring a site or a feed level; what a person removed of it stays out."""
        from kb.intake.crawl.options import TakeOptions

        options = TakeOptions(revive=self._options.revive)
        return self._sites().follow(origin, options, accept_deletions=accept_deletions)

    def title_of(self, path: Path, data: bytes) -> str | None:
        """What a file of these bytes is called where it is now; None where it cannot be read."""
        return self._adder(self._options).title_of(path, data)

    def declared(self) -> list[Origin]:
        """The topics that the settings name and want to have searched, entries and notebook."""
        now_ms = self._store.clock.now_ms()
        own = IngestOptions(owner=self._store.caller.own_name)
        topics = [
            new_origin("topic", name, own, now_ms, self._store.machine)
            for name, topic in self._settings.kb.topic.items()
            if topic.enable and topic.index
        ]
        folder = home_notebook.folder_if_fit(self._paths, self._settings.notebook)
        notebook = home_notebook.declared(folder, now_ms)
        return [*topics, *home_entries.declared(self._paths.knowledge, now_ms), *notebook]

    def collect(self, origin: Origin) -> Collection:
        """What a topic, a pack or a folder of entries names now."""
        if origin.kind == "entries":
            bytes_max = self._options.file_bytes_max
            return home_entries.collect(self._store, origin, self._paths.knowledge, bytes_max)
        return self._topic(origin) if origin.kind == "topic" else self._pack(origin)

    def take_members(self, collection: Collection) -> AddReport:
        """Take in what a collection names."""
        return self._adder(self._options).add_members(collection.members, collection.skipped)

    def _topic(self, origin: Origin) -> Collection:
        from kb.knowledge.topics import resolved
        from kb.model.config import KbSettings

        name = origin.location
        declared = self._settings.kb.topic.get(name)
        if declared is None or not (declared.enable and declared.index):
            return _collection(origin, is_removed=True)
        try:
            (topic,) = resolved(KbSettings(topic={name: declared}), self._topics_root, OPERATOR)
            return self._subjects(origin, topic)
        except (ConfigError, SourceError) as error:
            return _collection(origin, problem=str(error))

    def _subjects(self, origin: Origin, topic: "Topic") -> Collection:
        from kb.knowledge.topics import read_contents

        contents = read_contents(topic, _ENTRIES_MAX)
        subjects = [subject for subject in contents.subjects if not subject.is_hidden]
        shown = IngestOptions(visibility=topic.visibility, owner=origin.owner)
        sound = [(subject.path, shown) for subject in subjects if not subject.problem]
        unsure = [subject.path for subject in subjects if subject.problem]
        folder = Path(os.path.realpath(topic.folder))
        collection = on_machine(topic.id, origin.machine)
        members = _members("topic", collection, folder, sound)
        return _collection(origin, tuple(members), _unsure("topic", collection, unsure))

    def _pack(self, origin: Origin) -> Collection:
        from kb.knowledge.packs.register import follow_version, listed, open_registered, place_of

        with self._store.read() as txn:
            records = listed(txn, OPERATOR)
        record = next((item for item in records if item.pack_id == origin.location), None)
        if record is None:
            return _collection(origin, is_removed=True)
        if is_elsewhere(origin, self._store.machine):
            return _collection(origin, problem=lies_on(origin))
        try:
            pack = open_registered(record, self._paths.root)
            follow_version(self._store, record, pack, dry_run=self._options.dry_run)
        except (HeldBack, SourceError, NotFound, UsageError) as error:
            return _collection(origin, problem=str(error))
        visibility = self._options.ingest_options.visibility
        named = [
            (doc.source_path, _ingest_options(record, doc, visibility))
            for doc in pack.manifest.docs
        ]
        folder = place_of(record, self._paths.root).parent
        by_lsid = {item.lsid: item for item in _members("pack", record.pack_id, folder, named)}
        members = [
            structs.replace(item, ready=self._ready.get(lsid)) for lsid, item in by_lsid.items()
        ]
        paths = {member_lsid("pack", record.pack_id, path): path for path, _ in named}
        lost = [path for lsid, path in paths.items() if lsid not in by_lsid]
        passed = [SkippedFile(folder / path, _NO_BODY, failed=True) for path in lost]
        unsure = _unsure("pack", record.pack_id, lost)
        return _collection(origin, tuple(members), unsure, skipped=tuple(passed))


def _ingest_options(
    record: PackRecord, doc: "PackDoc", visibility: Visibility | None
) -> IngestOptions:
    return IngestOptions(
        title=doc.title or None,
        tags=doc.tags,
        visibility=visibility,
        visibility_first=record.visibility,
        owner=record.owner,
        pack=PackPart(pack_id=record.pack_id, selector=doc.selector),
    )


def _collection(
    origin: Origin,
    members: tuple[CollectionMember, ...] = (),
    unreadable: frozenset[Lsid] = frozenset(),
    *,
    skipped: tuple[SkippedFile, ...] = (),
    problem: str | None = None,
    is_removed: bool = False,
) -> Collection:
    kind: Kind = "topic" if origin.kind == "topic" else "pack"
    # A pack is called the same on every machine, a topic is that of a machine's settings.
    collection = on_machine(origin.location, origin.machine if kind == "topic" else "")
    return Collection(
        name=f"the {kind} {origin.location}",
        kind=kind,
        lsid_prefix=member_lsid(kind, collection, ""),
        members=members,
        skipped=skipped,
        unreadable=unreadable,
        problem=problem,
        is_removed=is_removed,
    )


def _members(
    kind: Kind, name: str, folder: Path, named: Sequence[tuple[str, IngestOptions]]
) -> Iterator[CollectionMember]:
    """Those that lie inside the folder; no link leads out of it."""
    for path, ingest_options in named:
        try:
            # Under the folder's own name, which stays when another version takes its place.
            at = folder / resolve_inside(folder, path)
        except Refused:
            continue
        if os.path.isfile(at):
            yield CollectionMember(
                lsid=member_lsid(kind, name, path),
                kind=kind,
                path=at,
                ingest_options=ingest_options,
            )


def _unsure(kind: Kind, name: str, paths: Sequence[str]) -> frozenset[Lsid]:
    return frozenset(member_lsid(kind, name, path) for path in paths)
