"""A home that a history is done to, in this process, by what the commands are made of."""

import contextlib
import shutil
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any, Final

from fakes import FakeClock
from histories import (
    PACK,
    Add,
    AddAll,
    BackUp,
    ChangeModel,
    Compact,
    Forget,
    LoseIndex,
    MoveHome,
    OnFiles,
    OnHome,
    OnSources,
    OnWhole,
    Op,
    PackAdd,
    PackRemove,
    Remove,
    Repair,
    Restore,
    Show,
    Sync,
    Tick,
    Work,
    Write,
    parts,
)
from histories_disk import Disk
from histories_library import Found, Library, Row

from kb.home.app import App
from kb.home.services.models import SharedModels
from kb.home.spaces.spaces import Spaces
from kb.intake.embed.hashing import HashingEmbedder
from kb.intake.embed.protocol import Embedder
from kb.intake.ingest.changes import set_visibility, tombstone
from kb.intake.ingest.request import IngestOptions
from kb.intake.sync.add import AddOptions
from kb.intake.sync.origins import UnknownSource, unregister
from kb.intake.sync.sync_all import SyncOptions
from kb.knowledge.packs import register
from kb.knowledge.packs.load import UnknownPack
from kb.model.config import EmbedSettings, Settings
from kb.model.config.sections import ChunkSettings, WorkSettings
from kb.model.doc import OPERATOR, Scope, Visibility
from kb.model.embedder import EmbedderChoice
from kb.model.ids import DocId
from kb.model.origin import origin_id
from kb.model.search import SearchMode, SearchRequest
from kb.operations import docs

# A step in the life of a note may be long ago by the clock, and a moment ago by the disk.
START_MS: Final = 4_000_000_000_000
WORDS_PER_SEARCH: Final = 24
SETTINGS: Final = Settings(
    embed=EmbedSettings(kind="hashing", model="one"),
    chunk=ChunkSettings(tokens_max=32, overlap_tokens=0),
    work=WorkSettings(threads=1, idle_ms=10),
)
_DIMS: Final = {"one": 64, "other": 96}
_STRANGER: Final = Scope(user=None)


class Models(SharedModels):
    """Hashing embedders of two sizes."""

    def made(self, choice: EmbedderChoice, threads: int, server: object = None) -> Embedder:
        return HashingEmbedder(_DIMS[choice.model])


