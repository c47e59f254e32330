"""When was a page published? As it states in so many words, or as it marks by its title."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from kb.intake.canonicalize.dates import date_in, iso_date
from kb.intake.canonicalize.html_blocks import is_framed
from kb.intake.canonicalize.title import one_line

if TYPE_CHECKING:
    from lxml.html import HtmlElement

_META: Final = (
    "article:published_time",
    "og:published_time",
    "datepublished",
    "citation_publication_date",
    "dc.date",
    "dc.date.issued",
    "dcterms.issued",
    "dcterms.created",
    "dc.date.created",
    "pubdate",
    "publishdate",
    "date",
)
_PUBLISHED: Final = frozenset(("published", "dt-published"))
_JSON_DATE: Final = re.compile(r'"datePublished"\s{0,20}:\s{0,20}"([^"\n]{4,40})"')
_SCRIPT_CHARS_MAX: Final = 262_144
_LATER: Final = re.compile(r"updat|modif|expire|start|end\b|event|deadline", re.IGNORECASE)
# What a line is called that says who wrote a text, and when.
_BYLINE: Final = re.compile(
    r"(?:^|[\s_-])(?:date|dateline|byline|posted|posted-?on|published|pub-?date|timestamp"
    r"|(?:post|entry|article)-?(?:date|meta|info|time))(?:$|[\s_-])",
    re.IGNORECASE,
)
_BYLINE_CHARS_MAX: Final = 200
_BYLINES_MAX: Final = 100
_TIMES_MAX: Final = 1_000


def published(tree: "HtmlElement", metas: dict[str, str]) -> str | None:
    """The day or moment of publication; None where the page states none or marks several days."""
    stated = [metas[key] for key in _META if key in metas]
    for script in tree.iter("script"):
        if (script.get("type") or "").lower() == "application/ld+json":
            stated += _JSON_DATE.findall((script.text or "")[:_SCRIPT_CHARS_MAX])[:1]
    for element in tree.iter("time"):
        if element.get("pubdate") is not None or element.get("itemprop") == "datePublished":
            stated.append(element.get("datetime") or "")
    if date := next(filter(None, map(iso_date, stated)), None):
        return date
    for marked in (list(_marked(tree)), list(_times(tree)), list(_bylines(tree))):
        if marked:
            return _of_one_day(marked) or _by_title(tree, marked)
    return None


def _marked(tree: "HtmlElement") -> "Iterator[tuple[HtmlElement, str]]":
    """What microformats or microdata mark as the date of publication."""
    for element in tree.xpath(".//*[@itemprop='datePublished' or contains(@class, 'published')]"):
        classes = (element.get("class") or "").split()
        if element.get("itemprop") is None and _PUBLISHED.isdisjoint(classes):
            continue
        attributes = (element.get(name) for name in ("datetime", "content", "title"))
        stated = next(filter(None, attributes), None) or one_line("".join(element.itertext()))
        if date := iso_date(stated):
            yield element, date


def _times(tree: "HtmlElement") -> "Iterator[tuple[HtmlElement, str]]":
    """The moments of the text, but for those when it was changed, or when something takes place."""
    for element in list(tree.iter("time"))[:_TIMES_MAX]:
        stated = element.get("datetime") or one_line("".join(element.itertext()))
        date = iso_date(stated)
        if date and len(date) >= len("2020-01-01") and not _is_later(element):
            yield element, date


def _bylines(tree: "HtmlElement") -> "Iterator[tuple[HtmlElement, str]]":
    """Short lines that are called after a date or an author, with the date in them."""
    seen = 0
    for element in tree.iter("div", "p", "span", "li", "small", "address", "em", "i", "td"):
        if not _BYLINE.search(f"{element.get('class') or ''} {element.get('id') or ''}"):
            continue
        seen += 1
        if seen > _BYLINES_MAX:
            return
        text = " ".join("".join(element.itertext()).split())
        date = date_in(text) if len(text) <= _BYLINE_CHARS_MAX else None
        if date and not _is_later(element) and not _LATER.search(text):
            yield element, date


def _is_later(element: "HtmlElement") -> bool:
    names = (element.get(name) or "" for name in ("class", "id", "itemprop"))
    # The head of a text is a part of it.
    return _LATER.search(" ".join(names)) is not None or is_framed(element, but="header")


def _of_one_day(marked: "list[tuple[HtmlElement, str]]") -> str | None:
    return marked[0][1] if len({date[:10] for _, date in marked}) == 1 else None


def _by_title(tree: "HtmlElement", marked: "list[tuple[HtmlElement, str]]") -> str | None:
    """The date in the smallest part round the page's one title that has any."""
    titles = list(tree.iter("h1"))
    if len(titles) != 1:
        return None
    above_of = [({element, *element.iterancestors()}, date) for element, date in marked]
    for part in titles[0].iterancestors():
        near = {date[:10]: date for above, date in reversed(above_of) if part in above}
        if near:
            return next(iter(near.values())) if len(near) == 1 else None
    return None
