"""The pages of one site, asked for in one pass: each at most once, and what becomes of it."""

from typing import Final

from msgspec import structs

from kb.errors import Gone, KbError, RateLimited, SourceError, Transient
from kb.intake.crawl.frontier import Frontier
from kb.intake.crawl.judge import REMOVED, CrawlTools, PageJudge
from kb.intake.crawl.lastmod import is_settled
from kb.intake.crawl.listing import read_listing
from kb.intake.crawl.requests import PageRequests, Response
from kb.intake.sync.fetch import Fetched, Redirected
from kb.intake.sync.url import etag_in, last_modified_in
from kb.model.site import SitePage

# A site that fails so often in a row is left alone for now.
_FAILURES_IN_A_ROW_MAX: Final = 8
# A sitemap that has more of the pages than this is taken for whole.
_LISTED_SHARE: Final = 0.5
_PAUSES_MAX: Final = 6
_PAUSE_S_MAX: Final = 60


class SiteCrawl:
    """One pass over a site, or the rest of one."""

    def __init__(self, tools: CrawlTools) -> None:
        self._tools = tools
        self._book = tools.book
        self._taker = tools.taker
        self._tally = tools.taker.tally
        self._frontier = Frontier(tools.book, tools.scope, tools.limits)
        self._lastmods: dict[str, str] = {}
        self._judge = PageJudge(tools, self._frontier)
        self._is_full = self._is_listed = False
        self._end_ms = tools.clock.lease_ms() + tools.limits.minutes_max * 60_000
        self._bytes = self._handled = self._answers = self._failures = self._pauses = 0
        self._error: SourceError | None = None
        self.stopped: str | None = None
        """Why the pass is not complete; None if it is."""

    def run(self) -> None:
        """Ask for all that may have changed, and for all that it leads to.

        What is committed stays if this is interrupted, and the next run goes on from there. Raises
        Transient or RateLimited if the site fails.
        """
        tools = self._tools
        try:
            self._begin()
            delay_s = tools.fetcher.site_rules(tools.scope.start).crawl_delay_s
            with PageRequests(
                self._fetch,
                tools.clock.now_ms,
                connections=tools.limits.connections,
                delay_s=delay_s,
            ) as requests:
                self._work(requests)
        finally:
            # After Ctrl-C, too: what was read is complete.
            self._taker.flush()
        if self._error is not None and not self._answers:
            raise self._error

    def _begin(self) -> None:
        scope = self._tools.scope
        listing = read_listing(self._tools.fetcher, scope)
        for place, reason in listing.problems:
            self._tally.note(place, "failed", reason)
        self._lastmods = listing.pages
        known = list(self._book)
        taken = sum(page.state == "taken" for page in known)
        self._is_listed = len(listing.pages) > _LISTED_SHARE * taken
        self._frontier.find(scope.start, 0)
        for url in listing.pages:
            self._frontier.find(url, 1, is_listed=True)
        for url in listing.linked:
            self._frontier.find(url, 1, is_listed=True, is_late=url.endswith(".md"))
        listed = {*listing.pages, *listing.linked}
        for page in known:
            if not scope.has(page.url):
                self._outside(page)
            elif self._is_to_ask(page, is_listed=page.url in listed):
                self._frontier.add(page)

    def _outside(self, page: SitePage) -> None:
        """A page that the newest options leave out."""
        if page.doc == "own":
            self._judge.leave(page, "it is not part of the site any more", state="gone")
        elif page.doc == "none":
            self._book.drop(page)

    def _is_to_ask(self, page: SitePage, *, is_listed: bool) -> bool:
        """Whether a known page is asked for; what became of it otherwise."""
        is_done = page.pass_no == self._tools.pass_no and not page.failures
        if is_done and page.state != "found":
            return False
        if self._taker.stays_out(page):
            self._tally.left(page.url, "skipped", REMOVED)
            return False
        match page.state:
            case "found" | "same":
                return True
            case "gone":
                # With a doc that waits for a confirmation it may have come back; where no sitemap
                # would say so, also with one that was removed.
                was_doc = page.doc == "own" or (page.doc == "dropped" and not self._is_listed)
                return is_listed or was_doc
            case _ if not self._is_unchanged(page):
                return True
            case "taken":
                return not self._judge.keep(page)
            case _:
                self._tally.left(page.url, "skipped", page.reason)
                return False

    def _is_unchanged(self, page: SitePage) -> bool:
        """Whether the sitemap says that a page is as it was when it was asked for."""
        lastmod = self._lastmods.get(page.url, "")
        return lastmod == page.lastmod != "" and is_settled(lastmod, page.asked_ms)

    def _work(self, requests: PageRequests) -> None:
        while True:
            self._fill(requests)
            if not requests.in_flight:
                return
            self._handle(requests.next(), requests)
            self._handled += 1
            self._taker.flush_if_due()
            waiting = len(self._frontier) + requests.in_flight
            self._tools.on_progress(self._handled, self._handled + waiting)

    def _fill(self, requests: PageRequests) -> None:
        while requests.has_room and not self._is_over():
            page = self._frontier.next(requests.in_flight)
            if page is None:
                return
            if page.state == "found" and not self._has_place(requests.in_flight):
                if requests.in_flight:
                    self._frontier.again(page)
                    return
                continue
            if not self._settle_late(page):
                requests.ask(page, if_changed=self._judge.knows_bytes(page))

    def _is_over(self) -> bool:
        """Whether the run ends here, at a limit; the next one goes on."""
        limits = self._tools.limits
        if self._tools.clock.lease_ms() >= self._end_ms:
            self.stopped = f"stopped after {limits.minutes_max:,} minutes (crawl.minutes_max)"
        elif self._bytes >= limits.bytes_max:
            self.stopped = f"stopped after {self._bytes:,} bytes (crawl.bytes_max)"
        elif not self._taker.is_held:
            self.stopped = "another process has taken over"
        return self.stopped is not None

    def _has_place(self, in_flight: int) -> bool:
        """Whether one more page may be taken."""
        limit = self._tools.limits.pages_max
        if self._judge.taken + in_flight < limit:
            return True
        if not in_flight and self._judge.taken >= limit and not self._is_full:
            self._is_full = True
            reason = f"it has more than {limit:,} pages; --max-pages takes more"
            self._tally.note(self._tools.scope.start, "added", reason)
        return False

    def _settle_late(self, page: SitePage) -> bool:
        """Whether a page needs no request, as another one says the same."""
        twin = self._frontier.twin_of(page)
        if twin is not None:
            self._judge.leave(self._asked(page), f"says the same as {twin.url}", leads_to=twin.url)
            return True
        if page.state == "same" and self._judge.says_the_same(page) and self._is_unchanged(page):
            self._tally.left(page.url, "skipped", page.reason)
            return True
        return False

    def _fetch(self, page: SitePage, if_changed: bool) -> Fetched:
        cursor = page.cursor if if_changed else ""
        return self._tools.fetcher.get(
            page.url,
            etag=etag_in(cursor),
            last_modified=last_modified_in(cursor),
            follow_robots=True,
            follow_redirects=False,
        )

    def _handle(self, response: Response, requests: PageRequests) -> None:
        known = self._book.get(response.page.url)
        if known is not None and known.is_own != response.page.is_own:
            # It became a page of its own meanwhile, and is asked for anew.
            return
        page = self._asked(response.page, response.asked_ms)
        answer = response.answer
        if isinstance(answer, RateLimited):
            self._pause(page, answer, requests)
            return
        if isinstance(answer, Transient):
            self._failed(page, answer)
            return
        self._answers += 1
        self._failures = 0
        match answer:
            case Fetched():
                self._bytes += len(answer.data)
                self._judge.answered(page, answer)
            case Redirected():
                self._judge.redirected(page, answer.to)
            case Gone():
                self._judge.gone(page, answer.reason)
            case SourceError():
                self._judge.not_had(page, answer)
            case KbError():
                raise answer

    def _asked(self, page: SitePage, asked_ms: int = 0) -> SitePage:
        return structs.replace(
            page,
            asked_ms=asked_ms or page.asked_ms,
            pass_no=self._tools.pass_no,
            lastmod=self._lastmods.get(page.url, ""),
            failures=0,
        )

    def _pause(self, page: SitePage, error: RateLimited, requests: PageRequests) -> None:
        self._pauses += 1
        wait_s = error.retry_after_s or 1 << self._pauses
        if self._pauses > _PAUSES_MAX or wait_s > _PAUSE_S_MAX:
            raise error
        requests.pause(wait_s)
        self._frontier.again(page)

    def _failed(self, page: SitePage, error: Transient) -> None:
        """It stays as it was, and is asked for in the next pass."""
        before = self._book.get(page.url) or page
        failures = before.failures + 1
        self._book.put(structs.replace(before, failures=failures, pass_no=page.pass_no))
        self._tally.left(page.url, "failed", error.reason)
        self._error = error
        self._failures += 1
        if self._failures >= _FAILURES_IN_A_ROW_MAX:
            raise error
