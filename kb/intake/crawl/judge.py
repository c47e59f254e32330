"""What becomes of a page that answers: a doc, another address of one, or nothing."""

from collections.abc import Callable
from itertools import islice
from typing import Final

from msgspec import Struct, structs

from kb.errors import EmptySource, Refused, SourceError, Unsupported
from kb.intake.canonicalize.mime import HTML
from kb.intake.crawl.book import PageBook
from kb.intake.crawl.frontier import CrawlLimits, Frontier
from kb.intake.crawl.markup import PageMarkup, read_markup
from kb.intake.crawl.scope import SiteScope
from kb.intake.crawl.taker import PageBytes, PageTaker
from kb.intake.sync.fetch import Fetched, Fetcher
from kb.intake.sync.lists import list_kind
from kb.intake.sync.pictures import lacks_text
from kb.intake.sync.url import cursor_of, page_mime
from kb.intake.sync.weburl import parse_url, printable_url
from kb.model.clock import Clock
from kb.model.ids import sha256_hex
from kb.model.site import PageState, SitePage
from kb.model.text import Canonical
from kb.store.link_names import URL

_PAGE_LINKS_MAX: Final = 500
REMOVED: Final = "removed with kb rm; kb add brings it back"


class CrawlTools(Struct, frozen=True, kw_only=True):
    """What a crawl works with."""

    scope: SiteScope
    fetcher: Fetcher
    book: PageBook
    taker: PageTaker
    limits: CrawlLimits
    clock: Clock
    pass_no: int
    on_progress: Callable[[int, int], None] = lambda _done, _total: None


