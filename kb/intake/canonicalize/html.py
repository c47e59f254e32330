"""What does a page say? Its article as markdown; all its text where no article can be found."""

import contextlib
import re
from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING, Final

from kb.errors import EmptySource
from kb.intake.canonicalize.decode import clean_text, decode_text, has_text
from kb.intake.canonicalize.html_blocks import has_frame, mark_blocks, put_back, shown
from kb.intake.canonicalize.html_date import published
from kb.intake.canonicalize.html_layout import without_layout
from kb.intake.canonicalize.html_manual import contents_part, manual_part, without_frame
from kb.intake.canonicalize.html_written import written
from kb.intake.canonicalize.title import fallback_title, one_line
from kb.intake.canonicalize.visible import visible_text
from kb.model.text import Canonical

if TYPE_CHECKING:
    from lxml.html import HtmlElement

_DECLARATION_BYTES: Final = 4096
_CHARSET: Final = re.compile(
    rb"""(?:charset|encoding)\s{0,9}=\s{0,9}["']?\s{0,9}([\w:.-]{2,40})""", re.IGNORECASE
)

_THIN_CHARS: Final = 50
_SAME_SHARE: Final = 1.25
_HEADING: Final = re.compile(r"^#{1,6} ", re.MULTILINE)
# A cell of more characters may hold a page, not a datum.
_LAYOUT_CELL_CHARS: Final = 1000
# Between a page's name and its site's: a mark with blanks round it, or a colon.
_SEPARATOR: Final = re.compile(r"(?:\s+[|/~•·»«›‹–—:-]+|:)\s+")
_ENDS_SEPARATED: Final = re.compile(r"(?:\s[|/~•·»«›‹–—:-]{1,9}|:)\s$")
_HOME: Final = re.compile(r"(?:https?://[^/?#]*)?/?(?:index\.\w{1,9})?", re.IGNORECASE)
_HEADINGS_MAX: Final = 200
_ALL_KEPT: Final = "it is nested too deeply, or too large; all its text was kept, not the article"
# A span of code, or a sign with the backslashes that trafilatura put before it.
_ESCAPED: Final = re.compile(r"\\+`|`[^`]*`|(?P<escaped>\\+[*_~\[\]<])")
_LOUD: Final = ("trafilatura", "courlan", "htmldate", "justext", "charset_normalizer")


def read(data: bytes, name: str, charset: str | None = None) -> Canonical:
    """The page's main text as markdown, its title, and its date where the page itself states one.

    Links keep their words and lose their addresses, which would outweigh the words in every
    search. `charset` is what the server declares.

    Raises:
        EmptySource: no text is visible on it.
    """
    text, warning = page_text(data, charset)
    page = clean_text(text)
    tree, is_whole = _parse(page)
    markdown = clean_text(_markdown(page, tree if is_whole else None)).strip("\n") + "\n"
    warnings = [warning] if warning else []
    if not is_whole:
        warnings.append(_ALL_KEPT)
    if not has_text(markdown):
        raise EmptySource("no text is visible on the page; it may be made by a script", source=name)
    return Canonical(
        markdown=markdown,
        title=(_title(tree) if tree is not None else "") or fallback_title(name, markdown),
        mime="text/html",
        date=published(tree, _meta(tree)) if tree is not None else None,
        warnings=tuple(warnings),
    )


def _markdown(page: str, tree: "HtmlElement | None") -> str:
    if tree is None:
        return visible_text(page)
    from lxml import html as lxml_html

    is_plain = not has_frame(tree)
    # Before the signs of links go, by which it is known.
    manual = manual_part(tree)
    if manual is not None:
        without_frame(manual)
    is_changed = without_layout(tree)
    marked = mark_blocks(tree, page)
    if manual is not None and len(text := written(manual)) >= _THIN_CHARS:
        return shown(text, marked)
    contents = contents_part(tree, is_plain=is_plain)
    article = put_back(_article(tree, is_plain=is_plain), marked)
    if len(article) < _THIN_CHARS or not _HEADING.search(article):
        if is_changed or marked.blocks:
            page = lxml_html.tostring(tree, encoding="unicode")
        article = _fuller(article, visible_text(page))
    if contents is not None:
        article = _listed(article, written(contents))
    return shown(article, marked)


