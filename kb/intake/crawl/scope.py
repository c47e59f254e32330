"""Which addresses are pages of a site? Pure, but for the parsing of addresses."""

import fnmatch
import re
from functools import lru_cache
from typing import Final

from kb.errors import Refused
from kb.intake.sync.weburl import WebUrl, join_url, normalize_escapes, parse_url
from kb.model.site import SiteOptions

_REFERENCE_CHARS_MAX: Final = 2_000
_URL_CHARS_MAX: Final = 1_000
_SEGMENTS_MAX: Final = 24
_REPEATS_MAX: Final = 2
_CACHED_MAX: Final = 100_000
_OTHER_SCHEME: Final = re.compile(r"(?!https?:)[a-z][a-z0-9+.-]*:", re.IGNORECASE)
_BREAKS: Final = re.compile(r"[\t\r\n]+")
# What tells who came from where, and not which page it is.
_DROPPED: Final = re.compile(
    r"(?:utm_\w+|gclid|dclid|fbclid|msclkid|yclid|twclid|mc_[ce]id|_ga|_gl|igshid|ref_src"
    r"|phpsessid|jsessionid|aspsessionid\w*|sid|sessid|sessionid|session_id"
    r"|cfid|cftoken|zenid|oscsid)",
    re.IGNORECASE,
)
_SESSION_IN_PATH: Final = re.compile(
    r";(?:jsessionid|phpsessid|sid)=[^/;]*|/\(S\([a-z0-9]{1,64}\)\)", re.IGNORECASE
)
_DIGITS: Final = re.compile(r"[0-9]+")
_CALENDAR: Final = re.compile(
    r"(?<![0-9])[12][0-9]{3}[-/_.]?(?:0?[1-9]|1[0-2])(?![0-9])"
    r"|[?&](?:year|month|week|day|date|ical|cal\w*|tribe-bar-date)=",
    re.IGNORECASE,
)
_NOT_PAGE_NAMES: Final = """
    png jpg jpeg gif svg webp avif ico bmp tif tiff heic
    css js mjs map json jsonld xml rss atom wasm
    woff woff2 ttf otf eot
    zip gz tgz bz2 xz zst 7z rar tar jar whl deb rpm apk dmg iso exe msi bin inv
    mp3 mp4 m4a m4v ogg oga ogv wav webm flac mov avi mkv
"""
_NOT_PAGES: Final = frozenset(_NOT_PAGE_NAMES.split())
# Lists of pages, which are read, and never docs.
_LISTS: Final = frozenset(
    {"robots.txt", "llms.txt", "llms-full.txt", "sitemap.txt", "sitemap.xml", "sitemap_index.xml"}
)


class SiteScope:
    """The addresses that belong to the site of one start."""

    def __init__(self, start: str, options: SiteOptions) -> None:
        """Read the start. Raises Refused for an address that kb does not fetch."""
        self.at = parse_url(start)
        self.start = page_address(self.at)
        self._options = options
        path = parse_url(self.start).target.partition("?")[0]
        name = path.rpartition("/")[2]
        # Below the folder of a file, and below an address that is a folder without its slash.
        self.folder = path[: len(path) - len(name)] if "." in name or not name else path
        self._include = [_glob(glob) for glob in options.include]
        self._exclude = [_glob(glob) for glob in options.exclude]
        self._joined = lru_cache(_CACHED_MAX)(self._join)

    def address(self, base: str, reference: str) -> str | None:
        """The address of a reference on the page `base`; None unless it is on the site's host.

        Fragments, sessions and what tells a visitor's way are dropped.
        """
        reference = _BREAKS.sub("", reference.strip()).partition("#")[0].replace(" ", "%20")
        if not 0 < len(reference) <= _REFERENCE_CHARS_MAX or _OTHER_SCHEME.match(reference):
            return None
        # What does not begin at the root of the host is seen from the page's folder.
        is_rooted = reference.startswith("/") or "://" in reference[:12]
        if not is_rooted and not reference.startswith("?"):
            base = base.partition("?")[0].rpartition("/")[0] + "/"
        return self._joined("" if is_rooted else base, reference)

    def _join(self, base: str, reference: str) -> str | None:
        try:
            return self.own(join_url(parse_url(base) if base else self.at, reference))
        except Refused:
            return None

    def own(self, url: WebUrl) -> str | None:
        """The address as the site's pages are known by; None if it is on another host."""
        if url.host != self.at.host:
            return None
        if url.scheme != self.at.scheme or url.port != self.at.port:
            if (url.scheme, url.port, self.at.scheme, self.at.port) != ("http", 80, "https", 443):
                return None
            url = WebUrl(scheme="https", host=url.host, port=443, target=url.target)
        return page_address(url)

    def has(self, url: str) -> bool:
        """Whether an address of this host belongs to the site."""
        if url == self.start:
            return True
        path = _path(url)
        if _is_no_page(path) or any(glob.fullmatch(path) for glob in self._exclude):
            return False
        if self._include:
            return any(glob.fullmatch(path) for glob in self._include)
        return path == self.folder or path.startswith(self.folder.rstrip("/") + "/")


def page_address(url: WebUrl) -> str:
    """The normal form of an address, without session and without what tells a visitor's way."""
    path, mark, query = url.target.partition("?")
    kept = [part for part in query.split("&") if part and not _is_dropped(part)]
    target = _SESSION_IN_PATH.sub("", path) or "/"
    if mark and kept:
        target += "?" + "&".join(kept)
    return url.origin + normalize_escapes(target)


def trap_reason(url: str) -> str | None:
    """Why an address looks like one of endlessly many; None if it does not."""
    if len(url) > _URL_CHARS_MAX:
        return f"its address is over {_URL_CHARS_MAX:,} characters"
    segments = [part for part in _path(url).split("/") if part]
    if len(segments) > _SEGMENTS_MAX:
        return f"its path has over {_SEGMENTS_MAX} parts"
    words = [part for part in segments if not part.isdigit()]
    if any(words.count(word) > _REPEATS_MAX for word in set(words)):
        return "its path repeats itself"
    return None


def calendar_shape(url: str) -> str | None:
    """The address with its numbers left out, if it looks like a page of a calendar."""
    target = url.partition("://")[2].partition("/")[2]
    return _DIGITS.sub("#", target) if _CALENDAR.search("/" + target) else None


def twins(url: str) -> tuple[str, ...]:
    """Where the page lies of which this address is the markdown; none if it is none."""
    if not url.endswith(".md"):
        return ()
    page = url.removesuffix(".md")
    folder = page.removesuffix("index").removesuffix("index.html")
    shapes = (page, f"{page}.html", f"{page}/", f"{page}/index.html", folder)
    return tuple(dict.fromkeys(shape for shape in shapes if shape != url))


def _is_dropped(part: str) -> bool:
    return _DROPPED.fullmatch(part.partition("=")[0]) is not None


def _path(url: str) -> str:
    return "/" + url.partition("://")[2].partition("/")[2].partition("?")[0]


def _is_no_page(path: str) -> bool:
    name = path.rpartition("/")[2].lower()
    return name in _LISTS or ("." in name and name.rpartition(".")[2] in _NOT_PAGES)


def _glob(glob: str) -> re.Pattern[str]:
    """The paths that a glob means: `*` stands for anything; without one, also all below it."""
    shown = "/" + glob.lstrip("/")
    if not any(mark in shown for mark in "*?["):
        return re.compile(re.escape(shown.rstrip("/")) + r"(?:/.*)?", re.DOTALL)
    return re.compile(fnmatch.translate(shown))
