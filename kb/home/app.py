"""Who holds it together? The composition root: opens a home and hands out plain objects."""

# Long because it is a list: one short property to each object that a home has.

import contextlib
import functools
import os
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Final, Self, TypeVar

import msgspec

from kb.model.clock import Clock, SystemClock
from kb.model.config import RerankSettings, SearchSettings, Settings
from kb.model.doc import LOCAL_USER, Scope
from kb.store import docs
from kb.store.content.files import ContentFiles, ContentStore
from kb.store.content.layout import PROJECT_FOLDER, HomePaths
from kb.store.store import Store

if TYPE_CHECKING:
    from kb.home.open_home import OpenHome
    from kb.home.services.cache_follower import CacheFollower
    from kb.home.services.models import HomeModels, SharedModels
    from kb.home.services.notebook import HomeNotebook
    from kb.home.services.packs import HomePacks
    from kb.home.services.registries import HomeRegistries
    from kb.intake.canonicalize import Parser
    from kb.intake.chunks import PrecomputedChunks
    from kb.intake.crawl.site_sources import SiteSources
    from kb.intake.embed.protocol import Embedder
    from kb.intake.ingest.ingest import Ingestor
    from kb.intake.recognize.tesseract import Tesseract
    from kb.intake.sync.add import Adder, AddOptions
    from kb.intake.sync.fetch import Fetcher
    from kb.intake.sync.items import CollectionMember
    from kb.intake.sync.pictures import Ocr
    from kb.intake.sync.sync_all import Syncer, SyncOptions
    from kb.intake.sync.url import UrlSyncer
    from kb.intake.worker.pool import WorkerPool
    from kb.intake.worker.settings import WorkerSettings
    from kb.knowledge.answers import AnswerResources
    from kb.knowledge.llm import Provider
    from kb.knowledge.topics import Topic
    from kb.model.doc import Doc, Visibility
    from kb.model.ids import Lsid
    from kb.model.job import Claim, JobKind
    from kb.model.search import LearnCall, SpaceName
    from kb.search.backends import DenseBackend, SearchBackends
    from kb.search.engine import Searcher
    from kb.search.index.dense import DenseIndex
    from kb.search.index.lexical_indexes import LexicalIndexes
    from kb.store.transactions import Transactions
    from kb.upkeep.backup import Backups
    from kb.upkeep.check import HomeChecker
    from kb.upkeep.compactor import Compactor

T = TypeVar("T")
_SCOPES_MAX: Final = 64


def topics_of(
    home: Path, settings: Settings, scope: Scope, *, owner: str = LOCAL_USER
) -> "tuple[Topic, ...]":
    """What a scope can learn in a home, its folder named from the project's root if it has one.

    `owner` is whose settings they are. Raises ConfigError for a topic whose folder is not there.
    """
    if not settings.kb.topic:
        return ()
    from kb.knowledge.topics import resolved

    return resolved(settings.kb, topics_root(home), scope, owner=owner)


def topics_root(home: Path) -> Path:
    """Where the folders of topics are named from: the project that the home is of, or the home."""
    return home.parent if home.name == PROJECT_FOLDER else home


def _content_of(paths: HomePaths, store: Store) -> ContentStore:
    """Where the bytes of docs lie: in the folder of the home, or with a store that is shared."""
    if paths.database is None:
        return ContentFiles(paths)
    from kb.store.bucket_content import BucketContent

    return BucketContent(store, paths)


