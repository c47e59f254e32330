"""Which page is asked for next? Those that are known, within the limits of the site."""

from collections import Counter, deque
from typing import Final

from msgspec import Struct

from kb.intake.crawl.book import PageBook
from kb.intake.crawl.scope import SiteScope, calendar_shape, trap_reason, twins
from kb.model.site import SitePage

CALENDAR_PAGES_MAX: Final = 100
_KNOWN_FACTOR: Final = 4
_KNOWN_MIN: Final = 1_000


class CrawlLimits(Struct, frozen=True, kw_only=True):
    """Where a crawl ends at the latest."""

    pages_max: int
    depth_max: int
    minutes_max: int
    """Of one run; the next one goes on."""
    bytes_max: int
    """Of one run."""
    connections: int


class Frontier:
    """The pages that are to be asked for in one pass."""

    def __init__(self, book: PageBook, scope: SiteScope, limits: CrawlLimits) -> None:
        self._book = book
        self._scope = scope
        self._limits = limits
        self._queue: deque[str] = deque()
        self._late: deque[str] = deque()
        self._queued: set[str] = set()
        self._is_late = False
        self._known_max = _KNOWN_FACTOR * limits.pages_max + _KNOWN_MIN
        shapes = (calendar_shape(page.url) for page in book)
        self._shapes = Counter(shape for shape in shapes if shape)

    def __len__(self) -> int:
        return len(self._queue) + len(self._late)

    def add(self, page: SitePage) -> None:
        """Ask for a page in this pass; one that waits for others comes after them."""
        if page.url not in self._queued:
            self._queued.add(page.url)
            is_late = page.is_late or page.state == "same"
            (self._late if is_late else self._queue).append(page.url)

    def again(self, page: SitePage) -> None:
        """Ask for a page once more, before all others."""
        self._queued.add(page.url)
        self._queue.appendleft(page.url)

    def find(
        self, url: str, depth: int, *, is_listed: bool = False, is_late: bool = False
    ) -> SitePage | None:
        """The page at an address in scope; one that is new is asked for.

        None if the limits leave it out. What the site lists itself is no trap.
        """
        known = self._book.get(url)
        if known is not None:
            return known
        if depth > self._limits.depth_max or len(self._book) >= self._known_max:
            return None
        if not is_listed and self._is_trap(url):
            return None
        page = SitePage(url=url, depth=depth, is_late=is_late)
        self._book.put(page)
        self.add(page)
        return page

    def _is_trap(self, url: str) -> bool:
        if trap_reason(url) is not None:
            return True
        shape = calendar_shape(url)
        if shape is None:
            return False
        self._shapes[shape] += 1
        return self._shapes[shape] > CALENDAR_PAGES_MAX

    def link(self, page: SitePage, reference: str, base: str) -> None:
        """A page links to a reference."""
        url = self._scope.address(base, reference)
        if url is None or not self._scope.has(url):
            return
        target = self.find(url, page.depth + 1)
        if target is not None and target.state == "gone" and target.pass_no != page.pass_no:
            self.add(target)

    def next(self, in_flight: int) -> SitePage | None:
        """The next page; None if there is none before those in flight have come."""
        if self._queue:
            return self._book.get(self._queue.popleft())
        if not in_flight:
            self._is_late = True
        if self._late and self._is_late:
            return self._book.get(self._late.popleft())
        return None

    def twin_of(self, page: SitePage) -> SitePage | None:
        """The page of which a late one is the markdown, if it is known and there."""
        if not page.is_late:
            return None
        known = (self._book.get(url) for url in twins(page.url))
        return next((twin for twin in known if twin and twin.state in ("taken", "same")), None)