def whole_text(page: str) -> str:
    """All that a page says as markdown, when no part of it is round the text, as in a book."""
    tree, is_whole = _parse(clean_text(page))
    body = tree.find("body") if tree is not None and is_whole else None
    if tree is None or body is None:
        return visible_text(page)
    marked = mark_blocks(tree, page)
    return shown(written(body), marked)


def _listed(article: str, contents: str) -> str:
    """The contents, unless the article is so much of them that the rest may be round it."""
    is_article = _ink(contents) / 2 <= _ink(article) <= _ink(contents) / _SAME_SHARE
    return article if is_article else contents


def _fuller(article: str, seen: str) -> str:
    """The article; all text where that is next to nothing.

    A page without frills gets the headings back that its article lost.
    """
    if len(article) < _THIN_CHARS:
        return seen or article
    if _ink(seen) > _SAME_SHARE * _ink(article):
        return article
    return _with_headings(article, seen)


def _with_headings(article: str, seen: str) -> str:
    """The article with the headings that stand before its lines on the page."""
    lines = article.split("\n")
    places = {_letters(line): at for at, line in reversed(list(enumerate(lines))) if line.strip()}
    above: dict[int, list[str]] = {}
    pending: list[str] = []
    for line in seen.split("\n"):
        key = _letters(line)
        at = places.get(key)
        if _HEADING.match(line):
            if at is None:
                pending.append(line)
                continue
            lines[at] = line
        if at is not None and pending:
            above.setdefault(at, []).extend(pending)
            pending = []
    return "\n".join(
        "".join(f"{heading}\n\n" for heading in above.get(at, ())) + line
        for at, line in enumerate(lines)
    )


def _letters(line: str) -> str:
    """What a line is known by, whatever marks it has."""
    return "".join(filter(str.isalnum, line))


def _ink(text: str) -> int:
    """Characters that are not white space."""
    return sum(map(len, text.split()))


def page_text(data: bytes, charset: str | None = None) -> tuple[str, str | None]:
    """Text of a page, and a warning; of `charset` and what the page itself declares the first fits.

    A declaration often outlives a change of encoding: see `decode_text` for what goes before it.
    """
    declaration = _CHARSET.search(data[:_DECLARATION_BYTES])
    declared = (charset, declaration[1].decode("ascii", "replace") if declaration else None)
    return decode_text(data, tuple(filter(None, declared)))


def _parse(page: str) -> "tuple[HtmlElement | None, bool]":
    """The tree, and whether it holds the whole page: libxml2 stops at 256 levels or 10 MB."""
    from lxml import etree
    from lxml import html as lxml_html

    parser = lxml_html.HTMLParser(
        encoding="utf-8",
        recover=True,
        huge_tree=False,
        no_network=True,
        remove_comments=True,
        remove_pis=True,
        collect_ids=False,
    )
    tree: HtmlElement | None = None
    with contextlib.suppress(etree.LxmlError, ValueError, AssertionError):
        tree = lxml_html.document_fromstring(page.encode("utf-8"), parser=parser)
    fatal = {entry.type_name for entry in parser.error_log if entry.level_name == "FATAL"}
    if "ERR_NO_MEMORY" in fatal:
        raise MemoryError
    return tree, tree is not None and not fatal


def _is_laid_out(tree: "HtmlElement") -> bool:
    """Whether most of the page stands in one table cell, whose lines would run together."""
    if next(tree.iter("td"), None) is None:
        return False
    least = max(_LAYOUT_CELL_CHARS, _chars(tree) / 2)
    return any(_fullest_cell_chars(table) > least for table in tree.iter("table"))


