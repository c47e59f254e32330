"""What would a reader of the page see? All its text, by a scan that no nesting can upset."""

import re
from typing import Final

from kb.intake.canonicalize.blocks import escaped

_HIDDEN_NAMES: Final = "script style noscript template svg head math object iframe"
_BLOCK_NAMES: Final = """
    address article aside blockquote body caption center dd details dialog div dl dt fieldset
    figcaption figure footer form header hr html legend li main nav ol option p pre section
    select summary table tbody td textarea tfoot th thead tr ul
"""
# Elements whose content is not shown, or is shown elsewhere.
_HIDDEN: Final = frozenset(_HIDDEN_NAMES.split())
_BLOCKS: Final = frozenset(_BLOCK_NAMES.split())
_TAG: Final = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9:-]{0,40})")
_BLANKS: Final = re.compile(r"[ \t\r\n\f]+")
_BREAKS: Final = re.compile(r"\v{3,}")


def visible_text(page: str) -> str:
    """The page's whole text as markdown blocks: headings with #, items with -, line breaks kept.

    Linear in the length of the page. Scripts, styles, templates and markup are left out.
    """
    import html

    lines: list[str] = []
    words: list[str] = []
    mark = ""

    def end_line() -> None:
        text = (
            html.unescape(_BLANKS.sub(" ", "".join(words)))
            .replace(" \v", "\v")
            .replace("\v ", "\v")
        )
        words.clear()
        if text := _BREAKS.sub("\v\v", text).strip().replace("\v", "\n"):
            lines.append(mark + text if mark else escaped(text))

    at = 0
    while at < len(page):
        opening = page.find("<", at)
        opening = len(page) if opening < 0 else opening
        words.append(page[at:opening])
        match = _TAG.match(page, opening)
        if match is None:
            at = _after_other(page, opening, words)
            continue
        tag = match[2].lower()
        if tag in _HIDDEN and not match[1]:
            at = _after_hidden(page, match.end(), tag)
            continue
        is_heading = len(tag) == 2 and tag[0] == "h" and tag[1] in "123456"
        if is_heading or tag in _BLOCKS:
            end_line()
            mark = "" if match[1] else _mark(tag, is_heading)
        elif tag == "br":
            words.append("\v")
        at = _after_tag(page, match.end())
    end_line()
    return "\n\n".join(lines)


def _mark(tag: str, is_heading: bool) -> str:
    if is_heading:
        return "#" * int(tag[1]) + " "
    return "- " if tag == "li" else ""


def _after_tag(page: str, at: int) -> int:
    closing = page.find(">", at)
    return len(page) if closing < 0 else closing + 1


def _after_hidden(page: str, at: int, tag: str) -> int:
    """Past the closing tag; past everything when there is none, so that no scan is repeated."""
    closing = re.compile(f"</{tag}", re.IGNORECASE).search(page, at)
    return len(page) if closing is None else _after_tag(page, closing.end())


def _after_other(page: str, at: int, words: list[str]) -> int:
    """Past a comment or declaration; a `<` that opens nothing is text."""
    if page.startswith("<!--", at):
        end = page.find("-->", at + 4)
        return len(page) if end < 0 else end + 3
    if page.startswith(("<!", "<?", "</"), at):
        return _after_tag(page, at)
    words.append(page[at : at + 1])
    return at + 1
