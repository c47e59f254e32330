"""A site of documentation on loopback: pages that change, traps, and a log of what was asked.

Pages live in `site.pages` by path. `site.sitemap = True` lists them in /sitemap.xml with the dates
of their last changes. A page's ETag is made from its bytes. `/calendar/` is endless, every page
links to it under `site.traps`, and there every link carries a session.
"""

import datetime as dt
import hashlib
import threading
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from loopback import Answer, Handler, LoopbackServer, Route, reply

# Long ago, so that a date in a sitemap settles what was asked for since.
FIRST_CHANGE = dt.datetime(2024, 3, 1, 12, 0, 0, tzinfo=dt.UTC)


@dataclass
class DocPage:
    """One page; `extra` is put into its head."""

    title: str
    words: str
    links: tuple[str, ...] = ()
    extra: str = ""
    changes: int = 0
    listed: bool = True
    mime: str = "text/html; charset=utf-8"
    headers: dict[str, str] = field(default_factory=dict)
    raw: bytes | None = None

    @property
    def lastmod(self) -> str:
        return (FIRST_CHANGE + dt.timedelta(days=self.changes)).isoformat()

    def body(self, more: tuple[str, ...]) -> bytes:
        if self.raw is not None:
            return self.raw
        links = "".join(
            f'<li><a href="{link}">{link.partition("?")[0]}</a></li>'
            for link in (*self.links, *more)
        )
        return (
            f"<!doctype html><html><head><title>{self.title}</title>{self.extra}</head>"
            f"<body><nav><ul>{links}</ul></nav><article><h1>{self.title}</h1>"
            f"<p>{self.words}</p></article></body></html>"
        ).encode()


class _Routes(dict[str, Route]):
    """What a fixed path does, or else the site."""

    def __init__(self, site: "DocSite") -> None:
        super().__init__()
        self._site = site

    def get(self, path: str, default: Any = None) -> Any:
        return super().get(path) or self._site.answer


class DocSite:
    """The site; `down` makes it fail, `routes` give paths fixed answers."""

    def __init__(self, server: LoopbackServer) -> None:
        self.server = server
        server.routes = self.routes = _Routes(self)
        self.pages: dict[str, DocPage] = {}
        self.robots = ""
        self.sitemap = False
        self.traps = False
        self.validators = True
        self.down: int | None = None
        self._lock = threading.Lock()
        self._sessions = 0

    def url(self, path: str = "/") -> str:
        return self.server.url(path)

    def fill(self, count: int, folder: str = "/", texts: Sequence[str] = ()) -> None:
        """So many pages: an index, chapters that it links to, and pages that those link to.

        Each says one of `texts`, if there are some.
        """
        chapters = [f"{folder}chapter-{number}/" for number in range(max(1, count // 10))]
        self.pages[folder] = DocPage("Start", text_of(folder), tuple(chapters))
        leaves = [
            f"{chapters[number % len(chapters)]}page-{number}.html"
            for number in range(count - len(chapters) - 1)
        ]
        for chapter in chapters:
            inside = tuple(leaf for leaf in leaves if leaf.startswith(chapter))
            self.pages[chapter] = DocPage(f"Chapter {chapter}", text_of(chapter), inside)
        for leaf in leaves:
            self.pages[leaf] = DocPage(f"Page {leaf}", text_of(leaf), ("./", folder))
        for page, text in zip(self.pages.values(), texts, strict=False):
            page.words += text

    def edit(self, path: str, word: str) -> None:
        page = self.pages[path]
        page.words = f"{page.words} {word}"
        page.changes += 1

    def asked(self) -> list[str]:
        """The paths of pages that were asked for since the last `forget`; no lists of pages."""
        lists = ("/robots.txt", "/sitemap.xml", "/llms.txt")
        return [path for path in self.server.paths() if not path.endswith(lists)]

    def forget(self) -> None:
        self.server.requests.clear()

    def answer(self, handler: Handler) -> None:
        """Answer as the site does."""
        reply(handler, self._answer(handler))

    def _answer(self, handler: Handler) -> Answer:
        path = handler.path
        if path == "/robots.txt":
            return Answer(self.robots.encode()) if self.robots else Answer(b"none", 404)
        if self.down:
            return Answer(b"down", self.down)
        if path == "/sitemap.xml" and self.sitemap:
            return Answer(self._sitemap(), 200, {"Content-Type": "application/xml"})
        bare = path.partition("?sid=")[0]
        if self.traps and bare.startswith("/calendar/"):
            return self._calendar(bare)
        page = self.pages.get(bare)
        if page is None:
            return Answer(b"none", 404)
        return self._page(handler, page)

    def _page(self, handler: Handler, page: DocPage) -> Answer:
        more: tuple[str, ...] = ()
        if self.traps:
            more = ("/calendar/2024/01/", "?utm_source=nav", "a/a/a/a/")
        body = page.body(more)
        headers = {"Content-Type": page.mime, **page.headers}
        if self.validators:
            headers["ETag"] = f'"{hashlib.sha256(body).hexdigest()[:16]}"'
            if handler.headers.get("If-None-Match") == headers["ETag"]:
                return Answer(b"", 304, headers)
        return Answer(body, 200, headers)

    def _calendar(self, path: str) -> Answer:
        """A month that links to the months around it, each link with a session of its own."""
        parts = path.strip("/").split("/")
        year, month = int(parts[1]), int(parts[2])
        with self._lock:
            self._sessions += 1
            session = f"?sid={self._sessions}"
        months = [divmod(year * 12 + month - 1 + step, 12) for step in (-1, 1, 12)]
        links = tuple(f"/calendar/{y}/{m + 1:02}/{session}" for y, m in months)
        page = DocPage(f"{year}-{month}", f"Nothing on {year}-{month}.", links)
        return Answer(page.body(()), 200, {"Content-Type": "text/html"})

    def _sitemap(self) -> bytes:
        rows = "".join(
            f"<url><loc>{self.url(path)}</loc><lastmod>{page.lastmod}</lastmod></url>"
            for path, page in self.pages.items()
            if page.listed
        )
        head = '<?xml version="1.0"?><urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'
        return f"{head}{rows}</urlset>".encode()


def text_of(path: str) -> str:
    """Some sentences that only this page has."""
    word = "w" + hashlib.sha256(path.encode()).hexdigest()[:8]
    return f"This page says {word} and nothing else that would help. " * 4
