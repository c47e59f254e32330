"""What of a page must keep its shape? Code and tables go round the extraction, and come back whole.

The extraction of articles is made for prose. It drops code and tables of short pages, runs their
lines together, and drops headings that no prose follows. So each block of code and each table of
data is a paragraph with a name while the page is read, and is put where its name comes out.
"""

import re
import zlib
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from kb.intake.canonicalize.blocks import fenced, table

if TYPE_CHECKING:
    from lxml.html import HtmlElement

_MARKED_MAX: Final = 2_000
# What a paragraph in a block's place says of it, so that it weighs as much.
_WORDS_CHARS_MAX: Final = 2_000
_CELL_CHARS_MAX: Final = 1000
_CELLS_MAX: Final = 200_000
# Of a table's characters, how many may be links: menus are laid out in tables, too.
_LINKS_SHARE_MAX: Final = 0.7
_NO_CELL: Final = frozenset(
    ("table", "pre", "form", "input", "select", "textarea", "article", "section", "h1", "h2", "h3")
)
_FRAME: Final = frozenset(("nav", "aside", "footer", "header", "form", "dialog", "template"))
_FRAME_ROLES: Final = frozenset(
    ("navigation", "complementary", "contentinfo", "banner", "search", "menu", "dialog")
)
_FRAME_NAME: Final = re.compile(
    r"(?:^|[\s_-])(?:nav|navbar|menu|sidebar|footer|breadcrumbs?|related|comments?|share|sharing"
    r"|social|cookies?|promo|advert\w*|ads?|newsletter|toc|widget|popup|modal)(?:$|[\s_-])",
    re.IGNORECASE,
)
_LANGUAGE: Final = re.compile(
    r"(?:^|\s)(?:language|lang|highlight-source|brush:)-?\s?([\w+#-]{1,20})"
)
_LINE_NUMBERS: Final = re.compile(r"[\s\d]*")
_BLANKS: Final = re.compile(r"\s+")
_PROSE: Final = ("p", "li", "h1", "h2", "h3", "h4", "h5", "h6", "blockquote", "dd", "dt")
# A line of the article is known by as many of its letters and digits.
_KEY_CHARS: Final = 60
_NEAR_MAX: Final = 3
_NOT_KEY: Final = re.compile(r"[\W_]+")


class MarkedBlocks(Struct, frozen=True):
    """The blocks of a page by the names that stand for them, in the order of the page."""

    mark: str
    """What all names begin with; it is in no other text of the page."""
    blocks: "list[MarkedBlock]"


class MarkedBlock(Struct, frozen=True):
    """A block of code, or a table."""

    markdown: str
    before: tuple[str, ...]
    """What the nearest texts before it begin with, last one first: its place is found by them."""
    is_framed: bool
    """Whether it stands in a menu, a sidebar or the like."""


def has_frame(tree: "HtmlElement") -> bool:
    """Whether anything on the page is a menu, a sidebar, a foot or the like, by its own account."""
    return any(map(frames, tree.iter("*")))


def mark_blocks(tree: "HtmlElement", page: str) -> MarkedBlocks:
    """Put a paragraph with a name in the place of each block of code and each table of data."""
    mark = f"kbblock{zlib.crc32(page.encode('utf-8', 'replace')):08x}n"
    marked = MarkedBlocks(mark, [])
    if mark in page:
        return marked
    near: list[HtmlElement] = []
    gone: set[HtmlElement] = set()
    for element in list(tree.iter("pre", "table", "div", *_PROSE)):
        if element in gone:
            continue
        if element.tag in _PROSE:
            near = [element, *near[: _NEAR_MAX - 1]]
        elif len(marked.blocks) < _MARKED_MAX and (markdown := _markdown(element)):
            keys = tuple(filter(None, map(_key, near)))
            gone.update(element.iterdescendants())
            block = MarkedBlock(markdown, keys, is_framed(element))
            _replace(element, f"{mark}{len(marked.blocks)}")
            marked.blocks.append(block)
    return marked


def put_back(article: str, marked: MarkedBlocks) -> str:
    """The article with the names of the blocks that it lost, unless they are framed.

    A lost block goes after the text that stands before it on the page, or after the block before
    it; without either it stays lost.
    """
    if not marked.blocks:
        return article
    name_of = re.compile(rf"{marked.mark}(\d+)[xz]")
    lines = article.split("\n")
    line_of = {_NOT_KEY.sub("", lines[at])[:_KEY_CHARS]: at for at in reversed(range(len(lines)))}
    block_line = {int(n): at for at in range(len(lines)) for n in name_of.findall(lines[at])}
    after: dict[int, list[str]] = {}
    for number, block in enumerate(marked.blocks):
        if number in block_line or block.is_framed:
            continue
        at = next((line_of[key] for key in block.before if key in line_of), None)
        if number and marked.blocks[number - 1].before == block.before:
            at = block_line.get(number - 1, at)
        if at is not None:
            block_line[number] = at
            after.setdefault(at, []).append(_named(f"{marked.mark}{number}", ""))
    return "\n".join(
        "\n\n".join((line, *after[at], "")) if at in after else line
        for at, line in enumerate(lines)
    )


def shown(text: str, marked: MarkedBlocks) -> str:
    """The text with each name replaced by its block."""
    if marked.mark not in text:
        return text
    lines = [
        _shown_line(line, marked) if marked.mark in line else line for line in text.split("\n")
    ]
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines))


def _named(name: str, words: str) -> str:
    return f"{name}x {words} {name}z" if words else f"{name}x {name}z"


