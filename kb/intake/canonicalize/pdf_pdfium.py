"""How does pdfium read a PDF? Page by page, with the places of its lines.

pdfium is no library for several threads: who reads holds `READING`.
"""

import ctypes
import re
import threading
from typing import Any, Final, Self

from kb.intake.canonicalize.pdf_page import Line, PdfFacts, PdfPage, clean_line

READING: Final = threading.Lock()

PINNED_MAX: Final = 5_000
ATTACHED_MAX: Final = 1_000
_CHARS_MAX: Final = 1_000_000
_VALUE_BYTES_MAX: Final = 1 << 20
# A line ends at a line break, or in the middle of a word with the sign for its hyphen.
_LINE_END: Final = re.compile("\r\n|\ufffe")


class PdfiumFile:
    """A PDF as pdfium opens it, with the empty password."""

    def __init__(self, data: bytes) -> None:
        """Open it.

        Raises:
            RuntimeError: pdfium does not take it for a PDF that it can read.
        """
        import pypdfium2

        self._pdf = pypdfium2.PdfDocument(data)
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
            height = raw.FPDF_GetPageHeightF(page)
            text_page = raw.FPDFText_LoadPage(page)
            if not text_page:
                raise ValueError("pdfium cannot load the page's text")
            try:
                lines = _lines(raw, text_page)
            finally:
                raw.FPDFText_ClosePage(text_page)
        finally:
            raw.FPDF_ClosePage(page)
        return PdfPage(lines=lines, height=height)

    def facts(self) -> PdfFacts:
        """What the document says of itself."""
        return PdfFacts(
            title=self._pdf.get_metadata_value("Title"),
            date=self._pdf.get_metadata_value("CreationDate")
            or self._pdf.get_metadata_value("ModDate"),
        )

    def close(self) -> None:
        """Free what pdfium holds."""
        self._pdf.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _lines(raw: Any, text_page: Any) -> list[Line]:
    count = min(raw.FPDFText_CountChars(text_page), _CHARS_MAX)
    if count <= 0:
        return []
    # A character may be two units, and a zero ends them.
    units = (ctypes.c_ushort * (2 * count + 2))()
    written = raw.FPDFText_GetText(text_page, 0, count, units)
    text = bytes(memoryview(units)[: max(written - 1, 0)]).decode("utf-16-le", "replace")
    return [Line((clean_line(line),), ()) for line in _LINE_END.sub(_broken, text).split("\n")]


def _broken(end: re.Match[str]) -> str:
    return "\n" if end[0] == "\r\n" else "-\n"
