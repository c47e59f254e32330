"""Which entries does a feed have? Atom and RSS, read without a tree, and JSON Feed; pure."""

import html
import json
from typing import Final

from msgspec import Struct

from kb.errors import Refused, Unparsable
from kb.intake.crawl.xml_events import visit_xml
from kb.intake.sync.weburl import join_url, parse_url
from kb.model.ids import sha256_hex

_FIELD_CHARS_MAX: Final = 4 << 20
_TITLE_CHARS_MAX: Final = 500
_ENTRY_PATHS: Final = (["feed", "entry"], ["rss", "channel", "item"], ["RDF", "item"])
_FULL: Final = ("content", "encoded")
_DATES: Final = ("published", "pubDate", "date", "issued", "updated", "modified")
_CHANGES: Final = ("updated", "modified")
_VOID: Final = frozenset({"br", "hr", "img", "input", "meta", "link", "col", "wbr"})


_JSON_NAMES: Final = {
    "id": "id",
    "url": "link",
    "title": "title",
    "content_html": "content",
    "summary": "summary",
    "date_published": "published",
    "date_modified": "updated",
}


class FeedEntry(Struct, frozen=True, kw_only=True):
    """One entry of a feed."""

    url: str
    """The page that it links to, or the feed's address with the entry's id behind it."""
    title: str
    date: str
    version: str
    """Another one if the entry has changed."""
    content: str | None
    """Its own full text as HTML; None if the page has it."""
    summary: str = ""
    """What the feed says of it as HTML, for an entry whose page cannot be had."""


class _Feed:
    """Collects the fields of the entries."""

    def __init__(self, entries_max: int) -> None:
        self.entries: list[dict[str, str]] = []
        self._entries_max = entries_max
        self._depth = 0
        self._fields: dict[str, str] = {}
        self._parts: list[str] = []
        self._chars = 0
        self._is_markup = False

    def start(self, path: list[str], attributes: dict[str, str]) -> None:
        if not self._depth:
            if path in _ENTRY_PATHS and len(self.entries) < self._entries_max:
                self._depth, self._fields = len(path), {}
            return
        if len(path) == self._depth + 1:
            self._parts, self._chars = [], 0
            self._is_markup = path[-1] == "content" and attributes.get("type") == "xhtml"
            self._note_attributes(path[-1], attributes)
        elif self._is_markup:
            self._add(f"<{path[-1]}>")

    def _note_attributes(self, name: str, attributes: dict[str, str]) -> None:
        if name == "link" and attributes.get("rel", "alternate") == "alternate":
            self._fields.setdefault("href", attributes.get("href", ""))
        elif name == "content":
            self._fields["content type"] = attributes.get("type", "text")
            self._fields["content src"] = attributes.get("src", "")
        elif name == "guid":
            self._fields["guid is link"] = attributes.get("isPermaLink", "true").lower()

    def text(self, path: list[str], text: str) -> None:
        if self._depth and (len(path) == self._depth + 1 or self._is_markup):
            self._add(html.escape(text) if self._is_markup else text)

    def _add(self, part: str) -> None:
        self._chars += len(part)
        if self._chars <= _FIELD_CHARS_MAX:
            self._parts.append(part)

    def end(self, path: list[str]) -> None:
        if not self._depth:
            return
        if len(path) == self._depth:
            self.entries.append(self._fields)
            self._depth = 0
        elif len(path) == self._depth + 1:
            self._fields.setdefault(path[-1], "".join(self._parts).strip())
            self._is_markup = False
        elif self._is_markup and path[-1] not in _VOID:
            self._add(f"</{path[-1]}>")


def read_feed(data: bytes, url: str, entries_max: int) -> list[FeedEntry]:
    """The entries of a feed, each address once, in the order of the feed.

    Raises Unparsable if it is no feed, or has a DOCTYPE.
    """
    if data.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
        found = _json_fields(data, url)[:entries_max]
    else:
        feed = _Feed(entries_max)
        visit_xml(data, feed, url)
        found = feed.entries
    entries: dict[str, FeedEntry] = {}
    for fields in found:
        entry = _entry(fields, url)
        if entry is not None:
            entries.setdefault(entry.url, entry)
    return list(entries.values())


def _json_fields(data: bytes, url: str) -> list[dict[str, str]]:
    """The entries of a JSON feed, by the names that Atom has for their fields."""
    try:
        feed = json.loads(data.decode("utf-8-sig", "replace"))
    except (ValueError, RecursionError):
        raise Unparsable("it is no feed", source=url) from None
    items = feed.get("items") if isinstance(feed, dict) else None
    found = []
    for item in items if isinstance(items, list) else ():
        if not isinstance(item, dict):
            continue
        texts = {key: str(item[key]) for key in item if isinstance(item[key], str | int)}
        fields = {to: texts[key] for key, to in _JSON_NAMES.items() if texts.get(key)}
        if "content_html" not in texts and "content_text" in texts:
            fields |= {"content": texts["content_text"], "content type": "text"}
        found.append({key: text[:_FIELD_CHARS_MAX] for key, text in fields.items()})
    return found


def entry_page(entry: FeedEntry) -> bytes:
    """The entry's own text as a page; the same for the same entry."""
    title = html.escape(entry.title)
    date = html.escape(entry.date)
    return (
        f'<!doctype html><html><head><meta charset="utf-8"><title>{title}</title>'
        f'<meta property="article:published_time" content="{date}"></head>'
        f"<body><article><h1>{title}</h1>\n{entry.content or ''}\n</article></body></html>"
    ).encode("utf-8", "replace")


def _entry(fields: dict[str, str], feed_url: str) -> FeedEntry | None:
    link = fields.get("href") or fields.get("link", "")
    ident = fields.get("id") or fields.get("guid", "")
    if not link and fields.get("guid is link") == "true" and "://" in ident[:12]:
        link = ident
    content = _content(fields)
    summary = fields.get("description") or fields.get("summary") or ""
    if content is None and not link:
        content = summary or None
    url = _url(link, feed_url)
    if url is None and content is not None:
        url = f"{feed_url}#{sha256_hex(ident or content)[:16]}"
    if url is None:
        return None
    title = " ".join(html.unescape(fields.get("title", "")).split())[:_TITLE_CHARS_MAX]
    changed = next((fields[name] for name in _CHANGES if fields.get(name)), "")
    version = changed[:64] or sha256_hex(f"{title}\n{content or ''}")[:16]
    date = next((fields[name] for name in _DATES if fields.get(name)), "")[:64]
    return FeedEntry(
        url=url,
        title=title,
        date=_iso(date),
        version=version,
        content=content,
        summary="" if content else summary,
    )


def _content(fields: dict[str, str]) -> str | None:
    """The full text of an entry as HTML; a summary is none."""
    content = next((fields[name] for name in _FULL if fields.get(name)), None)
    if content is None or fields.get("content src"):
        return None
    if fields.get("content type") == "text" and not fields.get("encoded"):
        return f"<p>{html.escape(content)}</p>"
    return content


def _url(link: str, feed_url: str) -> str | None:
    if not link:
        return None
    try:
        return join_url(parse_url(feed_url), link.strip().replace(" ", "%20")).text
    except Refused:
        return None


def _iso(date: str) -> str:
    """A date of mail, as RSS has them, in ISO 8601; another text as it is."""
    from email.utils import parsedate_to_datetime

    try:
        return parsedate_to_datetime(date).isoformat()
    except (ValueError, IndexError):
        return date
