"""Is a fetched page a list of pages? Told by its first element, and by its name."""

import re
from typing import Final, Literal

from kb.errors import Refused
from kb.intake.canonicalize.mime import bom_encoding

ListKind = Literal["feed", "sitemap"]
_WINDOW_BYTES: Final = 16_384
_SKIPPED: Final = (("<!--", "-->"), ("<?", "?>"))
_ROOT: Final = re.compile(r"<(?:[\w.-]{1,40}:)?(rss|feed|RDF|urlset|sitemapindex)(?=[\s>/])")

_JSON_FEED: Final = re.compile(
    r'\{[^{}\[\]]{0,8000}"version"\s*:\s*"https?:(?:\\?/){2}jsonfeed\.org'
)


class FeedNamed(Refused):
    """The address is that of a feed, which is a source with many docs."""


def check_page(url: str, name: str, data: bytes) -> None:
    """Raise FeedNamed for a feed, and Refused for a sitemap and an llms.txt; return for a page."""
    kind = list_kind(data)
    if kind == "feed":
        raise FeedNamed("it is a feed; kb add takes it on the machine of the home", source=url)
    if kind == "sitemap" or name == "llms.txt":
        detail = "it lists the pages of a site; kb add --crawl takes those in"
        raise Refused(detail, source=url)


def list_kind(data: bytes) -> ListKind | None:
    """What the bytes list: the entries of a feed, or the pages of a site; None for a page."""
    codec = bom_encoding(data) or "latin-1"
    text = data[:_WINDOW_BYTES].decode(codec, "replace").lstrip("\ufeff \t\r\n")
    if _JSON_FEED.match(text):
        return "feed"
    while True:
        closing = next((end for start, end in _SKIPPED if text.startswith(start)), None)
        if closing is None:
            break
        text = text.partition(closing)[2].lstrip()
    root = _ROOT.match(text)
    if root is None:
        return None
    if root[1] == "RDF" and "http://purl.org/rss/1.0/" not in text:
        return None
    return "sitemap" if root[1] in ("urlset", "sitemapindex") else "feed"
