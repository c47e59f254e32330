"""How do entries come from registries? Into the knowledge folder, each checked before it lands.

In batches: what is fetched is noted as wanted, its files are put in place, it is taken in, and the
note becomes a record. A run that is cut short leaves notes, by which the next one knows its own
files from those of a person.
"""

import os
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import Struct, structs

from kb.errors import ReadOnlyHome, SourceError, Unparsable
from kb.home.services.entries import collect, declared, of_entry
from kb.intake.canonicalize.decode import clean_text, decode_text
from kb.intake.chunks import PrecomputedChunks
from kb.intake.embed.protocol import Embedder
from kb.intake.ingest.changes import was_removed
from kb.intake.sync.read import read_file
from kb.intake.worker.settings import worker_settings
from kb.knowledge.entries import Entry, parse
from kb.knowledge.registry import register
from kb.knowledge.registry.index import VectorSet
from kb.knowledge.registry.plan import LocalEntry, decide, offered, withdrawn
from kb.knowledge.registry.pulled_file import install_file
from kb.knowledge.registry.reading import forget_index, read_index
from kb.knowledge.registry.report import (
    NotOffered,
    PulledLine,
    PullReport,
    PullSelection,
    PullTask,
    RegistriesUnread,
    gone_lines,
    line_of,
    read_lines,
    reported,
)
from kb.knowledge.registry.source import FolderSource, RegistrySource, WebSource, whole_file
from kb.knowledge.registry.vectors import Pipeline, markdown_of, read_vectors
from kb.model.config import Settings
from kb.model.failpoints import failpoint
from kb.model.ids import Lsid, sha256_hex
from kb.model.registry import PulledEntry, RegistryRecord
from kb.model.source import display_name, entry_lsid, path_of
from kb.store import docs
from kb.store.content.layout import HomePaths
from kb.store.content.lock import file_lock
from kb.store.store import Store

if TYPE_CHECKING:
    from kb.intake.sync.add import Adder
    from kb.intake.sync.fetch import Fetcher

_BATCH: Final = 32
_FETCHES: Final = 4
_WAIT_S: Final = 60.0


