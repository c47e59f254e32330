"""The URL syncer: has a page changed, and what is it now?

A cursor remembers how to ask. `etag:` and `lastmod:` hold the server's validators; with
`contenthash:` the server gave none, so the page is fetched and compared.
"""

from typing import Final

from msgspec import Struct

from kb.intake.canonicalize import detect_mime
from kb.intake.canonicalize.mime import HTML, MARKDOWN, PDF, is_text
from kb.intake.canonicalize.parsers import PLAIN
from kb.intake.sync.fetch import RETRY_AFTER_S_MAX, Fetched, Fetcher
from kb.intake.sync.lists import check_page
from kb.intake.sync.weburl import normalize_url, parse_url
from kb.model.ids import Lsid, sha256_hex

_ETAG: Final = "etag:"
_LASTMOD: Final = "lastmod:"
_CONTENTHASH: Final = "contenthash:"
_SAMPLE_BYTES: Final = 65_536
_MARKUP: Final = frozenset({HTML, "application/xhtml+xml"})
_BACKOFF_FIRST_MS: Final = 60_000
_BACKOFF_MS_MAX: Final = 86_400_000


class PageUnchanged(Struct, frozen=True, kw_only=True):
    """The page has not changed."""

    cursor: str


class PageChanged(Struct, frozen=True, kw_only=True):
    """The page is new or different."""

    data: bytes
    mime: str
    """A type that `canonicalize` reads, or refuses by name."""
    charset: str | None
    """As the server declares it, which may be wrong."""
    name: str
    """The last part of the path, or the host."""
    final_url: str
    permanent_url: str | None
    """Where the page has moved for good."""
    cursor: str
    raw_sha256: str


UrlState = PageUnchanged | PageChanged


class UrlSyncer:
    """Asks servers whether pages have changed."""

    def __init__(self, fetcher: Fetcher) -> None:
        self._fetcher = fetcher

    def check(
        self, url: str, cursor: str, known_sha256: str | None, *, is_new: bool = False
    ) -> UrlState:
        """The state of a page whose last bytes had `known_sha256`; None if there were none.

        With `is_new` a list of pages is no page: raises FeedNamed for a feed, and Refused for a
        sitemap and an llms.txt.

        The answer is right with any cursor, even an empty one; a good cursor saves the transfer.
        The fetcher's errors pass through.
        """
        # Without earlier bytes, "not modified" would be useless.
        is_known = known_sha256 is not None
        fetched = self._fetcher.get(
            url,
            etag=etag_in(cursor) if is_known else None,
            last_modified=last_modified_in(cursor) if is_known else None,
        )
        if fetched.status == "not_modified":
            return PageUnchanged(cursor=cursor_of(fetched) or cursor)
        sha256 = sha256_hex(fetched.data)
        new_cursor = cursor_of(fetched) or _CONTENTHASH + sha256
        if sha256 == known_sha256:
            return PageUnchanged(cursor=new_cursor)
        at = parse_url(fetched.final_url)
        if is_new:
            check_page(url, at.name, fetched.data)
        return PageChanged(
            data=fetched.data,
            mime=page_mime(fetched.data, fetched.mime, at.name),
            charset=fetched.charset,
            name=at.name or at.host,
            final_url=fetched.final_url,
            permanent_url=fetched.permanent_url,
            cursor=new_cursor,
            raw_sha256=sha256,
        )


def url_lsid(url: str) -> Lsid:
    """The page's logical source id; all equivalent spellings of an address have one.

    Raises Refused if kb does not fetch such an address.
    """
    return Lsid("url:" + normalize_url(parse_url(url)))


def page_mime(data: bytes, declared: str | None, name: str) -> str:
    """The mime type of a page, from the server's declaration, its bytes and its file name.

    Servers declare unknown formats as plain text or bytes, so there the bytes decide. A declared
    text format does not count if the bytes are not text.
    """
    match declared:
        case "application/pdf":
            return PDF
        case mime if mime in _MARKUP and is_text(data[:_SAMPLE_BYTES]):
            return HTML
        case "text/markdown" | "text/x-markdown" if is_text(data[:_SAMPLE_BYTES]):
            return MARKDOWN
        case "text/plain":
            # Markup that is served as plain text is meant to be read as it is.
            detected = detect_mime(data, name)
            return PLAIN if detected == HTML else detected
        case _:
            return detect_mime(data, name)


def next_try_ms(failures: int, retry_after_s: int | None, now_ms: int) -> int:
    """When to ask again after so many failures in a row: after a minute, doubled up to a day.

    Never before the server's Retry-After, which counts for a day at most.
    """
    backoff_ms = min(_BACKOFF_FIRST_MS << min(max(failures, 1) - 1, 11), _BACKOFF_MS_MAX)
    asked_ms = min(retry_after_s or 0, RETRY_AFTER_S_MAX) * 1000
    return now_ms + max(backoff_ms, asked_ms)


def cursor_of(fetched: Fetched) -> str:
    """The cursor that the server's validators make; empty if it gave none."""
    if fetched.etag is not None:
        return _ETAG + fetched.etag
    return _LASTMOD + fetched.last_modified if fetched.last_modified is not None else ""


def etag_in(cursor: str) -> str | None:
    """The ETag that a cursor holds."""
    return _part(cursor, _ETAG)


def last_modified_in(cursor: str) -> str | None:
    """The date of Last-Modified that a cursor holds."""
    return _part(cursor, _LASTMOD)


def _part(cursor: str, kind: str) -> str | None:
    return cursor.removeprefix(kind) if cursor.startswith(kind) else None
