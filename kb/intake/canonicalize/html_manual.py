"""Which part of a page of a manual, or of a page of contents, is its text? All of it is wanted.

An extraction of articles takes lists of links for menus, and sections with many links or much code
for what is round the article. So what such a page declares to be its text is written as it stands.
"""

import copy
from itertools import islice
from typing import TYPE_CHECKING, Final

from kb.intake.canonicalize.html_blocks import frames

if TYPE_CHECKING:
    from lxml.html import HtmlElement

# Programs that make manuals, as the pages that they make name them.
_PROGRAMS: Final = (
    *("asciidoc", "docbook", "docusaurus", "docutils", "doxygen", "gnu texinfo", "gtk-doc"),
    *("javadoc", "latex2html", "makeinfo", "mdbook", "mkdocs", "pdoc", "publican", "rustdoc"),
    *("sphinx", "tex4ht", "vitepress", "yard"),
)
_PATHS: Final = {"doxygen": ".//div[@class='contents']"}
_HEADINGS: Final = ("h1", "h2", "h3", "h4", "h5", "h6")
_NEVER_TEXT: Final = frozenset(
    ("nav", "footer", "form", "dialog", "template", "navigation", "contentinfo", "search", "menu")
)
_MARKS_MAX: Final = 2
# Links to the next page and the like stand in a block with little else.
_TURNS: Final = frozenset(("prev", "previous", "next", "up", "home", "index", "contents", "start"))
_TURN_KEYS: Final = frozenset("pnuh")
_TURN_CHARS_MAX: Final = 300
_TURN_WORDS_CHARS_MAX: Final = 100
# Of a page of contents, so much of its text is links.
_CONTENTS_SHARE_MIN: Final = 0.6
_CONTENTS_LINKS_MIN: Final = 5


def manual_part(tree: "HtmlElement") -> "HtmlElement | None":
    """What holds the text of a page of a manual; None on any other page.

    A manual is told by the program that made it, or by headings that link to themselves.
    """
    named = [heading for heading in tree.iter(*_HEADINGS) if _links_itself(heading)]
    program = next(filter(None, map(_program, tree.iter("meta"))), "")
    if not named and not program:
        return None
    if program in _PATHS:
        return tree.find(_PATHS[program])
    shared = _shared([*filter(_is_own, tree.iter("h1")), *named] if named else [])
    if shared is None or shared.tag == "body":
        declared = _declared(tree) if program else None
        return tree.find("body") if declared is None and program else declared
    # The innermost one: a page may have a main part with an article in it.
    above = (shared, *shared.iterancestors())
    return next((part for part in above if _is_declared(part)), shared)


def _declared(tree: "HtmlElement") -> "HtmlElement | None":
    """The one main part, or else the one article, that a page has."""
    parts = [part for part in tree.iter("main", "article", "div", "section") if _is_declared(part)]
    mains = [part for part in parts if part.tag != "article"]
    return next((found[0] for found in (mains, parts) if len(found) == 1), None)


def _is_declared(part: "HtmlElement") -> bool:
    return part.tag in ("main", "article") or part.get("role") == "main"


def without_frame(part: "HtmlElement") -> None:
    """Take what is round the text out of a part: menus, feet, links to the next page.

    A list of contents whose links lead to other pages stays.
    """
    _make_known(part)
    blocks = [_turning_block(link, part) for link in part.iter("a") if _turns_page(link)]
    framed = [element for element in part.iterdescendants() if _is_framed(element)]
    for element in (*(block for block in blocks if block is not None), *framed):
        if part in element.iterancestors():
            element.drop_tree()


def contents_part(tree: "HtmlElement", *, is_plain: bool) -> "HtmlElement | None":
    """A copy of the main part of a page that is mostly links, without frame; else None.

    A page that declares no main part needs to be plain: else menus could be its links.
    """
    declared = _declared(tree)
    part = tree.find("body") if declared is None and is_plain else declared
    if part is None:
        return None
    links = [link for link in part.iter("a") if any(map(str.strip, link.itertext()))]
    if len(links) < _CONTENTS_LINKS_MIN or not _is_contents(part):
        return None
    part = copy.deepcopy(part)
    without_frame(part)
    return part if _is_contents(part) else None


