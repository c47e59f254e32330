"""How is a part of a page written? All that it says as markdown, in order."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from kb.intake.canonicalize.blocks import heading

if TYPE_CHECKING:
    from lxml.html import HtmlElement

_HIDDEN_NAMES: Final = """
    script style noscript template svg head object iframe select textarea input audio video canvas
"""
_BLOCK_NAMES: Final = """
    address article aside blockquote body caption center dd details dialog div dt fieldset
    figcaption figure footer form header hgroup hr html legend li main nav p pre search section
    summary table tbody td tfoot th thead tr
"""
_HIDDEN: Final = frozenset(_HIDDEN_NAMES.split())
_HEADINGS: Final = frozenset(("h1", "h2", "h3", "h4", "h5", "h6"))
_LISTS: Final = frozenset(("ul", "ol", "dl", "menu"))
_BLOCKS: Final = frozenset(_BLOCK_NAMES.split())
_CODE: Final = frozenset(("code", "kbd", "samp", "tt"))
_NEWLINE: Final = "\v"
_BLANKS: Final = re.compile(r"[ \t\r\n\f\xa0]+")
_BREAKS: Final = re.compile(rf" ?{_NEWLINE}[ {_NEWLINE}]*")


def written(part: "HtmlElement") -> str:
    """Headings, lists in lists, terms with what they mean, code in lines and formulas as TeX.

    Emphasis and addresses are left out. Code and tables are expected to be marked before.
    """
    return "\n\n".join(_blocks(part))


def _blocks(element: "HtmlElement") -> Iterator[str]:
    """Markdown of each block in the element; runs of words between blocks are blocks."""
    words: list[str] = [element.text or ""]
    for child in element:
        tag = child.tag if isinstance(child.tag, str) else ""
        if _is_shown(child, tag):
            if tag in _HEADINGS or tag in _LISTS or tag in _BLOCKS:
                yield from _paragraph(words)
                words = []
                yield from _block(child, tag)
            elif _holds_blocks(child):
                yield from _paragraph(words)
                words = []
                yield from _blocks(child)
            else:
                words += _inline(child, tag)
        words.append(child.tail or "")
    yield from _paragraph(words)


def _block(element: "HtmlElement", tag: str) -> Iterator[str]:
    if tag in _HEADINGS:
        if text := heading(int(tag[1]), "".join(_words(element)).replace(_NEWLINE, " ")):
            yield text
    elif tag in _LISTS:
        if items := "\n".join(_items(element, tag)):
            yield items
    else:
        yield from _blocks(element)


def _items(element: "HtmlElement", tag: str) -> Iterator[str]:
    """The items of a list; a term of a list of definitions is an item with its meaning in it."""
    number = 0
    for child in element:
        kind = child.tag if isinstance(child.tag, str) else ""
        if not _is_shown(child, kind):
            continue
        if kind == "div" and tag == "dl":
            yield from _items(child, tag)
            continue
        blocks = _block(child, kind) if kind in _LISTS else _blocks(child)
        text = "\n".join(blocks)
        if not text:
            continue
        if kind == "dd" or kind in _LISTS:
            yield _indented(text)
            continue
        number += 1
        yield (f"{number}. " if tag == "ol" else "- ") + _indented(text).lstrip(" ")


def _indented(text: str) -> str:
    return "\n".join("  " + line if line else line for line in text.split("\n"))


def _paragraph(words: list[str]) -> Iterator[str]:
    text = _BREAKS.sub("\n", _BLANKS.sub(" ", "".join(words))).strip()
    if text:
        # What begins a heading or code in markdown does not do so on the page.
        yield "\\" + text if text.startswith(("#", "```", "~~~")) else text


def _words(element: "HtmlElement") -> Iterator[str]:
    yield element.text or ""
    for child in element:
        tag = child.tag if isinstance(child.tag, str) else ""
        if _is_shown(child, tag):
            yield from _inline(child, tag)
        yield child.tail or ""


def _inline(element: "HtmlElement", tag: str) -> Iterator[str]:
    if tag == "br":
        yield _NEWLINE
    elif tag == "math":
        yield _formula(element)
    elif tag in _CODE:
        text = "".join(_words(element))
        is_plain = text.strip() and "`" not in text and _NEWLINE not in text
        yield f"`{_BLANKS.sub(' ', text).strip()}`" if is_plain else text
    else:
        yield from _words(element)


def _formula(element: "HtmlElement") -> str:
    """The TeX that a formula was made of; without it, its signs."""
    for note in element.iter("annotation"):
        if "tex" in (note.get("encoding") or "").lower() and (note.text or "").strip():
            return f"${_BLANKS.sub(' ', note.text).strip()}$"
    signs = element.xpath(".//text()[not(ancestor::annotation or ancestor::annotation-xml)]")
    return "".join("".join(signs).split())


def _is_shown(element: "HtmlElement", tag: str) -> bool:
    """Whether it is no script, no field, no second form of a formula and no button.

    A heading whose section unfolds is a button in a heading.
    """
    if not tag or tag in _HIDDEN or element.get("aria-hidden") == "true":
        return False
    return tag != "button" or next(element.iterancestors(*_HEADINGS), None) is not None


def _holds_blocks(element: "HtmlElement") -> bool:
    """Whether blocks stand in what is a part of a line, as `<a><div>` has them."""
    return next(element.iter(*_HEADINGS, *_LISTS, *_BLOCKS), None) is not None
