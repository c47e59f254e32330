"""What does a page's markup say to programs? Its links, and whether it wants to be read.

A scan over the tags, linear in the length of the page, that no markup can upset.
"""

import codecs
import html
import re
from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from kb.intake.canonicalize.mime import bom_encoding

LINKS_MAX: Final = 10_000
_HEAD_BYTES: Final = 4_096
_ATTRIBUTES_MAX: Final = 60
_DECLARED: Final = re.compile(rb"""charset\s{0,9}=\s{0,9}["']?([\w.:-]{2,40})""", re.IGNORECASE)
_OPENING: Final = re.compile(
    r"<(!--|(?:a|area|base|frame|link|meta|script|style|template|textarea|title"
    r"|/?(?:nav|header|footer|aside|main|article))(?=[\s/>]))",
    re.IGNORECASE,
)
# What stands around the text of a page, and what holds the text.
_AROUND: Final = frozenset({"nav", "header", "footer", "aside"})
_TEXT: Final = frozenset({"main", "article"})
_ATTRIBUTE: Final = re.compile(
    r"""[\s/]*+([^\s=>/"'<]{1,60})"""
    r"""(?:\s*+=\s*+(?:"([^"]{0,8192})"|'([^']{0,8192})'|([^\s>"']{0,8192})))?"""
)
_HIDDEN: Final = frozenset({"script", "style", "template", "textarea", "title"})
_LINK_KINDS: Final = frozenset({"next", "prev", "alternate"})
_PAGE_TYPES: Final = frozenset({"", "text/html", "application/xhtml+xml", "text/markdown"})


class PageMarkup(Struct, frozen=True, kw_only=True):
    """What a page says to programs."""

    links: tuple[str, ...] = ()
    """References as written, each once; at most LINKS_MAX."""
    text_links: tuple[str, ...] = ()
    """Those of the text: not of the menus, heads and feet around it."""
    base: str | None = None
    canonical: str | None = None
    """Its canonical address as written."""
    noindex: bool = False
    nofollow: bool = False


class _Regions:
    """Which of a page's links stand in its text."""

    def __init__(self) -> None:
        self._around = self._main = 0
        self._in_text: dict[str, None] = {}
        self._in_main: dict[str, None] = {}

    def enter_or_leave(self, tag: str) -> bool:
        """Whether a tag is the beginning or, with a slash, the end of a region."""
        name = tag.removeprefix("/")
        step = 1 if tag == name else -1
        if name in _AROUND:
            self._around = max(0, self._around + step)
        elif name in _TEXT:
            self._main = max(0, self._main + step)
        else:
            return False
        return True

    def link(self, reference: str) -> None:
        """A link stands here."""
        if not self._around:
            (self._in_main if self._main else self._in_text).setdefault(reference)

    @property
    def text_links(self) -> tuple[str, ...]:
        """Those of the main part, if it is named, or else those that are not around it."""
        return tuple(self._in_main or self._in_text)


def read_markup(data: bytes, charset: str | None, robots_tag: str = "") -> PageMarkup:
    """Read a page; `robots_tag` is what its X-Robots-Tag said."""
    links: dict[str, None] = {}
    base = canonical = None
    wishes = set(_tag_wishes(robots_tag))
    regions = _Regions()
    for tag, attributes in _elements(_text(data, charset)):
        if regions.enter_or_leave(tag):
            continue
        href = attributes.get("src" if tag == "frame" else "href", "").strip()
        kinds = attributes.get("rel", "").lower().split()
        match tag:
            case "meta":
                if attributes.get("name", "").strip().lower() in ("robots", "kb"):
                    wishes.update(_wishes(attributes.get("content", "")))
            case "base":
                base = base or href or None
            case "link":
                if "canonical" in kinds:
                    canonical = canonical or href or None
                elif href and _is_page_link(kinds, attributes) and len(links) < LINKS_MAX:
                    links.setdefault(href)
            case _:
                if href and "nofollow" not in kinds and len(links) < LINKS_MAX:
                    links.setdefault(href)
                    regions.link(href)
    return PageMarkup(
        links=tuple(links),
        text_links=regions.text_links,
        base=base,
        canonical=canonical,
        noindex=bool(wishes & {"noindex", "none"}),
        nofollow=bool(wishes & {"nofollow", "none"}),
    )


def _is_page_link(kinds: list[str], attributes: dict[str, str]) -> bool:
    is_page = attributes.get("type", "").strip().lower() in _PAGE_TYPES
    return is_page and bool(_LINK_KINDS.intersection(kinds))


def _wishes(content: str) -> list[str]:
    return [word.strip().lower() for word in content.split(",")]


def _tag_wishes(robots_tag: str) -> Iterator[str]:
    """The wishes for all programs; those behind a program's name are for that one."""
    for word in _wishes(robots_tag):
        agent, colon, wish = word.partition(":")
        if not colon:
            yield word
        elif agent.strip() in ("kb", "*"):
            yield wish.strip()


def _text(data: bytes, charset: str | None) -> str:
    declared = _DECLARED.search(data[:_HEAD_BYTES])
    inside = declared[1].decode("ascii", "replace") if declared else None
    for name in (bom_encoding(data), charset, inside):
        if name and _is_codec(name):
            return data.decode(name, "replace")
    return data.decode("utf-8", "replace")


def _is_codec(name: str) -> bool:
    try:
        return codecs.lookup(name)._is_text_encoding  # noqa: SLF001  else decode() raises
    except (LookupError, ValueError):
        return False


def _elements(page: str) -> Iterator[tuple[str, dict[str, str]]]:
    at = 0
    while (opening := _OPENING.search(page, at)) is not None:
        tag = opening[1].lower()
        if tag == "!--":
            closing = page.find("-->", opening.end())
            at = len(page) if closing < 0 else closing + 3
            continue
        attributes, at = _attributes(page, opening.end())
        if tag in _HIDDEN:
            at = _after(page, at, tag)
        else:
            yield tag, attributes


def _attributes(page: str, at: int) -> tuple[dict[str, str], int]:
    """The attributes of a tag by lower-case name, and where they end."""
    attributes: dict[str, str] = {}
    for _ in range(_ATTRIBUTES_MAX):
        match = _ATTRIBUTE.match(page, at)
        if match is None:
            break
        value = match[2] or match[3] or match[4] or ""
        attributes.setdefault(match[1].lower(), html.unescape(value))
        at = match.end()
    return attributes, at


def _after(page: str, at: int, tag: str) -> int:
    """Past the closing tag; past everything if there is none, so that no scan is repeated."""
    closing = re.compile(f"</{tag}", re.IGNORECASE).search(page, at)
    return len(page) if closing is None else closing.end()