def _is_contents(part: "HtmlElement") -> bool:
    return _linked_chars(part) >= _CONTENTS_SHARE_MIN * _chars(part)


def _links_itself(heading: "HtmlElement") -> bool:
    """Whether a link in the heading leads to the heading, or to the section that it opens."""
    for link in heading.iter("a"):
        target = link.get("href") or ""
        if len(target) > 1 and target[0] == "#":
            # Or to a mark that stands before it.
            before = islice(heading.itersiblings(preceding=True), _MARKS_MAX)
            above = islice(heading.iterancestors(), 1)
            places = (*above, *before, *heading.iter())
            return target[1:] in {e.get(name) for e in places for name in ("id", "name")}
    return False


def _is_own(heading: "HtmlElement") -> bool:
    """Whether the heading is of this page, and no link to another one, as the site's name is."""
    return all((link.get("href") or "#").startswith("#") for link in heading.iter("a"))


def _program(meta: "HtmlElement") -> str:
    if (meta.get("name") or "").lower() != "generator":
        return ""
    program = (meta.get("content") or "").lower()
    return next((name for name in _PROGRAMS if program.startswith(name)), "")


def _shared(headings: "list[HtmlElement]") -> "HtmlElement | None":
    """The innermost element that holds all headings with what follows them."""
    if not headings:
        return None
    lines = [list(heading.iterancestors())[::-1] for heading in headings]
    shared = lines[0]
    for line in lines[1:]:
        count = next(
            (
                at
                for at, pair in enumerate(zip(shared, line, strict=False))
                if pair[0] is not pair[1]
            ),
            min(len(shared), len(line)),
        )
        shared = shared[:count]
    while len(shared) > 1 and shared[-1].tag in ("header", "hgroup", *_HEADINGS):
        shared.pop()
    return shared[-1] if shared else None


def _is_framed(element: "HtmlElement") -> bool:
    """Whether it is round the text by its tag or role, or by its name and since it is links.

    A note in a manual may be called a sidebar, and a section that is about menus is no menu.
    """
    if not isinstance(element.tag, str) or not frames(element):
        return False
    role = (element.get("role") or "").lower()
    if element.tag in _NEVER_TEXT or role in _NEVER_TEXT:
        return True
    return not any(map(_opens_section, element.iter(*_HEADINGS))) and _is_of_links(element)


def _opens_section(heading: "HtmlElement") -> bool:
    return heading.tag == "h1" or _links_itself(heading)


def _is_list_of_contents(element: "HtmlElement") -> bool:
    names = f"{element.get('class') or ''} {element.get('id') or ''}".split()
    return "toc" in names


def _is_of_links(element: "HtmlElement") -> bool:
    """Whether it is a menu of this page: most of it is links, and they lead to places of it."""
    is_list = _is_list_of_contents(element)
    leads_away = any(not (link.get("href") or "#").startswith("#") for link in element.iter("a"))
    return 2 * _linked_chars(element) > _chars(element) and not (is_list and leads_away)


def _chars(element: "HtmlElement") -> int:
    chars = sum(len(text.strip()) for text in element.itertext())
    return chars - sum(len((code.text or "").strip()) for code in element.iter("script", "style"))


def _linked_chars(element: "HtmlElement") -> int:
    return sum(map(_chars, element.iter("a")))


def _turns_page(link: "HtmlElement") -> bool:
    rels = frozenset((link.get("rel") or "").lower().split())
    return not _TURNS.isdisjoint(rels) or (link.get("accesskey") or "").lower() in _TURN_KEYS


def _turning_block(link: "HtmlElement", part: "HtmlElement") -> "HtmlElement | None":
    """The largest block round a link that holds little but links."""
    block = None
    for above in link.iterancestors():
        if above is part or next(above.iter(*_HEADINGS), None) is not None:
            break
        chars = _chars(above)
        if chars > _TURN_CHARS_MAX or chars - _linked_chars(above) > _TURN_WORDS_CHARS_MAX:
            break
        block = above
    return block


def _make_known(part: "HtmlElement") -> None:
    """Make tables and signatures of Javadoc and Doxygen such as are known by their tags."""
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
