"""Which markup of a page is layout alone? It is taken away before the page is read."""

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from lxml.html import HtmlElement

_NAVIGATION: Final = (
    ".//nav | .//*[@role='navigation'] | .//div[@class='navheader' or @class='navfooter']"
)
# A page with less text beside its menus is a menu.
_THIN_CHARS: Final = 50
_HEADINGS: Final = ("h1", "h2", "h3", "h4", "h5", "h6")


def without_layout(tree: "HtmlElement") -> bool:
    """Take away menus, signs of links and lists of sections; say whether any was there.

    `¶` beside a heading is no word of it. A list whose items all hold headings gives a page its
    look; its sections are none the less sections.
    """
    menus = tree.xpath(_NAVIGATION)
    inside = set(menus)
    outer = [menu for menu in menus if inside.isdisjoint(menu.iterancestors())]
    if outer and _chars(tree.find("body")) - sum(map(_chars, outer)) < _THIN_CHARS:
        outer = []
    for menu in outer:
        menu.drop_tree()
    signs = [link for link in tree.iter("a") if _is_sign(link)]
    for link in signs:
        link.drop_tree()
    layout = [found for found in tree.iter("ul", "ol") if _is_of_sections(found)]
    for element in layout:
        for item in element.iterchildren("li"):
            item.tag = "div"
        element.tag = "div"
    return bool(outer or signs or layout)


def _chars(element: "HtmlElement | None") -> int:
    if element is None:
        return 0
    texts = element.xpath(".//text()[not(parent::script or parent::style)]")
    return sum(len(text.strip()) for text in texts)


def _is_sign(link: "HtmlElement") -> bool:
    """Whether the link leads to a place of the page, and says nothing."""
    if not (link.get("href") or "").startswith("#"):
        return False
    text = "".join(link.itertext()).strip()
    return bool(text) and not any(map(str.isalnum, text))


def _is_of_sections(element: "HtmlElement") -> bool:
    items = list(element.iterchildren("li"))
    return bool(items) and all(next(item.iter(*_HEADINGS), None) is not None for item in items)
