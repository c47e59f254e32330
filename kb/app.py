"""Who holds it together? The composition root: opens a home and hands out plain objects."""

import functools
import os
import threading
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, Self, TypeVar

from kb.config import Settings
from kb.content.files import ContentStore
from kb.content.layout import HomePaths
from kb.errors import UsageError
from kb.ingest.ingest import Ingestor
from kb.model.clock import Clock, SystemClock
from kb.store.store import Store

if TYPE_CHECKING:
    from kb.canonicalize import Parser
    from kb.check import Checker
    from kb.compactor import Compactor
    from kb.embed.protocol import Embedder
    from kb.index import DenseIndex, LexicalIndexes
    from kb.model.origin import Origin
    from kb.search.engine import Searcher
    from kb.sync.add import Adder, AddOptions
    from kb.sync.current import Syncer, SyncOptions
    from kb.sync.report import AddReport
    from kb.sync.url import UrlSyncer
    from kb.sync.walk import Found, Passed
    from kb.tools.kit import ToolKit
    from kb.worker.pool import WorkerPool

Space = Literal["user", "project", "all"]
T = TypeVar("T")
PROJECT_FOLDER: Final = ".kb"


def find_home(home: str | None, space: Space | None, cwd: Path, env: Mapping[str, str]) -> Path:
    """The home meant: --home, else --space, else KB_HOME, else .kb/ upward, else the user's.

    Raises UsageError where a project space is asked for and there is none.
    """
    if home == "":
        raise UsageError("--home is empty")
    if home is not None and space is not None:
        raise UsageError("give either --home or --space")
    if home is not None:
        return Path(home).expanduser().absolute()
    if space == "all":
        raise UsageError("--space all is not supported yet; choose user or project")
    if space is None and env.get("KB_HOME"):
        return Path(env["KB_HOME"]).expanduser().absolute()
    project = next(
        (p / PROJECT_FOLDER for p in (cwd, *cwd.parents) if (p / PROJECT_FOLDER).is_dir()), None
    )
    if space == "project" and project is None:
        raise UsageError(
            f"no {PROJECT_FOLDER}/ folder here or above; make one, or use --space user"
        )
    return project if project is not None and space != "user" else user_home()


def user_home() -> Path:
    """The user space, under the platform's data folder. Raises UsageError where there is none."""
    import platformdirs

    home = Path(platformdirs.user_data_dir("kb", appauthor=False))
    if not home.is_absolute():
        raise UsageError("this user has no home folder; say --home DIR, or set KB_HOME")
    return home


def user_config() -> Path:
    """The user's own settings file."""
    import platformdirs

    return Path(platformdirs.user_config_dir("kb", appauthor=False)) / "config.toml"


