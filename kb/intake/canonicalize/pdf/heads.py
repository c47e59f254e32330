"""Which lines are on every page? Running heads, running feet and page numbers are left out.

What is left out stands on an earlier page, but for page numbers: nothing is lost to a search.
"""

import re
from collections import Counter
from typing import Final

from kb.intake.canonicalize.pdf.layout import LaidPage

_PAGES_MIN: Final = 3
_SHARE_MIN: Final = 0.5
# Numbers that go up with the pages are hardly chance: what follows the numbered part counts, too.
_NUMBERED_SHARE_MIN: Final = 0.3
_NUMBER: Final = re.compile(r"(?<![\w.,])\d{1,5}(?![\w,]|\.\d)", re.ASCII)
_LETTER: Final = re.compile(r"[^\W\d_]")
# As many as "Page 3 of 12" has besides its numbers.
_NUMBER_LETTERS_MAX: Final = 6
_PLACE: Final = "#"


def without_heads(pages: list[LaidPage]) -> list[LaidPage]:
    """The pages without the lines at their edges that repeat on most of them."""
    shown = [number for number, page in enumerate(pages) if page.lines]
    if len(shown) < _PAGES_MIN:
        return pages
    offset = _numbering(pages, len(shown))
    counts = [Counter[str](), Counter[str]()]
    for number in shown:
        counts[number % 2].update(set(_keys(pages[number], number, offset).values()))
    sizes = [sum(number % 2 == parity for number in shown) for parity in (0, 1)]
    seen: set[str] = set()
    kept: list[LaidPage] = []
    for number, page in enumerate(pages):
        keys = _keys(page, number, offset)
        numbers = {at for at, key in keys.items() if _is_number(key)}
        heads = {at for at, key in keys.items() if _is_head(key, seen, counts, sizes)}
        seen.update(keys.values())
        # A page that has nothing but its head keeps it.
        whole = {at for at, line in enumerate(page.lines) if line.strip()}
        dropped = numbers if whole <= numbers | heads else numbers | heads
        lines = [line for at, line in enumerate(page.lines) if at not in dropped]
        kept.append(LaidPage(lines, (), page.pinned) if dropped else page)
    return kept


def _numbering(pages: list[LaidPage], shown: int) -> int | None:
    """What to add to a page's place to have the number printed on it; None without numbers."""
    offsets = Counter[int]()
    for number, page in enumerate(pages):
        offsets.update(
            {int(found) - number for at in page.edges for found in _NUMBER.findall(page.lines[at])}
        )
    # Of two that are as frequent, the smaller one: the order of a set is not to be seen.
    best = min(offsets.items(), key=lambda item: (-item[1], item[0]), default=(0, 0))
    return best[0] if best[1] >= max(_PAGES_MIN, _NUMBERED_SHARE_MIN * shown) else None


def _keys(page: LaidPage, number: int, offset: int | None) -> dict[int, str]:
    """The lines at the page's edges by their places, the page's own number replaced."""
    keys: dict[int, str] = {}
    for at in page.edges:
        key = page.lines[at].strip()
        if (
            offset is not None
            and (key := _numbered(key, number + offset)).strip(f"{_PLACE} |-") == ""
        ):
            key = _PLACE
        keys[at] = key
    return keys


def _numbered(text: str, page_number: int) -> str:
    """The text with the page's number replaced where it first stands: the last page is 5 of 5."""
    for match in _NUMBER.finditer(text):
        if int(match[0]) == page_number:
            return f"{text[: match.start()]}{_PLACE}{text[match.end() :]}"
    return text


def _is_number(key: str) -> bool:
    """Whether the line is the page's number, with hardly a word to it."""
    return _PLACE in key and len(_LETTER.findall(key)) <= _NUMBER_LETTERS_MAX


def _is_head(key: str, seen: set[str], counts: list[Counter[str]], sizes: list[int]) -> bool:
    if key not in seen:
        return False
    total = counts[0][key] + counts[1][key]
    if total < _PAGES_MIN:
        return False
    if _PLACE in key or total >= _SHARE_MIN * sum(sizes):
        return True
    # Left and right pages of a book have heads of their own.
    return any(
        count[key] >= max(_PAGES_MIN, _SHARE_MIN * size)
        for count, size in zip(counts, sizes, strict=True)
    )
