"""What does the HTML of a mail say that is new? Its text, with quoted mails counted."""

import contextlib
from typing import Final

from kb.errors import EmptySource
from kb.intake.canonicalize import html
from kb.intake.canonicalize.mail_history import QUOTED_LINES_MIN, is_forward
from kb.intake.canonicalize.visible import visible_text

_SHOWN_CHARS_MAX: Final = 4 << 20
_QUOTES: Final = "//blockquote | //div[contains(@class, 'yahoo_quoted')]"


def read_page(data: bytes, name: str, charset: str | None, subject: str) -> str:
    """The page as markdown; a quoted mail becomes a line that counts its lines. May be empty.

    A mail that passes others on keeps them; its `subject` may say so.
    """
    page = html.page_text(data, charset)[0]
    if not is_forward(subject, page_words(page)):
        page = without_quotes(page)
    try:
        return html.read(page.encode("utf-8", "replace"), name, "utf-8").markdown
    except EmptySource:
        return ""


def page_words(page: str) -> str:
    """What the page shows, as text."""
    return visible_text(page[:_SHOWN_CHARS_MAX])


def without_quotes(page: str) -> str:
    """The page with each quote of three lines or more in one line; as it is where none is found."""
    if "<blockquote" not in page.lower() and "yahoo_quoted" not in page:
        return page
    from lxml import etree
    from lxml import html as lxml_html

    with contextlib.suppress(etree.LxmlError, ValueError, AssertionError):
        parser = lxml_html.HTMLParser(encoding="utf-8", recover=True, no_network=True)
        tree = lxml_html.document_fromstring(page.encode("utf-8", "replace"), parser=parser)
        for quote in tree.xpath(_QUOTES):
            if quote.getparent() is None or tree not in (quote, *quote.iterancestors()):
                continue
            lines = _lines(lxml_html.tostring(quote, encoding="unicode", with_tail=False))
            if lines >= QUOTED_LINES_MIN:
                line = etree.Element("p")
                line.text, line.tail = f"[{lines} lines quoted]", quote.tail
                quote.getparent().replace(quote, line)
        folded: str = lxml_html.tostring(tree, encoding="unicode")
        return folded
    return page


def _lines(page: str) -> int:
    return sum(bool(line.strip()) for line in visible_text(page).split("\n"))