class HomeRegistries:
    """Takes entries from registries into one home."""

    def __init__(
        self,
        store: Store,
        paths: HomePaths,
        settings: Settings,
        *,
        fetcher: "Callable[[], Fetcher]",
        embedder: Callable[[], Embedder],
        follow: Callable[[], object],
    ) -> None:
        """Take `follow`, which has the home cut and embed as the settings ask."""
        self._store = store
        self._paths = paths
        self._folder = Path(os.path.realpath(paths.knowledge))
        self._shelf = paths.index / "registries"
        self._settings = settings
        self._file_bytes_max = settings.ingest.file_bytes_max
        self._fetcher = fetcher
        self._embedder = embedder
        self._follow = follow

    def forget(self, name: str) -> None:
        """Drop what is kept of a registry that is not known any more."""
        forget_index(self._shelf, name)

    def pipeline(self) -> Pipeline:
        """How entries are cut and embedded here. Raises ModelMissing."""
        embedder = self._embedder()
        settings = worker_settings(self._settings, embedder)
        made_by = VectorSet(model=embedder.fingerprint, chunker=settings.chunker, dim=embedder.dim)
        return Pipeline(
            made_by=made_by,
            tokens_max=settings.entry_tokens_max,
            overlap_tokens=settings.entry_overlap_tokens,
            embedder=self._embedder,
        )

    def pull(self, selection: PullSelection, adder: "Callable[[], Adder]") -> PullReport:
        """Take what is new or newer; what was changed, removed or deleted here is left as it is.

        One pull at a time: another one waits. `adder` gives one for each batch. Raises
        UnknownRegistry, RegistriesUnread, NotOffered and StoreBusy, each before any entry is
        written; StoreFull, ReadOnlyHome and ModelMissing.
        """
        with self._store.read() as txn:
            if selection.registry is not None:
                register.resolve(txn, selection.registry)
            if not selection.names and not register.listed(txn):
                return reported([], (), ready=0)
        self._paths.check_keeps_files("pulled entries")
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise ReadOnlyHome(error.strerror or "", place=self._folder) from error
        with file_lock(self._folder, _WAIT_S):
            return self._pull(selection, adder)

    def _pull(self, selection: PullSelection, adder: "Callable[[], Adder]") -> PullReport:
        with self._store.read() as txn:
            registries = register.listed(txn)
        readings = [
            read_index(self._store, registry, self._source(registry), self._shelf)
            for registry in registries
            if selection.registry in (None, registry.name)
        ]
        if readings and all(registry.error is not None for registry in readings):
            raise RegistriesUnread("; ".join(str(registry.error) for registry in readings))
        offers = offered(readings)
        for name in selection.names:
            if name not in offers.by_id:
                raise NotOffered(id=name)
        read = {registry.record.name for registry in readings if registry.error is None}
        unread = {
            registry.name: registry.order for registry in registries if registry.name not in read
        }
        order = {registry.name: registry.order for registry in registries}
        ids = selection.names or tuple(offers.by_id)
        lost = {} if selection.names else withdrawn(readings, self._pulled(), offers)
        here = self._here([*ids, *lost])
        tasks = []
        for ident in dict.fromkeys(ids):
            offer = offers.by_id[ident]
            step = decide(
                offer,
                here[ident],
                by_name=bool(selection.names),
                take_theirs=selection.theirs,
                unread=unread,
                order=order[offer.registry],
            )
            tasks.append(PullTask(offer=offer, here=here[ident], step=step))
        lines = [line_of(task) for task in tasks if not task.step.takes]
        lines += gone_lines(here, lost)
        ready = 0
        if todo := [task for task in tasks if task.step.takes]:
            sources = {registry.record.name: self._source(registry.record) for registry in readings}
            self._follow()
            made_by = self.pipeline().made_by
            taking = Taking(self._store, self._folder, sources, adder, made_by)
            lines += taking.take(todo)
            ready = taking.ready
        return reported(lines, tuple(read_lines(readings, offers)), ready=ready)

    def _source(self, record: RegistryRecord) -> RegistrySource:
        if register.is_web(record.location):
            return WebSource(record.location, self._fetcher())
        return FolderSource(register.folder_at(record.location))

    def _pulled(self) -> dict[str, PulledEntry]:
        with self._store.read() as txn:
            return register.pulled(txn)

    def _here(self, ids: Iterable[str]) -> dict[str, "LocalEntry"]:
        """What there is of each; the folder is searched where some file is not in its place."""
        pulled = self._pulled()
        places: dict[str, Path | None] = {}
        removed: set[str] = set()
        with self._store.read() as txn:
            for ident in ids:
                lsid = entry_lsid(ident)
                doc = docs.latest_of(txn, lsid)
                named = [path_of(Lsid(doc.source)) or Path(doc.source)] if doc else []
                # Of a home that was copied, docs may name files of the one before.
                tried = [path for path in named if path.is_relative_to(self._folder)]
                tried.append(_place(self._folder, ident))
                places[ident] = next((path for path in tried if os.path.lexists(path)), None)
                if was_removed(txn, lsid):
                    removed.add(ident)
        if None in places.values():
            elsewhere = self._files()
            places = {ident: path or elsewhere.get(ident) for ident, path in places.items()}
        return {
            ident: LocalEntry(
                pulled=pulled.get(ident),
                path=path,
                sha256=self._sha256(path) if path else None,
                is_removed=ident in removed,
            )
            for ident, path in places.items()
        }

    def _files(self) -> dict[str, Path]:
        """The entries of the knowledge folder by id, wherever in it they lie."""
        folder = self._folder
        files: dict[str, Path] = {}
        start = len(entry_lsid(""))
        for origin in declared(folder, self._store.clock.now_ms()):
            members = collect(self._store, origin, folder, self._file_bytes_max).members
            files |= {
                member.lsid[start:]: member.path for member in members if member.kind == "entry"
            }
        return files

    def _sha256(self, path: Path) -> str | None:
        try:
            data, _ = read_file(path, self._file_bytes_max, self._store.clock.now_ms())
        except SourceError:
            return None
        return sha256_hex(data)


class _Fetched(Struct, frozen=True, kw_only=True):
    """An entry that has come and is what the index says."""

    task: PullTask
    data: bytes
    entry: Entry
    ready: PrecomputedChunks | None
    path: Path