class App:
    """One open home. Close it, or use it as a context manager; safe to share by threads."""

    def __init__(
        self,
        paths: HomePaths,
        store: Store,
        settings: Settings,
        shared: "SharedModels | None" = None,
    ) -> None:
        self.paths = paths
        self.store = store
        self.settings = settings
        self._shared = shared
        self.content = _content_of(paths, store)
        self._lock = threading.RLock()
        self._pools: list[WorkerPool] = []

    @classmethod
    def open(
        cls,
        home: Path,
        settings: Settings,
        *,
        create: bool = True,
        clock: Clock | None = None,
        shared: "SharedModels | None" = None,
        beside: bool = False,
    ) -> Self:
        """Open a home, making it when `create`; without it, a home that is not there is empty.

        One that is asked `beside` another keeps nobody waiting for a server that is away. Homes
        that are given the same `shared` models load each of them once. Raises ReadOnlyHome,
        StoreDamaged, and StoreMissing for a home that was made before and has lost its store.
        """
        paths = HomePaths(home)
        address = paths.database
        if address is not None:
            from kb.home.shared_home import open_shared

            store = open_shared(paths, address, clock, create=create, beside=beside)
            return cls(paths, store, settings, shared)
        clock = clock or SystemClock()
        paths.check_not_lost()
        if not create and not paths.has_store:
            return cls(paths, Store.missing(clock), settings, shared)
        read_only = not create and not os.access(paths.store, os.W_OK)
        if create:
            paths.make()
        store = Store.open(paths.store, clock, create=create, read_only=read_only)
        return cls(paths, store, settings, shared)

    @property
    def caller(self) -> Scope:
        """Who asks here, unless a server has let another user in."""
        return self.store.caller

    @property
    def is_made(self) -> bool:
        """Whether the home was there when it was opened, or was made; one that was not is empty.

        It stays so, even if another process makes the home meanwhile.
        """
        return self.store.is_made

    @property
    def models(self) -> "HomeModels":
        """The models that embed here."""
        return self._locked(lambda: self._models)

    @functools.cached_property
    def _models(self) -> "HomeModels":
        from kb.home.services.models import HomeModels

        return HomeModels(self.store, self.paths.index / "dense", self.settings, self._shared)

    @property
    def embedder(self) -> "Embedder":
        """The model in use; it loads its weights at the first text."""
        return self.models.embedder()

    @functools.cached_property
    def lexical(self) -> "LexicalIndexes":
        """The caches of words, one to an audience."""
        from kb.search.index.lexical_indexes import LexicalIndexes

        return LexicalIndexes(self.paths.index / "lexical")

    @property
    def dense(self) -> "DenseIndex":
        """The cache of vectors of the model in use."""
        return self.models.active().index

    @functools.cached_property
    def transactions(self) -> "Transactions":
        """The tokens of commits, for readers that want to see what was written."""
        from kb.store.transactions import Transactions

        return Transactions(self.store)

    @functools.cached_property
    def ingestor(self) -> "Ingestor":
        """Takes docs in."""
        from kb.intake.ingest.ingest import Ingestor

        return Ingestor(self.store, self.content)

    @functools.cached_property
    def searcher(self) -> "Searcher":
        """Answers questions."""
        from kb.search.query_cache import CachingSearcher

        wait_s = self.settings.index.lock_wait_ms / 1000
        return CachingSearcher(
            self.store,
            self.content,
            self._search_backends(self.settings.rerank),
            self.settings.search,
            wait_s,
            self._learn_call,
        )

    def searcher_with(
        self,
        settings: SearchSettings,
        rerank: RerankSettings,
        dense: "DenseBackend | None" = None,
    ) -> "Searcher":
        """Answers questions under other settings, or by another model; keeps no results."""
        from kb.search.engine import Searcher

        wait_s = self.settings.index.lock_wait_ms / 1000
        backends = self._search_backends(rerank)
        if dense is not None:
            backends = msgspec.structs.replace(backends, dense=lambda _: dense)
        return Searcher(self.store, self.content, backends, settings, wait_s, self._learn_call)

    def _search_backends(self, rerank: RerankSettings) -> "SearchBackends":
        from kb.search.backends import SearchBackends

        return SearchBackends(
            lexical=lambda: self._locked(lambda: self.lexical),
            dense=self.models.active,
            embed_query=self.models.embed_query,
            rerank=rerank,
            reranker=self.models.reranker,
        )

    def _learn_call(self, doc: "Doc") -> "LearnCall | None":
        # The rooms that read sources are loaded once a hit is a topic's.
        from kb.home.services.sources import learn_call

        return learn_call(self.settings, doc, self.store.machine)

    def topics(self, scope: Scope) -> "tuple[Topic, ...]":
        """What a scope can learn here. Raises ConfigError for a topic whose folder is not there."""
        return self._topics(scope.within(self.caller))

    @functools.cached_property
    def _topics(self) -> "Callable[[Scope], tuple[Topic, ...]]":
        # Found once: a folder that goes later costs its own topic, and no other.
        owner = self.caller.own_name or LOCAL_USER
        find = functools.partial(topics_of, self.paths.root, self.settings, owner=owner)
        return functools.lru_cache(_SCOPES_MAX)(find)

    def opened(self, name: "SpaceName | None" = None) -> "OpenHome":
        """The home as questions read it, by the name of its space."""
        from kb.home.open_home import OpenHome

        return OpenHome(
            name=name,
            store=self.store,
            content=self.content,
            searcher=lambda: self._locked(lambda: self.searcher),
            caller=self.caller,
            topics=self.topics,
            answer_resources=self._answer_resources,
        )

    def _answer_resources(self) -> "AnswerResources":
        from kb.knowledge.answers import AnswerResources
        from kb.knowledge.topics import knowledge_section

        def knowledge(scope: Scope) -> str:
            # Only who made the settings has their topics in the prompt.
            if scope.within(self.caller) != self.caller:
                return ""
            return knowledge_section(self.topics(scope), with_tool=False).text

        has_model = self.settings.llm.provider != "none"
        return AnswerResources(
            provider=(lambda: self.llm) if has_model else None,
            embedder=lambda: self.embedder,
            knowledge=knowledge,
        )

    @functools.cached_property
    def llm(self) -> "Provider":
        """The language model. Raises ConfigError for settings or a key that cannot be used."""
        from kb.knowledge.llm import Timing, make_provider

        return make_provider(self.settings.llm, os.environ, Timing(clock=self.store.clock))

    def adder(self, parser: "Parser", options: "AddOptions") -> "Adder":
        """Takes sources in, for one call."""
        from kb.home.services import notebook as home_notebook
        from kb.intake.sync.add import Adder

        notebook = home_notebook.folder_if_fit(self.paths, self.settings.notebook)
        within = os.path.realpath(self.paths.knowledge) + os.sep

        def member_at(file: str) -> "CollectionMember | None":
            note = home_notebook.member_at(notebook, file)
            if note is not None or not file.startswith(within):
                return note
            from kb.home.services import entries

            return entries.member_at(self.store, file, options.file_bytes_max)

        options = msgspec.structs.replace(options, ocr=self._ocr())
        return Adder(self.store, self.ingestor, parser, options, lambda: self.urls, member_at)

    def sites(self, parser: "Parser") -> "SiteSources":
        """Reads sites, feeds and repositories, for one call."""
        from kb.intake.crawl.site_sources import RepositoryAccess, SiteSources

        access = RepositoryAccess(
            check=self.fetcher.check_repository,
            tmp=self.paths.tmp,
            file_bytes_max=self.settings.ingest.file_bytes_max,
            token_host=self.settings.fetch.git_token_host,
        )
        return SiteSources(
            self.store,
            self.ingestor,
            parser,
            self.fetcher,
            self.settings.crawl,
            access,
            self._ocr(),
        )

    def _ocr(self) -> "Ocr":
        if self.settings.ingest.ocr == "off":
            return "off"
        return "missing" if self.tesseract is None else "there"

    @functools.cached_property
    def tesseract(self) -> "Tesseract | None":
        """Reads pictures; None where it is not installed, or not wanted."""
        from kb.intake.recognize.tesseract import installed

        ingest = self.settings.ingest
        if ingest.ocr == "off":
            return None
        return installed(
            ingest.ocr_languages,
            cpu_s_max=ingest.parse_cpu_s,
            memory_bytes_max=ingest.parse_memory_bytes,
        )

    @functools.cached_property
    def urls(self) -> "UrlSyncer":
        """Asks servers for pages."""
        from kb.intake.sync.url import UrlSyncer

        return UrlSyncer(self.fetcher)

    @functools.cached_property
    def fetcher(self) -> "Fetcher":
        """The way out to the network."""
        from kb.intake.sync.fetch import Fetcher

        return Fetcher(self.settings.fetch, self.store.clock)

    def syncer(
        self,
        parser: "Parser",
        options: "SyncOptions",
        *,
        ready: "Mapping[Lsid, PrecomputedChunks] | None" = None,
        revive: bool = False,
        visibility: "Visibility | None" = None,
    ) -> "Syncer":
        """Brings sources level, for one call; of those in `ready` the chunks are there already.

        With `revive` what a person removed comes back; `visibility` is that of a pack's docs, where
        it is asked for anew.
        """
        from kb.home.services.sources import HomeSources
        from kb.intake.ingest.request import IngestOptions
        from kb.intake.sync.add import AddOptions
        from kb.intake.sync.sync_all import Syncer

        add_options = AddOptions(
            recursive=True,
            dry_run=options.dry_run,
            accept_deletions=options.accept_deletions,
            file_bytes_max=self.settings.ingest.file_bytes_max,
            home=options.home,
            keep_current=False,
            revive=revive,
            ingest_options=IngestOptions(visibility=visibility),
        )
        if ready:
            # They can be used where they are cut and embedded as the home does it.
            self._worker_settings()
        if not options.dry_run:
            self.notebook.settle_in()
        sources = HomeSources(
            self.store,
            self.settings,
            topics_root(self.paths.root),
            self.paths,
            lambda options_of_doc: self.adder(parser, options_of_doc),
            add_options,
            ready or {},
            lambda: self.sites(parser),
        )
        return Syncer(self.store, sources, options)

    @functools.cached_property
    def packs(self) -> "HomePacks":
        """Puts packs on the register, and archives of them into the home."""
        from kb.home.services.packs import HomePacks

        return HomePacks(self.store, self.paths, self.settings.pack, lambda: self.fetcher)

    @functools.cached_property
    def registries(self) -> "HomeRegistries":
        """Takes entries from registries."""
        from kb.home.services.registries import HomeRegistries

        return HomeRegistries(
            self.store,
            self.paths,
            self.settings,
            fetcher=lambda: self.fetcher,
            embedder=lambda: self.embedder,
            follow=self._worker_settings,
        )

    def parser(self) -> "Parser":
        """Reads formats, the risky ones in a child process; close it."""
        from kb.intake.canonicalize import Parser

        ingest = self.settings.ingest
        return Parser(memory_bytes_max=ingest.parse_memory_bytes, cpu_s_max=ingest.parse_cpu_s)

    @functools.cached_property
    def notebook(self) -> "HomeNotebook":
        """Keeps notes in a git repository, which is a source of the home."""
        from kb.home.services.notebook import HomeNotebook, NotebookEngine

        engine = NotebookEngine(
            adder=lambda options: self.adder(self.parser(), options),
            searcher=lambda: self._locked(lambda: self.searcher),
            embedder=lambda: self.embedder,
            llm=lambda: self.llm,
        )
        return HomeNotebook(self.store, self.paths, self.settings, engine)

    def pool(self, *, reads_files: bool = False) -> "WorkerPool":
        """The worker pool, not yet started. Asks for work anew where a stage changed.

        Without `reads_files` what takes long waits for another pool: docs that are to be read
        again, and pages that are pictures.
        """
        from kb.intake.recognize.scans import ScanHandler
        from kb.intake.reread.outdated import RereadHandler
        from kb.intake.worker.pool import PoolModels, WorkerPool

        settings = self.follow_stages()
        models = PoolModels(active=lambda: self.embedder, next=self.models.next)
        handlers: dict[JobKind, Callable[[list[Claim]], None]] = {
            "organize": self.notebook.organize
        }
        engine = self.tesseract
        if reads_files:
            reads = (self.store, self.content, lambda: self.ingestor, self.parser)
            handlers["reread"] = RereadHandler(*reads, self._ocr).work
            if engine is not None:
                handlers["ocr"] = ScanHandler(*reads, lambda: engine).work
        pool = WorkerPool(self.store, self.content, models, settings, handlers)
        with self._lock:
            self._pools = [earlier for earlier in self._pools if not earlier.has_ended] + [pool]
        return pool

    def follow_stages(self) -> "WorkerSettings":
        """Ask for work anew where a stage changed; returns how a pool works from now on."""
        from kb.intake.recognize.scans import follow_ocr
        from kb.intake.reread.outdated import follow_parsers

        settings = self._worker_settings()
        engine = self.tesseract
        follow_ocr(self.store, engine.fingerprint if engine else "")
        follow_parsers(self.store)
        return settings

    def _worker_settings(self) -> "WorkerSettings":
        """How the pool works, which the home follows from now on."""
        from kb.intake.worker.settings import worker_settings
        from kb.intake.worker.stages import follow_stages

        settings = worker_settings(self.settings, self.embedder)
        follow_stages(self.store, chunker=settings.chunker, models=self.models.in_use())
        return settings

    def shortened(self) -> str | None:
        """That the model in use reads less than `entry.tokens_max`; None without entries."""
        asked_max = self.settings.entry.tokens_max
        with self.store.read() as txn:
            if not any(True for _ in docs.with_facet(txn, "kind", "entry")):
                return None
        most = self.embedder.tokens_max
        if most >= asked_max:
            return None
        return (
            f"passages of entries have at most {most} tokens, because the model reads no more; "
            f"entry.tokens_max says {asked_max}"
        )

    def behind(self) -> int:
        """How many entries of the log this machine's caches do not hold yet; opens none of them."""
        from kb.errors import EmbedError, ModelMissing
        from kb.store import log

        with self.store.read() as txn:
            end, audiences = log.last_seq(txn), docs.audiences(txn)
        lexical = self._locked(lambda: self.lexical)
        watermarks = [lexical.of(audience).watermark for audience in audiences]
        if end and audiences:
            # Without a model there is no cache of vectors to follow.
            with contextlib.suppress(ModelMissing, EmbedError):
                watermarks.append(self.dense.watermark)
        return max(0, end - min(watermarks, default=end))

    def catch_up(self) -> list[str]:
        """Bring the caches level with the store, and write anew what is worn of the words.

        Returns what kept them from it, in words. A home that is not made has none.
        """
        if not self.is_made:
            return []
        wait_s = self.settings.index.lock_wait_ms / 1000
        problems = [
            *self._catch_up_one(self.lexical, wait_s),
            *self._catch_up_one(self.dense, wait_s),
        ]
        if problems or not self.lexical.is_worn(self.store):
            return problems
        # Last, for all can be found by now.
        return self.lexical.compact(self.store, wait_s=wait_s)

    def _catch_up_one(self, cache: "LexicalIndexes | DenseIndex", wait_s: float) -> list[str]:
        if cache.is_level(self.store):
            return []
        problem = cache.catch_up(self.store, wait_s=wait_s).problem
        return [problem] if problem else []

    @property
    def cache_follower(self) -> "CacheFollower":
        """Has the caches follow what other machines change, not yet started."""
        from kb.home.services.cache_follower import CacheFollower

        return CacheFollower(
            self.store,
            lambda: self._locked(lambda: self.lexical),
            lambda: self.dense,
            self.settings.index.lock_wait_ms / 1000,
        )

    @functools.cached_property
    def compactor(self) -> "Compactor":
        """Keeps the home small."""
        from kb.upkeep.compactor import Compactor

        return Compactor(
            self.store,
            self.content,
            lambda: self.lexical,
            lambda: self.dense,
            self.settings.compact,
        )

    @functools.cached_property
    def backups(self) -> "Backups":
        """Copies of the whole home, to be made before what cannot be undone."""
        from kb.upkeep.backup import Backups

        return Backups(self.paths, self.store)

    @property
    def checker(self) -> "HomeChecker":
        """Compares everything with what names it, under the model that is in use now."""
        from kb.home.services.notebook import folder_if_fit
        from kb.upkeep.check import HomeChecker, NotebookPlace

        dense = self.dense
        folder = folder_if_fit(self.paths, self.settings.notebook)
        place = NotebookPlace(root=folder, sync=self._sync_notebook) if folder else None
        return HomeChecker(
            self.store, self.content, self.lexical, dense, dense.fingerprint, dense.dim, place
        )

    def _sync_notebook(self) -> None:
        from kb.intake.sync.sync_all import SyncOptions

        with self.parser() as parser:
            options = SyncOptions(interval_min=0, only=os.fspath(self.notebook.root))
            self.syncer(parser, options).run()

    def _locked(self, opened: Callable[[], T]) -> T:
        with self._lock:
            return opened()

    def close(self) -> None:
        """Close what was opened; not under a worker that is still busy, which ends with us."""
        busy = [pool for pool in self._pools if not pool.shutdown(wait_s=0.0)]
        if busy:
            return
        for name in ("lexical", "_models"):
            if name in self.__dict__:
                self.__dict__[name].close()
        self.store.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()
