"""What is in an outline, or in a browser's bookmarks? Headings, and a line for each entry."""

import html
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from kb.errors import Unparsable
from kb.intake.canonicalize.archive import local, parse_xml, without_doctype
from kb.intake.canonicalize.blocks import finish, heading
from kb.intake.canonicalize.decode import clean_text
from kb.intake.canonicalize.html import page_text
from kb.intake.canonicalize.title import one_line
from kb.model.text import Canonical

if TYPE_CHECKING:
    from lxml.etree import _Element

OPML: Final = "text/x-opml"
BOOKMARKS: Final = "text/x-bookmarks"
_HEADINGS_MAX: Final = 4
_ADDRESSES: Final = ("htmlUrl", "url", "xmlUrl")
_MARK: Final = re.compile(
    r"<(?P<tag>h3|a|dd|dl|/dl|title|h1)\b(?P<attributes>[^<>]{0,20000})>(?P<text>[^<]{0,2000})",
    re.IGNORECASE,
)
_HREF: Final = re.compile(r"""\bhref\s{0,3}=\s{0,3}["']([^"'<>]{1,4000})["']""", re.IGNORECASE)
_TAGS: Final = re.compile(r"""\btags\s{0,3}=\s{0,3}["']([^"'<>]{1,500})["']""", re.IGNORECASE)
_SHOWN_ADDRESS_CHARS_MAX: Final = 300


def read(data: bytes, name: str, charset: str | None = None) -> Canonical:  # noqa: ARG001
    """An outline (OPML): entries that have others below them are headings, the others are items.

    Raises:
        Unparsable: it is no outline.
        EmptySource: no entry has a text.
    """
    root = parse_xml(without_doctype(data), name)
    body = root.find("body")
    if local(root) != "opml" or body is None:
        raise Unparsable("it is no outline; export it again", source=name)
    title = root.findtext("head/title") or ""
    return finish(_outline(body, 0), name, OPML, title=title, is_titled=False)


def _outline(parent: "_Element", depth: int) -> Iterator[str]:
    items: list[str] = []
    for entry in parent.iterchildren("outline"):
        text = clean_text(entry.get("text") or entry.get("title") or "").strip()
        address = next((entry.get(key, "") for key in _ADDRESSES if entry.get(key)), "")
        note = clean_text(entry.get("_note") or entry.get("description") or "").strip()
        if len(entry) and depth < _HEADINGS_MAX:
            if items:
                yield "\n".join(items)
                items = []
            yield from (heading(depth + 2, text), note)
            yield from _outline(entry, depth + 1)
            continue
        items.append(_item(text, address, note))
        items += (f"  {line}" for part in _outline(entry, depth + 1) for line in part.split("\n"))
    if items:
        yield "\n".join(filter(str.strip, items))


def read_bookmarks(data: bytes, name: str, charset: str | None = None) -> Canonical:
    """Bookmarks as browsers export them: folders are headings, with the addresses of the pages.

    Raises EmptySource where there is none.
    """
    text, warning = page_text(data, charset)
    blocks: list[str] = []
    depth = 0
    for mark in _MARK.finditer(text):
        words = one_line(html.unescape(mark["text"]))
        match mark["tag"].lower():
            case "dl":
                depth += 1
            case "/dl":
                depth = max(0, depth - 1)
            case "h3" if words:
                blocks.append(heading(min(depth, _HEADINGS_MAX) + 1, words))
            case "dd" if words:
                blocks.append(words)
            case "a":
                address = _HREF.search(mark["attributes"])
                tags = _TAGS.search(mark["attributes"])
                note = f"({html.unescape(tags[1])})" if tags else ""
                blocks.append(_item(words, html.unescape(address[1]) if address else "", note))
    warnings = (warning,) if warning else ()
    return finish(_joined(blocks), name, BOOKMARKS, warnings=warnings, is_titled=False)


def _item(text: str, address: str, note: str) -> str:
    # Pages that were saved as an address are as long as the pages.
    shown = address if len(address) <= _SHOWN_ADDRESS_CHARS_MAX else ""
    said = " ".join(filter(None, (text if text != address else "", shown, note)))
    return f"- {' '.join(said.split())}" if said.strip() else ""


def _joined(blocks: list[str]) -> Iterator[str]:
    """The blocks, items that follow each other as one list."""
    items: list[str] = []
    for block in blocks:
        if block.startswith("- "):
            items.append(block)
            continue
        if items:
            yield "\n".join(items)
            items = []
        yield block
    yield "\n".join(items)