class App:
    """One open home. Close it, or use it as a context manager; safe to share by threads."""

    def __init__(self, paths: HomePaths, store: Store, settings: Settings) -> None:
        self.paths = paths
        self.store = store
        self.settings = settings
        self.content = ContentStore(paths)
        self._lock = threading.RLock()
        self._pools: list[WorkerPool] = []

    @classmethod
    def open(
        cls, home: Path, settings: Settings, *, create: bool = True, clock: Clock | None = None
    ) -> Self:
        """Open a home, making it when `create`; without it, a home that is not there is empty.

        Raises ReadOnlyHome or StoreDamaged.
        """
        paths = HomePaths(home)
        clock = clock or SystemClock()
        if not create and not (paths.store / "data.mdb").exists():
            from kb.store.memory import MemoryEnvironment

            return cls(paths, Store(MemoryEnvironment(), clock), settings)
        read_only = not create and not os.access(paths.store, os.W_OK)
        if create:
            paths.make()
        return cls(
            paths, Store.open(paths.store, clock, create=create, read_only=read_only), settings
        )

    @property
    def is_made(self) -> bool:
        """Whether the home is there; one that was not is empty, and reading it makes nothing."""
        return (self.paths.store / "data.mdb").exists()

    @functools.cached_property
    def embedder(self) -> "Embedder":
        """The model in use; it loads its weights at the first text."""
        from kb.embed.factory import make_embedder

        said = self.settings.embed
        return make_embedder(
            said.kind,
            model=said.model,
            threads=said.threads,
            query_prefix=said.query_prefix,
            passage_prefix=said.passage_prefix,
            scripts=said.scripts,
        )

    @functools.cached_property
    def lexical(self) -> "LexicalIndexes":
        """The caches of words, one to an audience."""
        from kb.index import LexicalIndexes

        return LexicalIndexes(self.paths.index / "lexical")

    @functools.cached_property
    def dense(self) -> "DenseIndex":
        """The cache of vectors of the model in use."""
        from kb.index import DenseIndex

        said = self.settings.index
        return DenseIndex(
            self.paths.index / "dense",
            self.embedder.fingerprint,
            self.embedder.dim,
            mode=said.dense_mode,
            crossover_rows=said.crossover_rows,
        )

    @functools.cached_property
    def ingestor(self) -> Ingestor:
        """Takes docs in."""
        return Ingestor(self.store, self.content)

    @functools.cached_property
    def searcher(self) -> "Searcher":
        """Answers questions."""
        from kb.search.engine import Searcher, Sources

        sources = Sources(
            lexical=lambda: self._locked(lambda: self.lexical),
            dense=lambda: self._locked(lambda: self.dense),
            embedder=lambda: self._locked(lambda: self.embedder),
        )
        wait_s = self.settings.index.lock_wait_ms / 1000
        return Searcher(self.store, self.content, sources, self.settings.search, wait_s)

    @functools.cached_property
    def toolkit(self) -> "ToolKit":
        """What an agent's calls are answered with."""
        from kb.tools.kit import ToolKit

        return ToolKit(store=self.store, content=self.content, searcher=self.searcher)

    def adder(self, parser: "Parser", options: "AddOptions") -> "Adder":
        """Takes sources in, for one call."""
        from kb.sync.add import Adder

        return Adder(self.store, self.ingestor, parser, options, lambda: self.urls)

    @functools.cached_property
    def urls(self) -> "UrlSyncer":
        """Asks servers for pages."""
        from kb.sync.fetch import Fetcher
        from kb.sync.url import UrlSyncer

        return UrlSyncer(Fetcher(self.settings.fetch, self.store.clock))

    def syncer(self, parser: "Parser", options: "SyncOptions") -> "Syncer":
        """Brings sources level, for one call."""
        import msgspec

        from kb.ingest.request import Wishes
        from kb.sync.add import AddOptions
        from kb.sync.current import Syncer

        def take_in(
            origin: "Origin", seen: "Sequence[Found | Passed]"
        ) -> "tuple[AddReport, Origin]":
            asked = AddOptions(
                recursive=True,
                extensions=origin.extensions,
                wishes=Wishes(tags=origin.tags, visibility=origin.visibility, owner=origin.owner),
                dry_run=options.dry_run,
                file_bytes_max=self.settings.ingest.file_bytes_max,
                home=options.home,
                keep_current=False,
                revive=False,
            )
            adder = self.adder(parser, asked)
            if origin.kind == "folder":
                return adder.add_walked(seen), origin
            report = adder.add([origin.location])
            if adder.error is not None:
                raise adder.error
            cursor = adder.cursors.get(origin.location, origin.cursor)
            return report, msgspec.structs.replace(origin, cursor=cursor)

        return Syncer(self.store, take_in, options)

    def parser(self) -> "Parser":
        """Reads formats, the risky ones in a child process; close it."""
        from kb.canonicalize import Parser

        said = self.settings.ingest
        return Parser(memory_bytes_max=said.parse_memory_bytes, wall_s_max=said.parse_wall_s)

    def pool(self) -> "WorkerPool":
        """The worker pool, not yet started. Asks for work anew where a stage changed."""
        from kb.chunker import fingerprint
        from kb.worker.pool import WorkerPool, WorkerSettings
        from kb.worker.stages import follow_stages

        said = self.settings
        settings = WorkerSettings(
            threads=said.work.threads,
            lease_ms=said.work.lease_ms,
            idle_ms=said.work.idle_ms,
            tokens_max=min(said.chunk.tokens_max, self.embedder.tokens_max),
            overlap_tokens=said.chunk.overlap_tokens,
        )
        chunker = fingerprint(settings.tokens_max, settings.overlap_tokens)
        follow_stages(self.store, chunker=chunker, model=self.embedder.fingerprint)
        pool = WorkerPool(self.store, self.content, self.embedder, settings)
        self._pools.append(pool)
        return pool

    def catch_up(self) -> list[str]:
        """Bring the caches level with the store; returns what kept them from it, in words."""
        wait_s = self.settings.index.lock_wait_ms / 1000
        states = (cache.catch_up(self.store, wait_s=wait_s) for cache in (self.lexical, self.dense))
        return [state.problem for state in states if state.problem]

    @functools.cached_property
    def compactor(self) -> "Compactor":
        """Keeps the home small."""
        from kb.compactor import Compactor

        return Compactor(
            self.store,
            self.content,
            lambda: self.lexical,
            lambda: self.dense,
            self.settings.compact,
        )

    @functools.cached_property
    def checker(self) -> "Checker":
        """Compares everything with what names it."""
        from kb.check import Checker

        return Checker(
            self.store,
            self.content,
            self.lexical,
            self.dense,
            self.embedder.fingerprint,
            self.embedder.dim,
        )

    def _locked(self, opened: Callable[[], T]) -> T:
        with self._lock:
            return opened()

    def close(self) -> None:
        """Close what was opened; not under a worker that is still busy, which ends with us."""
        busy = [pool for pool in self._pools if not pool.shutdown(wait_s=0.0)]
        if busy:
            return
        for name in ("lexical", "dense"):
            if name in self.__dict__:
                self.__dict__[name].close()
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
