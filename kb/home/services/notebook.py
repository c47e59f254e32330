"""How does a note get from the notebook into the engine? By its file, as any other source."""

# Long because each thing that a home does with its notebook has a method here.

import functools
import os
import random
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from msgspec import Struct

from kb.errors import NotebookGone, NotebookUnfit, SourceError
from kb.intake.ingest.changes import tombstone_missing
from kb.intake.ingest.ingest import seen_record
from kb.intake.ingest.request import IngestOptions
from kb.intake.sync import origins
from kb.intake.sync.add import AddOptions
from kb.intake.sync.items import CollectionMember
from kb.intake.sync.moves import DetectedMove, MissingDoc, apply_moves, detect_moves, new_title
from kb.intake.sync.read import read_source
from kb.intake.sync.walk import WalkedFile, walk
from kb.model.config import NotebookSettings, Settings
from kb.model.doc import LOCAL_USER, OPERATOR, Doc, audience_of
from kb.model.ids import DocId, JobId, Lsid
from kb.model.job import Claim
from kb.model.origin import NOTEBOOK_INDEX, Origin, origin_id
from kb.model.search import SearchRequest
from kb.model.source import display_name, file_lsid, path_of
from kb.store import chunks, docs
from kb.store.content.layout import PROJECT_FOLDER, HomePaths
from kb.store.records import DOCS
from kb.store.store import Store

if TYPE_CHECKING:
    from kb.intake.embed.protocol import Embedder
    from kb.intake.sync.add import Adder
    from kb.knowledge.llm import Provider
    from kb.knowledge.notebook import (
        Logged,
        NotebookChanges,
        Organizer,
        Pusher,
        PushReport,
        Sender,
        TidyReport,
        UndoResult,
    )
    from kb.knowledge.notebook.decision import NoteMove
    from kb.search.engine import Searcher

_EXTENSIONS = ("md",)
_LIKE_HITS = 10
_WAIT_S = 30.0
# No machine is called so.
_SHARED_TOP = Lsid("file://notebook")
_SHARED_NAME = "notebook/"


def folder_of(paths: HomePaths, settings: NotebookSettings) -> Path:
    """The notebook's folder, by its real path; it may not be there.

    Raises NotebookUnfit for a project's that leads out of its `.kb`. An absolute path is the user's
    own word, for no settings of a project may say one.
    """
    named = os.path.expanduser(settings.path) if settings.path else paths.notebook.name
    real = Path(os.path.realpath(paths.root / named))
    is_bound = paths.root.name == PROJECT_FOLDER and not os.path.isabs(named)
    if is_bound and Path(os.path.realpath(paths.root)) not in real.parents:
        detail = (
            f"it leads out of the project, to {real}; if that is right, set your own settings "
            "so (notebook.path)"
        )
        raise NotebookUnfit(detail, place=paths.root / named)
    return real


def folder_if_fit(paths: HomePaths, settings: NotebookSettings) -> Path | None:
    """As `folder_of`; None where that refuses, for what has other things to do.

    Of a home in a database, too: there the folder is a copy, and no source.
    """
    if paths.database is not None:
        return None
    try:
        return folder_of(paths, settings)
    except NotebookUnfit:
        return None


def declared(folder: Path | None, now_ms: int) -> list[Origin]:
    """The source that a notebook is, once it is there."""
    if folder is None or not (folder / ".git").is_dir():
        return []
    place = display_name(folder)
    ident = origin_id("notebook", place)
    return [
        Origin(
            origin_id=ident,
            kind="notebook",
            location=place,
            extensions=_EXTENSIONS,
            added_ms=now_ms,
        )
    ]


def member_at(folder: Path | None, file: str) -> CollectionMember | None:
    """What a file is to the notebook, by whatever way it is taken in; None where it is no note."""
    if folder is None or not file.startswith(f"{folder}{os.sep}"):
        return None
    path = Path(file)
    is_note = path.suffix == ".md" and path != folder / NOTEBOOK_INDEX
    if not is_note:
        return None
    return CollectionMember(
        lsid=file_lsid(path), kind="notebook", path=path, ingest_options=IngestOptions()
    )


class NotebookEngine(Struct, frozen=True, kw_only=True):
    """What the rest of the home is to its notebook; each is asked for when it is needed."""

    adder: "Callable[[AddOptions], Adder]"
    searcher: "Callable[[], Searcher]"
    embedder: "Callable[[], Embedder]"
    llm: "Callable[[], Provider]"


