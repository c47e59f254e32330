"""What does the HTML of a mail say? Its text, with quotes marked as those of plain mails are."""

import contextlib
import re
from typing import TYPE_CHECKING, Final

from kb.errors import EmptySource
from kb.intake.canonicalize import html
from kb.intake.canonicalize.mail_history import (
    EARLIER_MAX,
    INTRODUCTION_CHARS_MAX,
    introduces,
)
from kb.intake.canonicalize.visible import visible_text

if TYPE_CHECKING:
    from lxml.html import HtmlElement

_SHOWN_CHARS_MAX: Final = 4 << 20
_QUOTES_MAX: Final = 200
# What stands in the place of a quote while the page is read.
_NAME: Final = "kbquotedmail"
_PLACE: Final = re.compile(rf"(?:^`{{3,}}\n)?{_NAME}(\d+)z(?:\n`{{3,}}$)?", re.MULTILINE)
_SAME_SHARE: Final = 1.25
_NODES_MAX: Final = 50
_BREAKS: Final = ("pre", "br", "div", "p", "blockquote", "table", "ul", "ol", "hr")


def read_page(data: bytes, name: str, charset: str | None) -> str:
    """The page as markdown; each line of a quote begins with as many `>` as it is deep.

    May be empty.
    """
    return _PageReader(name).read(html.page_text(data, charset)[0], EARLIER_MAX)


def page_words(page: str) -> str:
    """What the page shows, as text."""
    return visible_text(page[:_SHOWN_CHARS_MAX])


class _PageReader:
    """Reads a page, and each of its quotes as a page of its own."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._left = _QUOTES_MAX

    def read(self, page: str, depth: int) -> str:
        """The page as markdown, quotes down to a depth marked as such."""
        page, quotes = self._with_places(page, depth)
        markdown = ""
        with contextlib.suppress(EmptySource):
            markdown = html.read(page.encode("utf-8", "replace"), self._name, "utf-8").markdown
        if not quotes:
            return markdown
        seen = visible_text(page)
        if _ink(seen) > _SAME_SHARE * _ink(markdown):
            # A short answer above a quote is no article.
            markdown = seen
        parts: list[str] = []
        at = 0
        for place in _PLACE.finditer(markdown):
            parts += (markdown[at : place.start()], quotes.pop(int(place[1]), ""))
            at = place.end()
        # What the page lost comes last.
        parts += (markdown[at:], *quotes.values())
        return re.sub(r"\n{3,}", "\n\n", "\n\n".join(parts)).strip("\n")

    def _with_places(self, page: str, depth: int) -> tuple[str, dict[int, str]]:
        """The page with a number in place of each quote, and the quotes as lines with `>`."""
        if ("<blockquote" not in page.lower() and "yahoo_quoted" not in page) or _NAME in page:
            return page, {}
        from lxml import etree
        from lxml import html as lxml_html

        quotes: dict[int, str] = {}
        with contextlib.suppress(etree.LxmlError, ValueError, AssertionError):
            parser = lxml_html.HTMLParser(encoding="utf-8", recover=True, no_network=True)
            tree = lxml_html.document_fromstring(page.encode("utf-8", "replace"), parser=parser)
            for link in tree.xpath(".//a[starts-with(@href, 'mailto:')]"):
                link.drop_tag()
            for number, quote in enumerate(_quotes(tree)[: self._left]):
                introduction = _taken_introduction(quote)
                text = self._quote(quote, depth)
                lines = [f"> {line}".rstrip() for line in text.split("\n")]
                place = etree.Element("pre")
                place.text, place.tail = f"{_NAME}{number}z", quote.tail
                quote.getparent().replace(quote, place)
                quotes[number] = "\n".join([introduction, "", *lines] if introduction else lines)
            return _source(tree), quotes
        return page, {}

    def _quote(self, quote: "HtmlElement", depth: int) -> str:
        if not depth or not self._left:
            return page_words(_source(quote))
        self._left -= 1
        # As a quote it would be found again.
        quote.tag = "div"
        quote.attrib.pop("class", None)
        return self.read(_source(quote), depth - 1).strip("\n")


def _ink(text: str) -> int:
    return sum(map(len, text.split()))


def _quotes(tree: "HtmlElement") -> "list[HtmlElement]":
    """The quotes that are in no other."""
    quotes: list[HtmlElement] = []
    for element in tree.iter("blockquote", "div"):
        is_quote = element.tag == "blockquote" or "yahoo_quoted" in (element.get("class") or "")
        if is_quote and not any(above in quotes[-1:] for above in element.iterancestors()):
            quotes.append(element)
            if len(quotes) == _QUOTES_MAX:
                break
    return [quote for quote in quotes if quote.getparent() is not None]


def _taken_introduction(quote: "HtmlElement") -> str:
    """What stands above a quote on its line and says who wrote it; it is taken out of the page."""
    line: list[HtmlElement] = []
    said, node = "", quote.getprevious()
    while node is not None:
        if len(said) > INTRODUCTION_CHARS_MAX or len(line) == _NODES_MAX:
            return ""
        is_break = node.tag in _BREAKS
        said = (node.tail or "") + said
        if is_break and said.strip():
            break
        if is_break and len(page_words(_source(node)).splitlines()) > 1:
            return ""
        said = "".join(node.itertext()) + said
        line.append(node)
        if is_break and said.strip():
            break
        node = node.getprevious()
    if node is None:
        said = (quote.getparent().text or "") + said
    if not introduces(said := " ".join(said.split())):
        return ""
    if node is None:
        quote.getparent().text = None
    else:
        node.tail = None
    for element in line:
        # Without its tail, which is part of the line.
        element.tail = None
        element.drop_tree()
    return said


def _source(element: "HtmlElement") -> str:
    from lxml import html as lxml_html

    return str(lxml_html.tostring(element, encoding="unicode", with_tail=False))
