"""How does pdfium read a PDF? Page by page, with the places of its lines.

pdfium is no library for several threads: who reads holds `READING`.
"""

import ctypes
import re
import threading
from collections.abc import Iterator
from itertools import islice
from typing import Any, Final, Self

from kb.intake.canonicalize.pdf.page import Bookmark, Box, Line, PdfFacts, PdfPage, clean_line
from kb.intake.canonicalize.pdf.pinned import attached_names, pinned_lines

READING: Final = threading.Lock()

_CHARS_MAX: Final = 1_000_000
# A line ends at a line break, or in the middle of a word with the sign for its hyphen.
_HYPHEN: Final = "\ufffe"
_LINE_END: Final = re.compile(f"\r\n|{_HYPHEN}")
_SPACES: Final = re.compile(r"[ \t\u00a0]+")
_CONTROL: Final = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f]")
_CONTROLS_SHARE_MAX: Final = 0.2
# In heights of a line: a gap that parts cells, and a character wider than any letter.
_GAP: Final = 0.9
_WIDE: Final = 0.65
_TWO_LINES: Final = 1.6
_BOOKMARKS_MAX: Final = 10_000
_DEPTH_MAX: Final = 6
_TITLE_CHARS_MAX: Final = 300


class PdfiumFile:
    """A PDF as pdfium opens it, with the empty password."""

    def __init__(self, data: bytes) -> None:
        """Open it.

        Raises:
            RuntimeError: pdfium does not take it for a PDF that it can read.
        """
        import pypdfium2

        self._pdf = pypdfium2.PdfDocument(data)
        self._pdf.init_forms()
        self.page_count: int = len(self._pdf)

    def read_page(self, number: int) -> PdfPage:
        """The page's lines in the order of its content.

        Raises:
            ValueError: it cannot be loaded.
        """
        from pypdfium2 import raw

        page = raw.FPDF_LoadPage(self._pdf.raw, number)
        if not page:
            raise ValueError("pdfium cannot load the page")
        try:
            form = self._pdf.formenv
            pinned, fields = pinned_lines(raw, page, form.raw if form else None)
            text_page = raw.FPDFText_LoadPage(page)
            if not text_page:
                raise ValueError("pdfium cannot load the page's text")
            try:
                lines = _TextPage(raw, text_page, raw.FPDFPage_GetRotation(page)).lines()
            finally:
                raw.FPDFText_ClosePage(text_page)
        finally:
            raw.FPDF_ClosePage(page)
        if not lines:
            # Where nothing else is on the page, the names of its fields say what it is for.
            pinned += fields
        return PdfPage(lines=lines, pinned=tuple(map(clean_line, pinned)))

    def facts(self) -> PdfFacts:
        """What the document says of itself."""
        from pypdfium2 import raw

        return PdfFacts(
            attached=attached_names(raw, self._pdf.raw),
            title=self._pdf.get_metadata_value("Title"),
            date=self._pdf.get_metadata_value("CreationDate")
            or self._pdf.get_metadata_value("ModDate"),
            bookmarks=tuple(self._bookmarks()),
        )

    def _bookmarks(self) -> Iterator[Bookmark]:
        """Those that lead to a page; a file that repeats itself is read so far as it does not."""
        for entry in islice(self._pdf.get_toc(max_depth=_DEPTH_MAX), _BOOKMARKS_MAX):
            place = entry.get_dest()
            page = place.get_index() if place is not None else None
            title = entry.get_title()[:_TITLE_CHARS_MAX]
            if page is not None and title:
                yield Bookmark(level=entry.level, title=title, page=page)

    def close(self) -> None:
        """Free what pdfium holds."""
        self._pdf.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class _TextPage:
    """One page's characters, asked for one by one as rarely as can be."""

    def __init__(self, raw: Any, text_page: Any, quarters: int) -> None:
        """`quarters` is how many quarter turns the page is shown turned by, clockwise."""
        self._raw = raw
        self._quarters = quarters
        self._page = text_page
        self._rect = raw.FS_RECTF()
        self._rect_ref = ctypes.byref(self._rect)
        self._sides = [ctypes.c_double() for _ in range(4)]
        self._side_refs = [ctypes.byref(side) for side in self._sides]
        self._count = min(raw.FPDFText_CountChars(text_page), _CHARS_MAX)
        self._is_shifted = False

    def lines(self) -> list[Line]:
        """The page's lines; a word broken at a line's end keeps its hyphen."""
        if self._count <= 0:
            return []
        # A character may be two units, and a zero ends them.
        units = (ctypes.c_ushort * (2 * self._count + 2))()
        written = self._raw.FPDFText_GetText(self._page, 0, self._count, units)
        length = max(written - 1, 0)
        text = bytes(memoryview(units)[:length]).decode("utf-16-le", "replace")
        if len(text) != length:
            # pdfium counts both halves of a rare character; `clean_line` joins them.
            text = "".join(map(chr, units[:length]))
        if len(_CONTROL.findall(text)) > _CONTROLS_SHARE_MAX * len(text):
            # The codes of a font that does not say which characters they are.
            text = _CONTROL.sub("\ufffd", text)
        # Characters without a code are counted, but are not in the text.
        self._is_shifted = len(text) != self._count
        lines: list[Line] = []
        start = 0
        for end in _LINE_END.finditer(text):
            lines += self._placed(text, start, end.start(), "-" if end[0] == _HYPHEN else "")
            start = end.end()
        return lines + self._placed(text, start, len(text), "")

    def _placed(self, text: str, start: int, end: int, hyphen: str) -> list[Line]:
        """What pdfium takes for a line: one, or several where it overlooks where they end."""
        shown = text[start:end]
        start += len(shown) - len(shown.lstrip())
        end -= len(shown) - len(shown.rstrip())
        if start >= end:
            return []
        first, last = self._box(start), self._box(end - 1)
        if first is None or last is None:
            return [Line((clean_line(shown + hyphen),), ())]
        box = _around(first, last)
        size = min(first.top - first.bottom, last.top - last.bottom)
        if end - start >= 3 and box.top - box.bottom > box.right - box.left:
            # Written upwards or downwards.
            return [Line((clean_line(shown + hyphen),), ())]
        if box.top - box.bottom < _TWO_LINES * size and not self._has_gap(
            text, start, end, box, size
        ):
            return [Line((clean_line(shown + hyphen),), (box,))]
        return self._parted(text, start, end, size, hyphen)

    def _parted(self, text: str, start: int, end: int, size: float, hyphen: str) -> list[Line]:
        """The line cut into cells at its wide gaps, and into lines where the next one begins."""
        lines: list[Line] = []
        cells: list[str] = []
        boxes: list[Box] = []
        for space in (*_SPACES.finditer(text, start, end), None):
            stop = end if space is None else space.start()
            before = self._box(stop - 1)
            after = None if space is None else self._box(space.end())
            if space is not None and not (before and after and _is_apart(before, after, size)):
                continue
            cells.append(clean_line(text[start:stop] + (hyphen if space is None else "")))
            first = self._box(start)
            if first and before:
                boxes.append(_around(first, before))
            if space is not None:
                start = space.end()
            if after is None or (before and after.left < before.left):
                is_placed = len(boxes) == len(cells)
                lines.append(Line(tuple(cells), tuple(boxes) if is_placed else ()))
                cells, boxes = [], []
        return lines

    def _has_gap(self, text: str, start: int, end: int, box: Box, size: float) -> bool:
        """Whether a gap may be in these characters that is wider than spaces are."""
        if box.right - box.left > _WIDE * size * (end - start):
            return True
        index = self._index(start)
        count = self._raw.FPDFText_CountRects(self._page, index, self._index(end - 1) - index + 1)
        if count > 2 * len(_SPACES.findall(text, start, end)) + 1:
            # It costs less to look at the spaces.
            return True
        left, top, right, bottom = self._sides
        reached = box.left
        for number in range(count):
            self._raw.FPDFText_GetRect(self._page, number, *self._side_refs)
            rect = self._as_shown(left.value, bottom.value, right.value, top.value)
            if rect.left - reached > _GAP * size:
                return True
            reached = max(reached, rect.right)
        return False

    def _box(self, at: int) -> Box | None:
        if not self._raw.FPDFText_GetLooseCharBox(self._page, self._index(at), self._rect_ref):
            return None
        rect = self._rect
        if rect.right <= rect.left or rect.top <= rect.bottom:
            return None
        return self._as_shown(rect.left, rect.bottom, rect.right, rect.top)

    def _as_shown(self, left: float, bottom: float, right: float, top: float) -> Box:
        """The rectangle on the page as it is turned to be read."""
        match self._quarters:
            case 1:
                return Box(bottom, -right, top, -left)
            case 2:
                return Box(-right, -top, -left, -bottom)
            case 3:
                return Box(-top, left, -bottom, right)
            case _:
                return Box(left, bottom, right, top)

    def _index(self, at: int) -> int:
        """The number of the character at this place in the text."""
        if not self._is_shifted:
            return at
        return int(self._raw.FPDFText_GetCharIndexFromTextIndex(self._page, at))


def _is_apart(before: Box, after: Box, size: float) -> bool:
    """Whether the second character begins a cell, or a line, after the first."""
    if after.left < before.left:
        return after.bottom < before.bottom - 0.5 * size
    return after.left - before.right > _GAP * size


def _around(one: Box, other: Box) -> Box:
    return Box(
        min(one.left, other.left),
        min(one.bottom, other.bottom),
        max(one.right, other.right),
        max(one.top, other.top),
    )