class InProcess:
    """One history: the files, the home, and the library that knows what it must hold."""

    models: SharedModels = Models()

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="kb-history-", dir=_quick())
        root = Path(self._folder.name)
        self.disk = Disk(root / "src")
        self.library = Library(self.disk)
        self.clock = self._new_clock()
        self._root = Path(self.disk.root).parent
        self._homes = 0
        self._home = self._next_home()
        self._backup: Path | None = None
        self._rows: list[Row] = []
        self._steps = 0
        self._open()

    def _new_clock(self) -> Any:
        return FakeClock(now_ms=START_MS)

    def close(self) -> None:
        self.app.close()
        self._folder.cleanup()

    def _next_home(self) -> Path:
        self._homes += 1
        return self._root / f"home-{self._homes}"

    def _open(self) -> None:
        self.app = App.open(self._home, SETTINGS, clock=self.clock, shared=self.models)

    # Doing.

    def step(self, op: Op, check_every: int = 10) -> None:
        """Do one operation, and compare what the home shows with what it must."""
        if isinstance(op, OnFiles):
            self.disk.do(op)
            if isinstance(op, Write):
                self.library.words += self.disk.files[op.place].words
        else:
            for part in parts(op):
                self._do(part)
                self.library.do(part, self.clock.now_ms())
        self._steps += 1
        self.look(whole=self._steps % check_every == 0)

    def _do(self, op: OnHome) -> None:
        if isinstance(op, OnSources):
            self._do_sources(op)
        elif isinstance(op, Restore | MoveHome | BackUp | LoseIndex):
            self._do_folder(op)
        else:
            self._do_whole(op)

    def _do_sources(self, op: OnSources) -> None:
        match op:
            case Add(place, visibility, wait):
                self._add(place, visibility, wait=wait)
            case AddAll(folder, visibility, wait):
                self._add(folder, visibility, wait=wait)
            case Forget(folder):
                with contextlib.suppress(UnknownSource):
                    unregister(self.app.store, str(self.disk.root / folder))
            case Remove(place):
                tombstone(self.app.store, self._ids(place))
            case Show(place, visibility):
                self._show(place, visibility)
            case Sync(accept_deletions):
                self._sync(SyncOptions(interval_min=0, accept_deletions=accept_deletions))
            case PackAdd(visibility):
                self._pack_add(visibility)
            case PackRemove():
                self._pack_remove()

    def _do_whole(self, op: OnWhole) -> None:
        match op:
            case Compact(grace_min):
                assert self.app.compactor.run(grace_min=grace_min).problems == ()
            case Tick(ms):
                self.clock.jump(ms)
            case Work():
                self._work()
            case Repair():
                report = self.app.checker.run(repair=True)
                assert report.findings == (), report.findings
            case ChangeModel(model):
                self.app.models.change_to(EmbedderChoice(kind="hashing", model=model))
                self._work()
            case _:
                raise AssertionError(op)

    def _do_folder(self, op: OnWhole) -> None:
        """What is done to the home's folder."""
        match op:
            case LoseIndex():
                self.app.close()
                shutil.rmtree(self.app.paths.index)
                self._open()
            case BackUp():
                self._drop_backup()
                self._backup = self._root / "kept"
                assert self.app.backups.create(to=self._backup).backup.problems == ()
            case Restore():
                self._restore()
            case MoveHome():
                self.app.close()
                before, self._home = self._home, self._next_home()
                before.rename(self._home)
                self._open()
            case _:
                raise AssertionError(op)

    def _add(self, place: str, visibility: Visibility | None, *, wait: bool) -> None:
        if not (self.disk.root / place).exists():
            return
        options = AddOptions(
            recursive=True, home=self._home, ingest_options=IngestOptions(visibility=visibility)
        )
        with self.app.parser() as parser:
            report = self.app.adder(parser, options).add([str(self.disk.root / place)])
        assert report.failed == 0, report
        if wait:
            self._work()

    def _show(self, place: str, visibility: Visibility) -> None:
        for doc_id in self._ids(place):
            set_visibility(self.app.store, doc_id, visibility)

    def _sync(
        self, options: SyncOptions, *, revive: bool = False, visibility: Visibility | None = None
    ) -> None:
        with self.app.parser() as parser:
            syncer = self.app.syncer(parser, options, revive=revive, visibility=visibility)
            report = syncer.run()
        assert not [line for line in report.sources if line.outcome in ("failed", "busy")]
        self._work()

    def _pack_add(self, visibility: Visibility | None) -> None:
        pack = self.app.packs.read(str(self.disk.root / PACK))
        placed = self.app.packs.place(pack, visibility=visibility)
        self._sync(SyncOptions(only=placed.origin_id), revive=True, visibility=visibility)

    def _pack_remove(self) -> None:
        try:
            record = register.unregister(self.app.store, "p")
        except UnknownPack:
            return
        self._sync(SyncOptions(only=origin_id("pack", record.pack_id)))

    def _restore(self) -> None:
        if self._backup is None:
            return
        before, self._home = self._home, self._next_home()
        restored = self.app.backups.restore(str(self._backup), self._home)
        assert restored.flaws == ()
        self.app.close()
        shutil.rmtree(before)
        self._open()

    def _drop_backup(self) -> None:
        if self._backup is not None:
            shutil.rmtree(self._backup)

    def _work(self) -> None:
        pool = self.app.pool()
        pool.start()
        pool.drain()
        assert pool.shutdown()
        assert self.app.catch_up() == []

    def _ids(self, place: str) -> list[DocId]:
        return [DocId(row.doc_id) for row in self._rows if row.place == place]

    # Looking.

    def look(self, *, whole: bool) -> None:
        """Compare all that the home shows with what it must hold; `whole` is the whole check."""
        self._rows = self._listed()
        self.library.judge_rows(self._rows)
        words = self.library.words if whole else self.library.words[-WORDS_PER_SEARCH:]
        self.library.judge_found(self._found(words), words)
        assert {hit.place for hit in self._found(words, _STRANGER)} <= {
            *self.library.visible("public")
        }
        if whole:
            report = self.app.checker.run()
            assert report.findings == (), report.findings
            near = {hit.place for hit in self._found(["These words stand"], mode="dense")}
            assert near <= set(self.library.current())

    def _listed(self) -> list[Row]:
        found = docs.run(Spaces([self.app.opened()]), docs.DocsRequest(limit=0), OPERATOR)
        return [
            Row(
                doc_id=row.doc_id,
                place=self.disk.place_of(row.source),
                title=row.title,
                visibility=row.visibility,
            )
            for row in found.docs
        ]

    def _found(
        self, words: list[str], scope: Scope = OPERATOR, mode: SearchMode = "lexical"
    ) -> Iterable[Found]:
        for start in range(0, len(words), WORDS_PER_SEARCH):
            query = " ".join(words[start : start + WORDS_PER_SEARCH])
            asked = SearchRequest(query=query, k=500, mode=mode)
            for hit in self.app.searcher.search(asked, scope).hits:
                yield Found(
                    doc_id=hit.doc_id,
                    place=self.disk.place_of(hit.source),
                    title=hit.title,
                    text=hit.text,
                    line=hit.line,
                    freshness=hit.freshness,
                )


def _quick() -> str | None:
    """A folder in memory, where there is room for one."""
    shm = Path("/dev/shm")
    try:
        return str(shm) if shutil.disk_usage(shm).free > 1 << 30 else None
    except OSError:
        return None
