"""Which pages does a site list itself? Its sitemaps, and its llms.txt."""

import re
from collections.abc import Iterable
from typing import Final

from msgspec import Struct

from kb.errors import SourceError, Unparsable
from kb.intake.canonicalize.mime import is_text
from kb.intake.crawl.scope import SiteScope
from kb.intake.crawl.xml_events import visit_xml
from kb.intake.sync.body import read_body
from kb.intake.sync.fetch import Fetched, Fetcher
from kb.intake.sync.lists import list_kind

SITEMAPS_MAX: Final = 200
LISTED_MAX: Final = 100_000
_URL_CHARS_MAX: Final = 2_000
_SITEMAP_BYTES_MAX: Final = 32 << 20
_LLMS_BYTES_MAX: Final = 4 << 20
_GZIP: Final = b"\x1f\x8b"
_MARKUP: Final = re.compile(rb"\s*(?:\xef\xbb\xbf)?\s*<")
_LINK: Final = re.compile(
    r"\]\(\s{0,9}<?([^)\s<>]{1,2000})|(?<![\w(<])(https?://[^\s<>)\]]{1,2000})"
)


class SiteListing(Struct, frozen=True, kw_only=True):
    """What a site lists."""

    pages: dict[str, str]
    """By address: the last change as the sitemap says it, or nothing."""
    linked: tuple[str, ...]
    """The addresses that llms.txt names."""
    problems: tuple[tuple[str, str], ...] = ()
    """Lists that could not be read, and why; a list that is not there is none."""


class _Sitemap:
    """The addresses in a sitemap, or in an index of sitemaps."""

    def __init__(self) -> None:
        self.pages: dict[str, str] = {}
        self.sitemaps: list[str] = []
        self._texts: dict[str, list[str]] = {}

    def start(self, path: list[str], attributes: dict[str, str]) -> None:  # noqa: ARG002
        if len(path) == 2:
            self._texts = {}

    def text(self, path: list[str], text: str) -> None:
        if len(path) == 3 and path[2] in ("loc", "lastmod"):
            self._texts.setdefault(path[2], []).append(text)

    def end(self, path: list[str]) -> None:
        if len(path) != 2:
            return
        url = "".join(self._texts.get("loc", ())).strip()
        if not 0 < len(url) <= _URL_CHARS_MAX:
            return
        if path[1] == "url" and len(self.pages) < LISTED_MAX:
            self.pages[url] = "".join(self._texts.get("lastmod", ())).strip()[:64]
        elif path[1] == "sitemap" and len(self.sitemaps) < SITEMAPS_MAX:
            self.sitemaps.append(url)


def read_listing(fetcher: Fetcher, scope: SiteScope) -> SiteListing:
    """Read what the site lists of the pages in scope.

    Sitemaps are those that robots.txt names, or else `sitemap.xml` of the host and of the start's
    folder. Raises Transient if robots.txt cannot be read now.
    """
    named = fetcher.site_rules(scope.start).sitemaps
    reader = _ListReader(fetcher, scope)
    reader.read_sitemaps(named or _beside(scope, "sitemap.xml"), is_named=bool(named))
    linked = reader.read_llms(_beside(scope, "llms.txt"))
    return SiteListing(pages=reader.pages, linked=linked, problems=tuple(reader.problems))


def _beside(scope: SiteScope, name: str) -> list[str]:
    folder = scope.folder.rstrip("/")
    return list(dict.fromkeys((f"{scope.at.origin}{folder}/{name}", f"{scope.at.origin}/{name}")))


class _ListReader:
    """Reads the lists of one site."""

    def __init__(self, fetcher: Fetcher, scope: SiteScope) -> None:
        self._fetcher = fetcher
        self._scope = scope
        self.pages: dict[str, str] = {}
        self.problems: list[tuple[str, str]] = []

    def read_sitemaps(self, places: Iterable[str], *, is_named: bool) -> None:
        """Read sitemaps, and those that they name; at most SITEMAPS_MAX."""
        waiting = [url for place in places if (url := self._scope.address("", place))]
        read: set[str] = set()
        while waiting and len(read) < SITEMAPS_MAX and len(self.pages) < LISTED_MAX:
            url = waiting.pop(0)
            if url in read:
                continue
            read.add(url)
            sitemap = self._sitemap(url, is_expected=is_named or len(read) > 2)
            if sitemap is None:
                continue
            for place, lastmod in sitemap.pages.items():
                page = self._scope.address("", place)
                if page is not None and self._scope.has(page) and len(self.pages) < LISTED_MAX:
                    self.pages.setdefault(page, lastmod)
            inner = (self._scope.address("", place) for place in sitemap.sitemaps)
            waiting += [place for place in inner if place is not None]

    def read_llms(self, places: Iterable[str]) -> tuple[str, ...]:
        """The addresses in scope that the first llms.txt names that is there."""
        for place in places:
            fetched = self._get(place, _LLMS_BYTES_MAX, is_expected=False)
            if fetched is None or _MARKUP.match(fetched.data) or not is_text(fetched.data[:65_536]):
                continue
            text = fetched.data.decode("utf-8", "replace")
            named = (
                self._scope.address(place, link[1] or link[2]) for link in _LINK.finditer(text)
            )
            in_scope = dict.fromkeys(url for url in named if url and self._scope.has(url))
            return tuple(in_scope)[:LISTED_MAX]
        return ()

    def _sitemap(self, url: str, *, is_expected: bool) -> _Sitemap | None:
        fetched = self._get(url, _SITEMAP_BYTES_MAX, is_expected=is_expected)
        if fetched is None:
            return None
        try:
            return _read_sitemap(fetched.data, url)
        except SourceError as error:
            if is_expected:
                self.problems.append((url, error.reason))
            return None

    def _get(self, url: str, bytes_max: int, *, is_expected: bool) -> Fetched | None:
        try:
            return self._fetcher.get(url, follow_robots=True, bytes_max=bytes_max)
        except SourceError as error:
            if is_expected:
                self.problems.append((url, error.reason))
            return None


def _read_sitemap(data: bytes, url: str) -> _Sitemap:
    """Read a sitemap: XML, or lines of addresses, packed or not. Raises a SourceError."""
    if data.startswith(_GZIP):
        data = read_body([data], "gzip", _SITEMAP_BYTES_MAX, url)
    sitemap = _Sitemap()
    if list_kind(data) == "sitemap":
        visit_xml(data, sitemap, url)
    elif not _MARKUP.match(data) and is_text(data[:65_536]):
        lines = (line.strip() for line in data.decode("utf-8", "replace").splitlines())
        named = [line for line in lines if line.startswith(("http://", "https://"))]
        sitemap.pages = dict.fromkeys(named[:LISTED_MAX], "")
    else:
        raise Unparsable("it is no sitemap", source=url)
    return sitemap
