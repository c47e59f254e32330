"""Which markup of a page is layout alone? It is taken away before the page is read."""

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from lxml.html import HtmlElement

# What holds the text on a page of a reference, by the program that made the page.
_REFERENCES: Final = {
    "javadoc": ".//main",
    "doxygen": ".//div[@class='contents']",
}
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


def reference_part(tree: "HtmlElement") -> "HtmlElement | None":
    """What holds the text of a page that Javadoc or Doxygen made; None on any other page.

    All of it is wanted, though it is no prose, which an extraction of articles drops. Its tables
    and signatures become such as are known by their tags.
    """
    path = next(filter(None, map(_path, tree.iter("meta"))), "")
    part = tree.find(path) if path else None
    if part is None:
        return None
    for tabs in part.xpath(".//*[@role='tablist']"):
        tabs.drop_tree()
    for grid in part.iterfind(".//div"):
        if "summary-table" in (grid.get("class") or "").split():
            _make_table(grid)
    for table in list(part.iter("table")):
        if table.get("class") == "memname":
            _make_code(table)
        elif table.get("class") == "memberdecls":
            for heading in table.iter(*_HEADINGS):
                heading.tag = "b"
    return part


def _path(meta: "HtmlElement") -> str:
    if (meta.get("name") or "").lower() != "generator":
        return ""
    program = (meta.get("content") or "").lower()
    return next((path for name, path in _REFERENCES.items() if program.startswith(name)), "")


def _make_table(grid: "HtmlElement") -> None:
    """A table of the grid's cells, of which each row ends with one of a class of its own."""
    cells = list(grid)
    row = None
    for cell in cells:
        if row is None:
            row = grid.makeelement("tr")
            grid.append(row)
        row.append(cell)
        cell.tag = "td"
        if "col-last" in (cell.get("class") or "").split():
            row = None
    grid.tag = "table"


def _make_code(table: "HtmlElement") -> None:
    """One line of code of the cells of a signature."""
    line = " ".join("".join(table.itertext()).split())
    tail = table.tail
    table.clear()
    table.tag = "pre"
    table.text = line
    table.tail = tail