class Taking:
    """Fetches entries and takes them in, for one pull; `ready` counts those embedded elsewhere."""

    def __init__(
        self,
        store: Store,
        folder: Path,
        sources: dict[str, RegistrySource],
        adder: "Callable[[], Adder]",
        made_by: VectorSet,
    ) -> None:
        self.ready = 0
        self._store = store
        self._folder = folder
        self._sources = sources
        self._adder = adder
        self._made_by = made_by

    def take(self, tasks: Sequence[PullTask]) -> list[PulledLine]:
        """Take each; one that cannot be had is a failed line, and the others go on."""
        lines: list[PulledLine] = []
        with ThreadPoolExecutor(_FETCHES) as pool:
            for first in range(0, len(tasks), _BATCH):
                some = tasks[first : first + _BATCH]
                come: list[_Fetched] = []
                for task, fetched in zip(some, pool.map(self._fetched, some), strict=True):
                    if isinstance(fetched, _Fetched):
                        come.append(fetched)
                    else:
                        lines.append(line_of(task, failure=fetched))
                lines += self._taken(come)
        return lines

    def _fetched(self, task: PullTask) -> _Fetched | SourceError:
        try:
            return self._fetch(task)
        except SourceError as error:
            return error

    def _fetch(self, task: PullTask) -> _Fetched:
        """The entry, whole and checked. Raises SourceError's children."""
        index_entry = task.offer.entry
        source = self._sources[task.offer.registry]
        data = whole_file(source, index_entry.path, index_entry.size, index_entry.sha256)
        entry = parse(clean_text(decode_text(data)[0]))
        names = (index_entry.zettel_id, index_entry.version)
        is_its = isinstance(entry, Entry) and (entry.meta.zettel_id, entry.meta.version) == names
        if not isinstance(entry, Entry) or not is_its:
            raise Unparsable(
                "it is not the entry that the registry's index names", source=index_entry.path
            )
        ready = None
        vectors = index_entry.vectors.get(self._made_by.key)
        if vectors is not None:
            file = whole_file(source, vectors.path, vectors.size, vectors.sha256)
            markdown = markdown_of(data, index_entry.path)
            ready = read_vectors(file, entry, markdown, self._made_by, vectors.path)
        path = task.here.path or _place(self._folder, index_entry.zettel_id)
        return _Fetched(task=task, data=data, entry=entry, ready=ready, path=path)

    def _taken(self, come: Sequence[_Fetched]) -> list[PulledLine]:
        """Put files in place and take them in; each step may be repeated by a later run."""
        with self._store.write() as txn:
            for fetched in come:
                register.put_pulled(txn, self._noted(fetched))
        failpoint("registry.after_intent")
        lines: list[PulledLine] = []
        landed: list[tuple[_Fetched, Path | None]] = []
        for fetched in come:
            task = fetched.task
            aside_ms = self._store.clock.now_ms() if task.step.aside else None
            try:
                aside = install_file(
                    fetched.path, fetched.data, expected=task.here.sha256, aside_ms=aside_ms
                )
            except SourceError as error:
                lines.append(line_of(task, failure=error))
            else:
                landed.append((fetched, aside))
        failpoint("registry.after_files")
        members = [of_entry(fetched.path, fetched.entry, fetched.ready) for fetched, _ in landed]
        report = self._adder().add_members(members)
        taken = {line.source for line in report.docs}
        wrong = {problem.source: problem.reason for problem in report.problems}
        with self._store.write() as txn:
            for fetched, _ in landed:
                if display_name(fetched.path) in taken:
                    register.put_pulled(txn, self._record(fetched))
        for fetched, aside in landed:
            name = display_name(fetched.path)
            if name in taken:
                self.ready += fetched.ready is not None
                lines.append(line_of(fetched.task, aside=aside))
            else:
                failure = SourceError(wrong.get(name, "it was not added"), source=name)
                lines.append(line_of(fetched.task, failure=failure, aside=aside))
        return lines

    def _noted(self, fetched: _Fetched) -> PulledEntry:
        before = fetched.task.here.pulled
        if before is None:
            record = self._record(fetched)
            return structs.replace(record, version="", sha256="", wanted_sha256=record.sha256)
        return structs.replace(before, wanted_sha256=fetched.task.offer.entry.sha256)

    def _record(self, fetched: _Fetched) -> PulledEntry:
        entry = fetched.task.offer.entry
        return PulledEntry(
            zettel_id=entry.zettel_id,
            registry=fetched.task.offer.registry,
            version=entry.version,
            sha256=entry.sha256,
            pulled_ms=self._store.clock.now_ms(),
        )


def _place(folder: Path, zettel_id: str) -> Path:
    return folder / f"{zettel_id}.md"