def _fullest_cell_chars(table: "HtmlElement") -> int:
    rows = (*table.iterchildren("tr"), *table.iterfind("tbody/tr"))
    return max((_chars(cell) for row in rows for cell in row.iterchildren("td")), default=0)


def _chars(element: "HtmlElement") -> int:
    """Characters of text under the element, white space and scripts aside."""
    texts = element.xpath(".//text()[not(parent::script or parent::style)]")
    return sum(len(text.strip()) for text in texts)


def _article(tree: "HtmlElement", *, is_plain: bool) -> str:
    """The main text as markdown by trafilatura; empty where it finds none, or would spoil it."""
    import logging

    import trafilatura

    for logger in _LOUD:
        logging.getLogger(logger).setLevel(logging.CRITICAL + 1)
    try:
        if _is_laid_out(tree):
            return ""
        markdown = trafilatura.extract(
            tree,
            output_format="markdown",
            include_comments=False,
            include_links=False,
            include_images=False,
            include_tables=True,
            favor_recall=is_plain,
            deduplicate=False,
            with_metadata=False,
        )
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001  whatever it trips over, the visible text is still there
        return ""
    return _without_escapes(markdown or "")


def _without_escapes(markdown: str) -> str:
    r"""The words as they stand on the page: `Py_ssize_t` is no `Py\_ssize\_t`.

    What would begin a heading or code keeps its backslash, and code keeps all of its own.
    """
    lines = markdown.split("\n")
    is_code = False
    for at, line in enumerate(lines):
        if line.lstrip().startswith("```"):
            is_code = not is_code
        elif not is_code and "\\" in line:
            lines[at] = _ESCAPED.sub(_unescaped, line)
    return "\n".join(lines)


def _unescaped(match: re.Match[str]) -> str:
    text = match[0]
    return "\\" * ((len(text) - 2) // 2) + text[-1] if match["escaped"] else text


def _title(tree: "HtmlElement") -> str:
    """og:title or the title element, less the site's name.

    What of it is no name of the site shows where it begins with a heading of the page, or where
    the page's own title is a part of it: "Site | Section | Article".
    """
    metas = _meta(tree)
    title = metas.get("og:title") or next(_texts(tree, "title"), "")
    title = _without_site(title, metas.get("og:site_name", ""))
    for tags in (("h1",), ("h2", "h3")):
        headings = islice(_texts(tree, *tags), _HEADINGS_MAX)
        if begun := [text for text in headings if _begins(title, text)]:
            return max(begun, key=len)
    parts = set(filter(None, _SEPARATOR.split(title)))
    named = next((text for text in islice(_texts(tree, "h1"), _HEADINGS_MAX) if text in parts), "")
    return named or title or next(_texts(tree, "h1"), "")


def _without_site(title: str, site: str) -> str:
    if site and title.startswith(site) and (match := _SEPARATOR.match(title, len(site))):
        return title[match.end() :] or title
    if site and title.endswith(site) and (match := _ENDS_SEPARATED.search(title[: -len(site)])):
        return title[: match.start()] or title
    return title


def _begins(title: str, heading: str) -> bool:
    return title.startswith(heading) and (
        title == heading or _SEPARATOR.match(title, len(heading)) is not None
    )


def _texts(tree: "HtmlElement", *tags: str) -> Iterator[str]:
    """What the elements of the tags say, but for those that say nothing or link to the site."""
    for element in tree.iter(*tags):
        link = next(element.iter("a"), None)
        if link is not None and _HOME.fullmatch(link.get("href") or "x"):
            continue
        if text := one_line("".join(element.itertext())):
            yield text


def _meta(tree: "HtmlElement") -> dict[str, str]:
    """Contents of meta elements by lower-case property, name or itemprop; the first one counts."""
    metas: dict[str, str] = {}
    for element in tree.iter("meta"):
        content = one_line(element.get("content") or "")
        for attribute in ("property", "name", "itemprop"):
            key = (element.get(attribute) or "").strip().lower()
            if key and content:
                metas.setdefault(key, content)
    return metas
