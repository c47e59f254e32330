"""Sites, feeds and repositories as sources: registered, held while read, followed from then on."""

import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Final

from msgspec import Struct, structs

from kb.errors import SourceError
from kb.intake.canonicalize import Parser
from kb.intake.crawl.book import PageBook
from kb.intake.crawl.crawl import SiteCrawl
from kb.intake.crawl.follow_feed import FeedRun, FeedTools
from kb.intake.crawl.follow_repository import RepositoryRun, RepositoryTools
from kb.intake.crawl.frontier import CrawlLimits
from kb.intake.crawl.judge import CrawlTools
from kb.intake.crawl.options import TakeOptions
from kb.intake.crawl.scope import SiteScope
from kb.intake.crawl.taker import PageTaker
from kb.intake.git.fetch_commit import Check, FetchLimits
from kb.intake.git.repository_address import parse_repository
from kb.intake.ingest.changes import tombstone_missing
from kb.intake.ingest.ingest import Ingestor
from kb.intake.ingest.request import IngestOptions
from kb.intake.sync.fetch import Fetcher
from kb.intake.sync.folder import hold_back_reason
from kb.intake.sync.origins import acquire, mark_synced, new_origin, register, release, renew
from kb.intake.sync.pictures import Ocr
from kb.intake.sync.report import AddReport, SiteReport, Tally
from kb.intake.sync.url import url_lsid
from kb.intake.sync.weburl import printable_url
from kb.model.config import CrawlSettings
from kb.model.failpoints import failpoint
from kb.model.origin import Origin, OriginKind
from kb.model.site import SiteOptions
from kb.store.kv import WriteTxn
from kb.store.records import SOURCES
from kb.store.store import Store

_MARK: Final = "pass:"
Progress = Callable[[int, int], None]


class RepositoryAccess(Struct, frozen=True, kw_only=True):
    """How the repositories of a home are reached."""

    check: Check
    tmp: Path
    """Where unfinished files of the home lie."""
    file_bytes_max: int
    token_host: str


