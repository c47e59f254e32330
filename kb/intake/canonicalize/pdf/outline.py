"""Where do the sections of a PDF begin? Lines that its bookmarks name become headings."""

import re
from collections import defaultdict
from collections.abc import Sequence
from typing import Final

import msgspec

from kb.intake.canonicalize.blocks import escaped, heading
from kb.intake.canonicalize.pdf.layout import LaidPage
from kb.intake.canonicalize.pdf.page import CELL_MARK, Bookmark

# A heading may go over so many lines.
_LINES_MAX: Final = 3
# Of one page; each may be looked for in all its lines.
_BOOKMARKS_MAX: Final = 500
_NUMBER: Final = re.compile(
    r"(?:chapter|section|part|appendix)?\s*[\divxlc]{1,6}(?:\.\d{1,3})*[.:)]?\s", re.IGNORECASE
)


def with_headings(pages: list[LaidPage], bookmarks: Sequence[Bookmark]) -> list[LaidPage]:
    """The pages with a heading for each bookmark whose words are a line of the page it leads to.

    A bookmark that no line repeats adds nothing: no word is in the text that is not on the page.
    """
    of_page: dict[int, list[Bookmark]] = defaultdict(list)
    for bookmark in bookmarks:
        of_page[bookmark.page].append(bookmark)
    plain = (_escaped(page) for page in pages)
    return [
        _with_headings(page, of_page[at]) if at in of_page else page
        for at, page in enumerate(plain)
    ]


def _escaped(page: LaidPage) -> LaidPage:
    """The page without lines that look like a heading of markdown; only bookmarks make headings."""
    lines = [escaped(line) for line in page.lines]
    return page if lines == page.lines else msgspec.structs.replace(page, lines=lines)


def _with_headings(page: LaidPage, bookmarks: list[Bookmark]) -> LaidPage:
    lines: list[str] = []
    at = 0
    keys = [_keys(line) for line in page.lines]
    for bookmark in bookmarks[:_BOOKMARKS_MAX]:
        found = _place(page.lines, keys, at, _keys(bookmark.title))
        if found is None:
            continue
        start, stop = found
        text = " ".join(page.lines[start:stop]).replace(CELL_MARK, " ")
        lines += [*page.lines[at:start], "", heading(bookmark.level + 1, text), ""]
        at = stop
    # Where its edges were is asked no more.
    return msgspec.structs.replace(page, lines=[*lines, *page.lines[at:]], edges=())


def _place(
    lines: list[str], keys: list[tuple[str, str]], start: int, wanted: tuple[str, str]
) -> tuple[int, int] | None:
    """The lines from `start` on that say what is wanted, as a range; None if none do.

    With its number, if one does: a head of the page may say the same.
    """
    whole, bare = wanted
    if not bare:
        return None
    alike: tuple[int, int] | None = None
    for at in range(start, len(lines)):
        line = keys[at][0]
        if line == whole:
            return at, at + 1
        if alike is None and {whole, bare} & set(keys[at]):
            alike = at, at + 1
        if line and (whole.startswith(line) or bare.startswith(keys[at][1])):
            for stop in range(at + 2, min(at + _LINES_MAX, len(lines)) + 1):
                if {whole, bare} & set(_keys(" ".join(lines[at:stop]))):
                    return at, stop
    return alike


def _keys(text: str) -> tuple[str, str]:
    """What a heading is known by: its letters and digits, with its number and without."""
    folded = text.casefold()
    bare = _NUMBER.sub("", folded, count=1) if _NUMBER.match(folded) else folded
    whole, bare = ("".join(filter(str.isalnum, form)) for form in (folded, bare))
    return whole, bare or whole