class HomeNotebook:
    """The notebook of one home: notes handed in, placed, taken into the engine, taken back."""

    def __init__(
        self, store: Store, paths: HomePaths, settings: Settings, engine: NotebookEngine
    ) -> None:
        self._paths = paths
        self._settings = settings.notebook
        self._store = store
        self._file_bytes_max = settings.ingest.file_bytes_max
        self._asks_model = settings.llm.provider != "none"
        # The remote of a project's notebook may have come with the project.
        self.pushes = settings.notebook.push and paths.root.name != PROJECT_FOLDER
        self._engine = engine
        self._shared = None
        if store.is_shared:
            from kb.knowledge.notebook import SharedNotebook

            self._shared = SharedNotebook(store)

    @functools.cached_property
    def root(self) -> Path:
        """Its folder, by its real path; it may not be there. Raises NotebookUnfit."""
        return folder_of(self._paths, self._settings)

    def hand_in(
        self, data: bytes, hint: str | None, tags: Sequence[str], *, owner: str | None = None
    ) -> JobId:
        """Queue a note, without an owner the local user's. Raises UsageError for what is none."""
        from kb.knowledge.notebook import checked_text, hand_in

        text = checked_text(data)
        with self._store.write() as txn:
            return hand_in(txn, self._store.clock, text, hint, tags, owner=owner)

    def organize(self, claims: list[Claim]) -> None:
        """Place notes that were handed in; see kb.knowledge.notebook.Organizer."""
        self._organizer.work(claims)

    @functools.cached_property
    def _organizer(self) -> "Organizer":
        from kb.knowledge.notebook import Organizer

        complete = self._complete if self._asks_model else None
        return Organizer(
            self._store,
            self.root,
            self.take_in,
            self.nearest,
            complete,
            may_make=lambda: not self._is_gone(),
            shared=self._shared,
        )

    @functools.cached_property
    def _top(self) -> Lsid:
        """The place that the places of notes are below; of a shared notebook on no machine."""
        if self._shared is None:
            return file_lsid(self.root)
        with self._store.read() as txn:
            registered = [o for o in origins.list_origins(txn) if o.kind == "notebook"]
        # Docs that came from a home in a folder keep their places.
        return file_lsid(registered[0].location) if registered else _SHARED_TOP

    def place_of(self, path: str) -> Lsid:
        """The place of a note, by its path in the notebook."""
        return Lsid(f"{self._top}{file_lsid(f'/{path}').removeprefix('file://')}")

    def named(self, source: str) -> str:
        """What a note's doc is called, as it is read by; any other source as it is."""
        if self._shared is not None:
            return source.removeprefix(_SHARED_NAME)
        path = Path(source)
        return path.relative_to(self.root).as_posix() if path.is_relative_to(self.root) else source

    def _name(self, path: str) -> str:
        """What people call a note, by its path in the notebook."""
        return f"{_SHARED_NAME}{path}" if self._shared else display_name(self.root / path)

    def level_with_others(self) -> None:
        """Follow what other machines have committed; nothing for a notebook of this one alone.

        Raises NotebookUnfit or StoreBusy.
        """
        from kb.knowledge.notebook.opening import at_work

        if self._shared is not None and self._shared.branch is not None:
            with at_work(self.root, self._store.clock.now_ms(), _WAIT_S, shared=self._shared):
                pass

    def _is_gone(self) -> bool:
        """Whether there was a notebook, and its repository is no more."""
        from kb.upkeep.check.notebook import notebook_state

        if self._shared is not None:
            # What is here is a copy, and is made when it is missing.
            return False
        return notebook_state(self._store, self.root) == "gone"

    def commits(self, limit: int) -> "list[Logged]":
        """The newest commits, the newest first; none without a notebook.

        Raises NotebookGone for one whose repository is no more, NotebookUnfit.
        """
        from kb.knowledge.notebook import log
        from kb.knowledge.notebook.opening import GONE

        if self._is_gone():
            raise NotebookGone(GONE, place=self.root)
        self.level_with_others()
        return log(self.root, limit)

    def _complete(self, system: str, user: str) -> str:
        return self._engine.llm().complete(system, user)

    def undo(self, ident: str) -> "UndoResult":
        """Take a job's note back, or what a commit tidied. Raises NoJob or CannotUndo."""
        from kb.knowledge.notebook import undo

        clock, shared = self._store.clock, self._shared
        return undo(self.root, ident, clock, self.take_in, shared=shared)

    def tidy(self, *, apply: bool) -> "TidyReport":
        """What is out of order; with `apply`, put in order by one commit. Raises NotebookUnfit."""
        from kb.knowledge.notebook import look, tidy

        self.level_with_others()
        if not apply:
            return look(self.root, self._go_together)
        clock, shared = self._store.clock, self._shared
        return tidy(self.root, clock, self.take_in, self._go_together, shared=shared)

    def _go_together(self, paths: Collection[str]) -> bool:
        """Whether notes are of one person, and for the same eyes."""
        with self._store.read() as txn:
            latest = [docs.latest_of(txn, self.place_of(path)) for path in paths]
        mine = (LOCAL_USER, audience_of("private", LOCAL_USER))
        return len({(doc.owner, doc.audience) if doc else mine for doc in latest}) == 1

    @functools.cached_property
    def _pusher(self) -> "tuple[Pusher, Sender]":
        from kb.knowledge.notebook import Pusher, Sender

        sender = Sender()
        pusher = Pusher(
            self._store,
            self.root,
            self._paths.push_lock,
            random.random,
            sender,
            token_host=self._settings.token_host,
        )
        return pusher, sender

    def strange_remote(self) -> str | None:
        """Where a push would go that nobody has agreed to; None where somebody has.

        The remote of a project's notebook may have come with the project. Raises NotebookUnfit.
        """
        is_project = self._paths.root.name == PROJECT_FOLDER
        return self._pusher[0].new_remote() if is_project else None

    def push(self) -> "PushReport":
        """Push to `origin` now. Raises NotPushed where there is none, NotebookUnfit, StoreBusy.

        Whoever calls has seen to `strange_remote`.
        """
        return self._told(self._pusher[0].push())

    def push_if_due(self) -> "PushReport | None":
        """Where the settings say so, push once if it is time to; how it stands then."""
        if not self.pushes:
            return None
        self._pusher[0].push_if_due()
        return self.push_report()

    def push_report(self) -> "PushReport | None":
        """How the last push to the `origin` there is now went; None before the first."""
        push = self._pusher[0].report()
        return self._told(push) if push else None

    def _told(self, report: "PushReport") -> "PushReport":
        # Nothing is tried again by itself where the settings do not say so.
        return report if self.pushes else msgspec.structs.replace(report, next_ms=None)

    @contextmanager
    def pushing(self) -> Iterator[None]:
        """Where the settings say so, have it pushed whenever that is due, inside the block."""
        from kb.knowledge.notebook import pushing

        with pushing(*self._pusher) if self.pushes else nullcontext():
            yield

    def take_in(self, arrival: "NotebookChanges") -> dict[str, DocId]:
        """Take in what commits have changed; returns the docs of what was added, by path.

        A moved note keeps its doc, its chunks and their vectors. May be repeated.
        """
        root = self.root
        self.settle_in()
        if self._shared is None:
            # A shared one has no places on a machine that a move could be followed between.
            moved = map(self._followed, arrival.moves)
            apply_moves(self._store, [item for item in moved if item is not None])
        options = AddOptions(file_bytes_max=self._file_bytes_max, keep_current=False)
        members = [
            self._member(path, self._ingest_options(path, tags, arrival.owners.get(path)))
            for path, tags in arrival.added.items()
        ]
        members += [
            self._member(move.new, IngestOptions())
            for move in arrival.moves
            if member_at(root, os.fspath(root / move.new)) is not None
        ]
        report = self._engine.adder(options).add_members(members)
        # A path whose note went elsewhere and was not known again there.
        gone = [*(move.old for move in arrival.moves), *arrival.removed]
        self._hide([path for path in gone if not os.path.lexists(root / path)])
        doc_ids = {line.source: line.doc_id for line in report.docs}
        names = {path: self._name(path) for path in arrival.added}
        return {path: doc_ids[name] for path, name in names.items() if name in doc_ids}

    def _member(self, path: str, ingest_options: IngestOptions) -> CollectionMember:
        return CollectionMember(
            lsid=self.place_of(path),
            kind="notebook",
            path=self.root / path,
            ingest_options=ingest_options,
            name=self._name(path),
        )

    def _ingest_options(self, path: str, tags: tuple[str, ...], owner: str | None) -> IngestOptions:
        with self._store.read() as txn:
            before = docs.latest_of(txn, self.place_of(path))
        # What stood here before and was somebody else's says nothing of who may see this.
        is_new = owner is not None and before is not None and before.owner != owner
        return IngestOptions(
            tags=tags or None, owner=owner, visibility="private" if is_new else None
        )

    def settle_in(self) -> None:
        """Have the notebook kept current, and no other.

        Where it was moved, with its home or by another setting, its docs follow it; those of notes
        that are not in the new place go, and come back when that notebook does.
        """
        folder = folder_if_fit(self._paths, self._settings)
        for origin in declared(folder, self._store.clock.now_ms()):
            with self._store.read() as txn:
                notebooks = [
                    notebook_origin
                    for notebook_origin in origins.list_origins(txn)
                    if notebook_origin.kind == "notebook"
                ]
            if all(notebook_origin.origin_id != origin.origin_id for notebook_origin in notebooks):
                origins.register(self._store, origin)
            for notebook_origin in notebooks:
                if notebook_origin.origin_id != origin.origin_id:
                    self._leave(notebook_origin)

    def _leave(self, origin: Origin) -> None:
        old = origins.origin_folder(origin)
        with self._store.read() as txn:
            numbers = list(docs.with_facet(txn, "kind", "notebook"))
            latest = [doc for no in numbers if (doc := docs.latest(txn, no))]
        left = [doc for doc in latest if (path_of(doc.place) or self.root).is_relative_to(old)]
        here = (
            walked.path for walked in walk(self.root, _EXTENSIONS) if isinstance(walked, WalkedFile)
        )
        fresh = [path for path in here if member_at(self.root, os.fspath(path))]
        lost = [MissingDoc(doc=doc) for doc in left]
        moves = detect_moves(
            self._store, fresh, lost, self._file_bytes_max, title_of=self._title_of
        )
        followed = set(apply_moves(self._store, moves))
        tombstone_missing(self._store, [doc.doc_id for doc in left if doc.doc_id not in followed])
        origins.unregister(self._store, origin.origin_id)

    def _followed(self, move: "NoteMove") -> DetectedMove | None:
        old, new = self.root / move.old, self.root / move.new
        with self._store.read() as txn:
            doc = docs.latest_of(txn, file_lsid(old))
        if doc is None or doc.status != "active":
            return None
        try:
            read = read_source(new, self._file_bytes_max, self._store.clock.file_ms())
        except SourceError:
            return None
        if read.digest != doc.raw_sha256:
            return None
        seen = seen_record(file_lsid(new), doc.doc_id, doc.raw_sha256, read.stamp)
        title = new_title(doc, new, read.data, self._title_of)
        return DetectedMove(doc=doc, path=new, seen=seen, title=title)

    def _title_of(self, path: Path, data: bytes) -> str | None:
        options = AddOptions(file_bytes_max=self._file_bytes_max, keep_current=False)
        return self._engine.adder(options).title_of(path, data)

    def _hide(self, paths: list[str]) -> None:
        with self._store.read() as txn:
            latest = [docs.latest_of(txn, self.place_of(path)) for path in paths]
        hidden = [doc.doc_id for doc in latest if doc is not None and doc.status == "active"]
        if hidden:
            tombstone_missing(self._store, hidden)

    def _path_of(self, doc: Doc) -> str | None:
        """The path in the notebook of a note's doc; None for one that lies elsewhere."""
        if not doc.place.startswith(f"{self._top}/"):
            return None
        path = path_of(Lsid(f"file://{doc.place.removeprefix(self._top)}"))
        return None if path is None else os.fspath(path)[1:]

    def nearest(self, text: str) -> list[tuple[str, float]]:
        """Paths of notes with the cosine of their chunk that is most like `text`, best first."""
        request = SearchRequest(
            query=text, verbatim=True, k=_LIKE_HITS, kinds=("notebook",), rerank=False
        )
        hits = self._engine.searcher().search(request, OPERATOR).hits
        if not hits:
            return []
        embedder = self._engine.embedder()
        vector = embedder.embed_query(text)
        best: dict[str, float] = {}
        with self._store.read() as txn:
            for hit in hits:
                chunk, doc = chunks.by_id(txn, hit.chunk_id), DOCS.get(txn, hit.doc_id.encode())
                name = self._path_of(doc) if doc is not None else None
                if chunk is None or name is None:
                    continue
                text_hash = chunk.text_hash
                chunk_vector = chunks.get_vector(txn, embedder.fingerprint, text_hash, embedder.dim)
                if chunk_vector is not None:
                    best[name] = max(best.get(name, -1.0), float(vector @ chunk_vector))
        return sorted(best.items(), key=lambda item: (-item[1], item[0]))