class SiteSources:
    """Reads the sites, feeds and repositories of one home."""

    def __init__(
        self,
        store: Store,
        ingestor: Ingestor,
        parser: Parser,
        fetcher: Fetcher,
        settings: CrawlSettings,
        repositories: RepositoryAccess,
        ocr: Ocr,
    ) -> None:
        self._store = store
        self._ingestor = ingestor
        self._parser = parser
        self._fetcher = fetcher
        self._settings = settings
        self._repositories = repositories
        self._ocr: Ocr = ocr
        self.running: Tally | None = None
        """What became so far of the pages of the source that is being read."""

    def add_site(
        self,
        start: str,
        site: SiteOptions,
        options: TakeOptions,
        on_progress: Progress | None = None,
    ) -> AddReport:
        """Register a site and take its pages, or go on with what an earlier call began.

        What is committed stays if this is interrupted. Nothing is removed: that is a sync's. A
        dry run writes nothing, and asks for the pages nevertheless.
        """
        try:
            location = SiteScope(start, site).start
        except SourceError as error:
            return _failed(start, error)
        return self._add("site", location, site, options, on_progress)

    def add_feed(self, url: str, options: TakeOptions) -> AddReport:
        """Register a feed and take its entries; otherwise as `add_site`."""
        try:
            location = url_lsid(url).removeprefix("url:")
        except SourceError as error:
            return _failed(url, error)
        return self._add("feed", location, None, options)

    def add_repository(
        self, source: str, options: TakeOptions, on_progress: Progress | None = None
    ) -> AddReport:
        """Register a repository and take its files; otherwise as `add_site`."""
        try:
            location = parse_repository(source).location
        except SourceError as error:
            return _failed(printable_url(source), error)
        return self._add("repository", location, None, options, on_progress)

    def _add(
        self,
        kind: OriginKind,
        location: str,
        site: SiteOptions | None,
        options: TakeOptions,
        on_progress: Progress | None = None,
    ) -> AddReport:
        now_ms = self._store.clock.now_ms()
        origin = new_origin(kind, location, options.ingest_options, now_ms)
        origin = structs.replace(
            origin,
            site=site,
            extensions=options.extensions,
            takes_ignored=options.takes_ignored,
        )
        with self._store.read() as txn:
            before = SOURCES.get(txn, origin.origin_id.encode())
        if options.dry_run:
            cursor = before.cursor if before else ""
            return self._looked(structs.replace(origin, cursor=cursor), options, on_progress)
        if before is not None and before.site != site:
            # Links that were left out before are found where pages are read again.
            PageBook(self._store, before).reread()
        register(self._store, origin)
        with self._store.read() as txn:
            registered = SOURCES.get(txn, origin.origin_id.encode())
        held = acquire(self._store, registered) if registered else None
        if held is None:
            tally = Tally()
            tally.left(location, "failed", "another process is syncing it, or just has")
            return tally.report()
        return self._added(held, options, on_progress)

    def _looked(
        self, origin: Origin, options: TakeOptions, on_progress: Progress | None
    ) -> AddReport:
        taker = self._taker(origin, options)
        try:
            return self._read(origin, taker, on_progress).report
        except SourceError as error:
            taker.tally.left(origin.location, "failed", error.reason)
            return taker.tally.report()

    def _added(self, held: Origin, options: TakeOptions, on_progress: Progress | None) -> AddReport:
        taker = self._taker(held, options)
        after = held
        try:
            done = self._read(held, taker, on_progress)
            after = mark_synced(done.after, self._store.clock.now_ms())
            if done.stopped:
                note = f"{done.stopped}; run the same command again to go on"
                taker.tally.note(held.location, "added", note)
        except SourceError as error:
            after = structs.replace(held, failures=1, last_error=error.reason)
            taker.tally.left(held.location, "failed", error.reason)
        finally:
            release(self._store, after)
        return taker.tally.report()

    def follow(
        self, held: Origin, options: TakeOptions, *, accept_deletions: bool = False
    ) -> SiteReport:
        """Bring a source level that this process holds, and remove docs of vanished pages.

        More vanished docs than a folder may lose are removed only if `accept_deletions`. Raises the
        fetcher's errors if the site fails; then nothing is removed.
        """
        taker = self._taker(held, options)
        done = self._read(held, taker, None)
        if held.kind == "feed" or done.stopped is not None:
            return done
        removed, reason = self._remove(PageBook(self._store, held), held, accept_deletions)
        return structs.replace(done, removed=removed, hold_back_reason=reason)

    def _taker(self, origin: Origin, options: TakeOptions) -> PageTaker:
        asked = options.ingest_options
        ingest_options = IngestOptions(
            tags=asked.tags if asked.tags is not None else origin.tags,
            visibility=asked.visibility,
            visibility_first=origin.visibility,
            owner=origin.owner,
        )
        book = PageBook(self._store, origin)
        taker = PageTaker(
            self._store,
            self._ingestor,
            self._parser,
            book,
            structs.replace(options, ingest_options=ingest_options),
            self._ocr,
        )
        taker.renew = lambda txn: renew(txn, self._store, origin)
        self.running = taker.tally
        return taker

    def _read(self, origin: Origin, taker: PageTaker, on_progress: Progress | None) -> SiteReport:
        if origin.kind == "feed":
            return self._read_feed(origin, taker)
        if origin.kind == "repository":
            return self._read_repository(origin, taker, on_progress)
        pass_no = _last_pass(origin) + 1
        crawl = SiteCrawl(
            CrawlTools(
                scope=SiteScope(origin.location, origin.site or SiteOptions()),
                fetcher=self._fetcher,
                book=taker.book,
                taker=taker,
                limits=self._limits(origin.site or SiteOptions()),
                clock=self._store.clock,
                pass_no=pass_no,
                on_progress=on_progress or (lambda _done, _total: None),
            )
        )
        crawl.run()
        # A pass that is not complete goes on under its number.
        cursor = f"{_MARK}{pass_no}" if crawl.stopped is None else origin.cursor
        return SiteReport(
            report=taker.tally.report(),
            after=structs.replace(origin, cursor=cursor),
            stopped=crawl.stopped,
        )

    def _read_feed(self, origin: Origin, taker: PageTaker) -> SiteReport:
        tools = FeedTools(
            store=self._store,
            fetcher=self._fetcher,
            book=taker.book,
            taker=taker,
            clock=self._store.clock,
            connections=self._settings.connections,
            entries_max=self._settings.feed_entries_max,
        )
        cursor = FeedRun(tools, origin.location).run(origin.cursor)
        return SiteReport(report=taker.tally.report(), after=structs.replace(origin, cursor=cursor))

    def _read_repository(
        self, origin: Origin, taker: PageTaker, on_progress: Progress | None
    ) -> SiteReport:
        access = self._repositories
        tools = RepositoryTools(
            store=self._store,
            taker=taker,
            scratch=access.tmp / f"{os.getpid()}-{secrets.token_hex(8)}",
            check=access.check,
            limits=FetchLimits(
                file_bytes_max=access.file_bytes_max,
                bytes_max=self._settings.bytes_max,
                seconds_max=self._settings.minutes_max * 60,
                token_host=access.token_host,
            ),
            on_progress=on_progress or (lambda _done, _total: None),
        )
        run = RepositoryRun(tools, parse_repository(origin.location), origin)
        # What is asked for anew may want other files than those of the commit that is known.
        cursor = run.run("" if taker.options.revive else origin.cursor)
        return SiteReport(
            report=taker.tally.report(),
            after=structs.replace(origin, cursor=cursor or origin.cursor),
            stopped=run.stopped,
        )

    def _limits(self, site: SiteOptions) -> CrawlLimits:
        settings = self._settings
        return CrawlLimits(
            pages_max=site.pages_max or settings.pages_max,
            depth_max=site.depth_max or settings.depth_max,
            minutes_max=settings.minutes_max,
            bytes_max=settings.bytes_max,
            connections=settings.connections,
        )

    def _remove(
        self, book: PageBook, origin: Origin, accept_deletions: bool
    ) -> tuple[int, str | None]:
        with self._store.read() as txn:
            vanished = book.vanished(txn)
            known_count = book.docs_count(txn)
        reason = None if accept_deletions else _held_back(origin, len(vanished), known_count)
        if reason or not vanished:
            return 0, reason

        def note(txn: WriteTxn) -> None:
            book.dropped([page for page, _ in vanished])
            book.write(txn)

        failpoint("sync.before_remove")
        ids = [doc.doc_id for _, doc in vanished]
        return len(tombstone_missing(self._store, ids, note)), None


def _held_back(origin: Origin, vanished: int, known_count: int) -> str | None:
    """Why the docs of vanished pages are not removed without a confirmation."""
    if vanished and vanished == known_count:
        came = "1 doc" if known_count == 1 else f"{known_count:,} docs"
        own, doubt = ("files", "right") if origin.kind == "repository" else ("pages", "down")
        return f"it has none of its {own}, but {came} came from it; is it {doubt}?"
    return hold_back_reason(None, known_count - vanished, vanished, known_count)


def _last_pass(origin: Origin) -> int:
    """The number of the last pass that was completed; 0 before the first."""
    number = origin.cursor.removeprefix(_MARK)
    return int(number) if origin.cursor.startswith(_MARK) and number.isdecimal() else 0


def _failed(source: str, error: SourceError) -> AddReport:
    tally = Tally()
    tally.left(source, "failed", error.reason)
    return tally.report()