def _shown_line(line: str, marked: MarkedBlocks) -> str:
    """A line with names, its blocks on lines of their own."""
    parts: list[str] = []
    at = 0
    for match in re.finditer(
        rf"{marked.mark}(\d+)x(?:(?!{marked.mark}).)*(?:{marked.mark}\1z)?", line
    ):
        parts += (line[at : match.start()], "")
        number = int(match[1])
        if number < len(marked.blocks):
            parts[-1] = marked.blocks[number].markdown
        at = match.end()
    parts.append(re.sub(rf"{marked.mark}\d+[xz]", "", line[at:]))
    kept = [parts[i].strip() if i % 2 == 0 else parts[i] for i in range(len(parts))]
    if line.lstrip().startswith("|"):
        # A layout's table is left with its bars alone.
        kept = [text.strip("| ") if i % 2 == 0 else text for i, text in enumerate(kept)]
    whole = "\n\n".join(text for text in kept if text and text != "-")
    return f"\n{whole}\n"


def _key(element: "HtmlElement") -> str:
    return _NOT_KEY.sub("", _text(element)[: 4 * _KEY_CHARS])[:_KEY_CHARS]


def _text(element: "HtmlElement") -> str:
    return "".join(element.xpath(".//text()[not(parent::script or parent::style)]"))


def _replace(element: "HtmlElement", name: str) -> None:
    """Make a paragraph of the element that has its name, its words and its tail."""
    words = _BLANKS.sub(" ", _text(element))[:_WORDS_CHARS_MAX].strip()
    tail = element.tail
    element.clear()
    element.tag = "p"
    element.text = _named(name, words)
    element.tail = tail


def _markdown(element: "HtmlElement") -> str:
    """The block of code or the table; empty for what is neither."""
    if element.tag == "div":
        return _code_of_lines(element)
    return _code(element) if element.tag == "pre" else _table(element)


def _code_of_lines(element: "HtmlElement") -> str:
    """The code of Doxygen, which has a block for each line; empty for any other block."""
    if "fragment" not in (element.get("class") or "").split():
        return ""
    lines = [line for line in element.iterchildren("div") if line.get("class") == "line"]
    texts = []
    for line in lines:
        numbers = line.xpath(".//span[contains(@class, 'lineno')]")
        texts.append(_text(line).removeprefix(_text(numbers[0]) if numbers else ""))
    return fenced("\n".join(texts).replace("\xa0", " "), "") if any(texts) else ""


def _code(element: "HtmlElement") -> str:
    for line_break in element.iter("br"):
        line_break.tail = "\n" + (line_break.tail or "")
    text = _text(element).replace("\xa0", " ")
    if not text.strip() or _LINE_NUMBERS.fullmatch(text):
        return ""
    lines = [line.rstrip() for line in text.expandtabs(4).strip("\n").split("\n")]
    return fenced("\n".join(lines), _language(element))


def _language(element: "HtmlElement") -> str:
    for node in (element, *element.iterchildren("code"), *element.iterancestors("div")):
        if match := _LANGUAGE.search(node.get("class") or ""):
            return match[1].lower()
        if node.tag == "div":
            break
    return ""


def _table(element: "HtmlElement") -> str:
    """A table of data: rows of short cells, of more than one column, that are not all links."""
    if (element.get("role") or "").lower() in ("presentation", "none"):
        return ""
    rows = [[_cell(cell) for cell in row.iterchildren("td", "th")] for row in _rows(element)]
    rows = [row for row in rows if any(row)]
    if len(rows) < 2 or sum(map(len, rows)) > _CELLS_MAX:
        return ""
    if max(map(len, rows)) < 2 or sum(len(row) > 1 for row in rows) <= len(rows) / 2:
        return ""
    chars = sum(len(cell) for row in rows for cell in row)
    if max(len(cell) for row in rows for cell in row) > _CELL_CHARS_MAX or not chars:
        return ""
    if next(element.iterdescendants(*_NO_CELL), None) is not None:
        return ""
    links = sum(len(_line(link)) for link in element.iter("a"))
    if links > _LINKS_SHARE_MAX * chars:
        return ""
    caption = next((_line(found) for found in element.iterchildren("caption")), "")
    return "\n\n".join(filter(None, (caption, table(rows))))


def _rows(element: "HtmlElement") -> Iterator["HtmlElement"]:
    for child in element.iterchildren("tr", "thead", "tbody", "tfoot"):
        if child.tag == "tr":
            yield child
        else:
            yield from child.iterchildren("tr")


def _cell(cell: "HtmlElement") -> str:
    for block in cell.iterdescendants("br", "p", "div", "li"):
        block.tail = " " + (block.tail or "")
    return _line(cell)


def _line(element: "HtmlElement") -> str:
    return " ".join(_text(element).split())


def is_framed(element: "HtmlElement", *, but: str = "") -> bool:
    """Whether it stands in a menu, a sidebar, a foot or the like, `but` being no such tag."""
    for above in element.iterancestors():
        if above.tag in ("body", "main", "article"):
            return False
        if above.tag != but and frames(above):
            return True
    return False


def frames(element: "HtmlElement") -> bool:
    """Whether its tag, its role or its name says that it is round the text."""
    names = f"{element.get('class') or ''} {element.get('id') or ''}"
    return (
        element.tag in _FRAME
        or (element.get("role") or "").lower() in _FRAME_ROLES
        or _FRAME_NAME.search(names) is not None
    )