class PageJudge:
    """Judges the pages of one pass."""

    def __init__(self, tools: CrawlTools, frontier: Frontier) -> None:
        self._tools = tools
        self._book = tools.book
        self._taker = tools.taker
        self._tally = tools.taker.tally
        self._frontier = frontier
        self._texts = {p.text_sha256: p.url for p in tools.book if p.state == "taken"}
        self.taken = sum(page.state == "taken" for page in tools.book)
        """How many pages have a doc."""

    def keep(self, page: SitePage) -> bool:
        """Count a taken page as unchanged; False if its bytes are needed nevertheless."""
        doc = self._taker.kept(page)
        if doc is None:
            return False
        self._tally.took(page.url, doc.doc_id, "unchanged")
        return True

    def says_the_same(self, page: SitePage) -> bool:
        """Whether the page that said the same when it was read is there and still does."""
        other = self._book.get(page.leads_to)
        is_there = other is not None and other.state == "taken"
        return is_there and other is not None and other.text_sha256 == page.text_sha256

    def knows_bytes(self, page: SitePage) -> bool:
        """Whether the news that the page has not changed is enough."""
        match page.state:
            case "taken":
                return self._taker.kept(page) is not None
            case "same":
                return self.says_the_same(page)
            case "alias" | "left":
                return bool(page.raw_sha256)
            case _:
                return False

    def not_had(self, page: SitePage, error: SourceError) -> None:
        """A page that cannot be had: what was taken of it stays."""
        if page.state != "taken":
            self.leave(page, error.reason, is_failure=page.url == self._tools.scope.start)
            return
        self._book.put(structs.replace(page, lastmod=""))
        by_rule = isinstance(error, Refused | Unsupported | EmptySource)
        self._tally.left(page.url, "skipped" if by_rule else "failed", error.reason)

    def answered(self, page: SitePage, answer: Fetched) -> None:
        """Judge a page by its bytes, or by the news that they are the same as before."""
        if answer.status == "not_modified":
            self._same_as_before(structs.replace(page, cursor=cursor_of(answer) or page.cursor))
            return
        raw_sha256 = sha256_hex(answer.data)
        is_same = raw_sha256 == page.raw_sha256 and self.knows_bytes(page)
        page = structs.replace(page, cursor=cursor_of(answer), raw_sha256=raw_sha256)
        if is_same:
            self._same_as_before(page)
            return
        mime = page_mime(answer.data, answer.mime, parse_url(page.url).name)
        is_html = mime == HTML
        said = read_markup(answer.data if is_html else b"", answer.charset, answer.robots_tag)
        base = (said.base and self._tools.scope.address(page.url, said.base)) or page.url
        if not said.nofollow:
            for reference in said.links:
                self._frontier.link(page, reference, base)
        canonical = self._canonical(page, said, base)
        if canonical is not None:
            self._alias(page, canonical)
        elif said.noindex:
            self.leave(page, "it asks programs not to keep it (noindex)")
        elif list_kind(answer.data) is not None or not answer.data.strip():
            self.leave(page, "it lists pages" if answer.data.strip() else "it is empty")
        else:
            self._read(page, answer, mime, self._page_links(page, said, base))

    def _page_links(self, page: SitePage, said: PageMarkup, base: str) -> tuple[str, ...]:
        """Where the text of a page leads to on this site, as links of its doc."""
        scope = self._tools.scope
        found = (scope.address(base, reference) for reference in said.text_links)
        there = (url for url in found if url is not None and url != page.url and scope.has(url))
        return tuple(URL + url for url in islice(dict.fromkeys(there), _PAGE_LINKS_MAX))

    def _same_as_before(self, page: SitePage) -> None:
        self._book.put(page)
        if page.state != "taken" or not self.keep(page):
            self._tally.left(page.url, "skipped", page.reason or REMOVED)

    def _canonical(self, page: SitePage, said: PageMarkup, base: str) -> str | None:
        """The other page of the site that this one says it is."""
        scope = self._tools.scope
        target = scope.address(base, said.canonical) if said.canonical else None
        if target is None or target == page.url or page.is_own or not scope.has(target):
            return None
        other = self._frontier.find(target, page.depth)
        if other is None or other.state in ("gone", "left"):
            return None
        return None if other.state == "alias" and other.leads_to == page.url else target

    def redirected(self, page: SitePage, to: str) -> None:
        """Judge a page that lies elsewhere: that page is asked for by itself."""
        scope = self._tools.scope
        target = scope.address(page.url, to)
        page = structs.replace(page, cursor="", raw_sha256="", text_sha256="")
        if target == page.url:
            self.leave(page, "it redirects to itself")
        elif target is None or not scope.has(target):
            is_start = page.url == scope.start
            advice = "; crawl that address" if is_start else ""
            reason = f"it redirects to {printable_url(to)}, outside of this site{advice}"
            self.leave(page, reason, is_failure=is_start)
        elif self._frontier.find(target, page.depth + 1) is None:
            self.leave(page, f"it redirects to {target}, beyond the limits")
        else:
            self._alias(page, target)

    def _alias(self, page: SitePage, target: str) -> None:
        self.leave(page, f"leads to {target}", state="alias", leads_to=target)

    def gone(self, page: SitePage, reason: str) -> None:
        """The site has no such page; what was only another address of it is a page now."""
        is_start = page.url == self._tools.scope.start
        bare = structs.replace(page, cursor="", raw_sha256="")
        self.leave(bare, reason, state="gone", is_failure=is_start)
        for other in self._book:
            if other.state == "alias" and other.leads_to == page.url and other.raw_sha256:
                waiting = structs.replace(other, state="found", is_own=True, leads_to="")
                self._book.put(waiting)
                self._frontier.again(waiting)

    def _read(self, page: SitePage, answer: Fetched, mime: str, links: tuple[str, ...]) -> None:
        at = parse_url(page.url)
        read = PageBytes(
            data=answer.data,
            raw_sha256=page.raw_sha256,
            mime=mime,
            charset=answer.charset,
            name=at.name or at.host,
        )
        try:
            canonical = self._taker.read(read)
        except SourceError as error:
            before = self._book.get(page.url) or page
            if before.state == "taken":
                # Its doc stays, and it is read again next time.
                self.not_had(structs.replace(page, cursor="", raw_sha256=before.raw_sha256), error)
            else:
                by_rule = isinstance(error, Unsupported | EmptySource)
                self.leave(page, error.reason, is_failure=not by_rule)
            return
        self._take(page, read, structs.replace(canonical, links=(*canonical.links, *links)))

    def _take(self, page: SitePage, read: PageBytes, canonical: Canonical) -> None:
        """Take a page, unless another one says the same."""
        # Two scans without text say the same only if they are the same.
        text = page.raw_sha256 if lacks_text(canonical) else sha256_hex(canonical.markdown)
        page = structs.replace(page, text_sha256=text)
        other = self._book.get(self._texts.get(page.text_sha256, ""))
        is_same = other is not None and other.state == "taken" and other.url != page.url
        if is_same and other is not None and other.text_sha256 == page.text_sha256:
            self.leave(page, f"says the same as {other.url}", state="same", leads_to=other.url)
            return
        if self._state(page) != "taken":
            self.taken += 1
        self._texts[page.text_sha256] = page.url
        taken = structs.replace(page, state="taken", leads_to="", reason="")
        self._taker.take(taken, read, canonical)

    def _state(self, page: SitePage) -> str:
        before = self._book.get(page.url)
        return before.state if before else "found"

    def leave(
        self,
        page: SitePage,
        reason: str,
        *,
        state: PageState = "left",
        leads_to: str = "",
        is_failure: bool = False,
    ) -> None:
        """Nothing is taken of a page; a doc that was is one that vanished."""
        if self._state(page) == "taken":
            self.taken -= 1
        self._book.put(structs.replace(page, state=state, reason=reason, leads_to=leads_to))
        if page.doc != "none" and state == "gone":
            return
        self._tally.left(page.url, "failed" if is_failure else "skipped", reason)
