"""The entries of one feed: each a doc. One that leaves the feed stays."""

from msgspec import Struct, structs

from kb.errors import KbError, SourceError, Transient, Unparsable
from kb.intake.canonicalize.dates import iso_date
from kb.intake.crawl.book import PageBook
from kb.intake.crawl.feed import FeedEntry, entry_page, read_feed
from kb.intake.crawl.judge import REMOVED
from kb.intake.crawl.requests import PageRequests, Response
from kb.intake.crawl.taker import PageBytes, PageTaker
from kb.intake.sync.fetch import Fetched, Fetcher
from kb.intake.sync.lists import list_kind
from kb.intake.sync.url import cursor_of, etag_in, last_modified_in, page_mime, url_lsid
from kb.intake.sync.weburl import parse_url
from kb.model.clock import Clock
from kb.model.ids import sha256_hex
from kb.model.site import SitePage
from kb.store import docs
from kb.store.store import Store


class FeedTools(Struct, frozen=True, kw_only=True):
    """What a feed is read with."""

    store: Store
    fetcher: Fetcher
    book: PageBook
    taker: PageTaker
    clock: Clock
    connections: int
    entries_max: int


class FeedRun:
    """One look at a feed."""

    def __init__(self, tools: FeedTools, url: str) -> None:
        self._tools = tools
        self._url = url
        self._book = tools.book
        self._taker = tools.taker
        self._tally = tools.taker.tally
        self._entries: dict[str, FeedEntry] = {}

    def run(self, cursor: str) -> str:
        """Take the entries that are new or changed; returns the feed's new cursor.

        An unchanged feed costs one request. Raises the fetcher's errors for the feed itself, and
        Unparsable if it is none.
        """
        is_all_taken = not any(page.state == "found" for page in self._book)
        asked = cursor if is_all_taken else ""
        fetched = self._tools.fetcher.get(
            self._url, etag=etag_in(asked), last_modified=last_modified_in(asked)
        )
        if fetched.status == "not_modified":
            return cursor_of(fetched) or cursor
        if list_kind(fetched.data) != "feed":
            raise Unparsable("it is no feed", source=self._url)
        entries = read_feed(fetched.data, fetched.final_url, self._tools.entries_max)
        try:
            self._take_all(entries)
        finally:
            self._taker.flush()
        return cursor_of(fetched)

    def _take_all(self, entries: list[FeedEntry]) -> None:
        waiting = []
        for entry in entries:
            page = self._page(entry)
            if page is None:
                continue
            if entry.content is None:
                waiting.append(page)
                self._book.put(page)
                self._entries[page.url] = entry
            else:
                data = entry_page(entry)
                self._take(page, entry, _page_bytes(data, "text/html", "utf-8", entry))
        rules = self._tools.fetcher.site_rules(self._url)
        with PageRequests(
            self._fetch,
            self._tools.clock.now_ms,
            connections=self._tools.connections,
            delay_s=rules.crawl_delay_s,
        ) as requests:
            while waiting or requests.in_flight:
                while waiting and requests.has_room:
                    requests.ask(waiting.pop(0), if_changed=False)
                self._handle(requests.next())
                self._taker.flush_if_due()

    def _page(self, entry: FeedEntry) -> SitePage | None:
        """What is known of an entry that is to be taken; None for one that is settled."""
        try:
            url = _address(entry.url)
        except SourceError as error:
            self._tally.left(entry.url, "failed", error.reason)
            return None
        page = self._book.get(url) or SitePage(url=url)
        with self._tools.store.read() as txn:
            newest = docs.latest_of(txn, self._book.lsid(url))
        if self._taker.stays_out(page):
            self._tally.left(url, "skipped", REMOVED)
        elif page.doc == "none" and newest is not None and newest.status == "active":
            self._tally.left(url, "skipped", "it is here already, by itself or by a site")
        elif page.state == "taken" and page.lastmod == entry.version and self._is_kept(page):
            pass
        elif page.state == "left" and page.lastmod == entry.version:
            self._tally.left(url, "skipped", page.reason)
        else:
            return page
        return None

    def _is_kept(self, page: SitePage) -> bool:
        doc = self._taker.kept(page)
        if doc is not None:
            self._tally.took(page.url, doc.doc_id, "unchanged")
        return doc is not None

    def _fetch(self, page: SitePage, _: bool) -> Fetched:
        return self._tools.fetcher.get(page.url, follow_robots=True)

    def _handle(self, response: Response) -> None:
        page, answer = response.page, response.answer
        entry = self._entries[page.url]
        match answer:
            case Fetched():
                at = parse_url(answer.final_url)
                mime = page_mime(answer.data, answer.mime, at.name)
                read = _page_bytes(answer.data, mime, answer.charset, entry, at.name or at.host)
                self._take(page, entry, read)
            case Transient():
                # It is still to be fetched, the next time.
                self._tally.left(page.url, "failed", answer.reason)
            case SourceError():
                self._leave(page, entry, answer)
            case KbError():
                raise answer

    def _take(self, page: SitePage, entry: FeedEntry, read: PageBytes) -> None:
        try:
            canonical = self._taker.read(read)
        except SourceError as error:
            self._leave(page, entry, error)
            return
        # A page often does not say when it was written; its feed does.
        date = canonical.date or iso_date(entry.date)
        canonical = structs.replace(canonical, date=date)
        taken = structs.replace(
            page,
            state="taken",
            raw_sha256=read.raw_sha256,
            text_sha256=sha256_hex(canonical.markdown),
            lastmod=entry.version,
            asked_ms=self._tools.clock.now_ms(),
            reason="",
        )
        self._taker.take(taken, read, canonical)

    def _leave(self, page: SitePage, entry: FeedEntry, error: SourceError) -> None:
        """An entry whose page cannot be had is its summary; what was taken of it before stays."""
        if page.doc != "own" and entry.summary:
            told = structs.replace(entry, content=entry.summary, summary="")
            self._take(page, told, _page_bytes(entry_page(told), "text/html", "utf-8", told))
            return
        state = "taken" if page.doc == "own" else "left"
        self._book.put(
            structs.replace(page, state=state, lastmod=entry.version, reason=error.reason)
        )
        self._tally.left(page.url, "failed", error.reason)


def _address(url: str) -> str:
    """The address in its normal form, with the part that tells entries without a page apart."""
    address, mark, fragment = url.partition("#")
    return url_lsid(address).removeprefix("url:") + mark + fragment


def _page_bytes(
    data: bytes, mime: str, charset: str | None, entry: FeedEntry, name: str = ""
) -> PageBytes:
    return PageBytes(
        data=data,
        raw_sha256=sha256_hex(data),
        mime=mime,
        charset=charset,
        name=name or entry.title or entry.url,
    )
