"""Which reader reads which page? pdfium reads, and pypdf where pdfium cannot or finds noise."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from msgspec import Struct

from kb.errors import SourceError
from kb.intake.canonicalize import page_time
from kb.intake.canonicalize.pdf.layout import LaidPage, laid_out
from kb.intake.canonicalize.pdf.noise import is_noise, with_letters_joined
from kb.intake.canonicalize.pdf.page import Line, PdfFacts, PdfFile, PdfPage
from kb.intake.canonicalize.pdf.pdfium_file import PdfiumFile
from kb.intake.canonicalize.pdf.pypdf_file import PypdfFile

PAGES_MAX: Final = 20_000
CHARS_MAX: Final = 64 * 1024 * 1024
OTHER_S_MAX: Final = 10.0
"""Processor time that the second reader may cost a file: the first one has to go on after it."""

_EMPTY: Final = LaidPage([], ())


class PdfPages(Struct, frozen=True, kw_only=True):
    """The pages that were read, as far as they could be."""

    laid: list[LaidPage]
    total: int
    """How many the file has."""
    failed: int
    """How many no reader can read."""
    noise: int
    """How many are left out, since their letters make no words."""
    warnings: tuple[str, ...]


class OpenPdf:
    """A PDF with the reader that opened it, and the other one for pages that need it."""

    def __init__(self, data: bytes, name: str, *, by_pdfium: bool = True) -> None:
        """Open it by pdfium, if it may, else by pypdf; raises as `PypdfFile` does."""
        self._data = data
        self._name = name
        self._other: PypdfFile | None = None
        self._other_s = 0.0
        pdfium_file = _by_pdfium(data) if by_pdfium else None
        self._file: PdfFile = pdfium_file or PypdfFile(data, name)
        self._has_other = pdfium_file is not None
        self.page_count: int = self._file.page_count

    def facts(self) -> PdfFacts:
        """What the file says of itself; raises whatever the reader does."""
        return self._file.facts()

    def read_page(self, number: int) -> LaidPage | None:
        """The page, empty if nothing is on it; None if all that is read of it is noise.

        A page without words is where OCR would begin.

        Raises:
            Exception: whatever the last reader raises that cannot read it.
        """
        page = self._page(number)
        laid = laid_out(page)
        if not is_noise(_text(laid)):
            return laid
        other = self._other_page(number)
        if other is None:
            return None
        for lines in (other.lines, _joined(other.lines)):
            laid = laid_out(PdfPage(lines=lines, pinned=page.pinned))
            if laid.lines and not is_noise(_text(laid)):
                return laid
        return None

    def close(self) -> None:
        """Close both readers."""
        self._file.close()
        if self._other is not None:
            self._other.close()

    def _page(self, number: int) -> PdfPage:
        try:
            return self._file.read_page(number)
        except MemoryError:
            raise
        except Exception:
            other = self._other_page(number)
            if other is None:
                raise
            return other

    def _other_page(self, number: int) -> PdfPage | None:
        """The page as the other reader gives it; None where it gives none."""
        if not self._has_other or self._other_s > OTHER_S_MAX:
            return None
        began_s = time.process_time()
        try:
            self._other = self._other or PypdfFile(self._data, self._name)
            return self._other.read_page(number)
        except MemoryError:
            raise
        except SourceError:
            self._has_other = False
        except Exception:  # noqa: BLE001  pypdf raises what it likes; it was the second try
            return None
        finally:
            self._other_s += time.process_time() - began_s
        return None


def _by_pdfium(data: bytes) -> PdfiumFile | None:
    try:
        return PdfiumFile(data)
    except RuntimeError:
        return None


@contextmanager
def open_pdf(data: bytes, name: str, *, by_pdfium: bool = True) -> Iterator[OpenPdf]:
    """The file, open as long as the context lasts; by pypdf alone without `by_pdfium`.

    Raises:
        Encrypted: it needs a password, or a cipher that is not installed.
        Unparsable: neither reader can count its pages.
    """
    pdf = OpenPdf(data, name, by_pdfium=by_pdfium)
    try:
        yield pdf
    finally:
        pdf.close()


def read_pages(pdf: OpenPdf) -> PdfPages:
    """The pages from the first on, as many as bounds of pages, characters and time allow."""
    laid: list[LaidPage] = []
    failed: list[int] = []
    noise: list[int] = []
    chars = 0
    cut = ""
    clock = page_time.current()
    for number in range(min(pdf.page_count, PAGES_MAX)):
        if number and clock is not None and clock.is_spent():
            cut = f"reading took {clock.limit_s:.2g} s of processor time"
            break
        page = _read_page(pdf, number, failed, noise)
        chars += sum(map(len, page.lines)) + len(page.pinned)
        if chars > CHARS_MAX:
            cut = f"more than {CHARS_MAX} characters"
            break
        laid.append(page)
        if clock is not None:
            clock.page_read()
    return PdfPages(
        laid=laid,
        total=pdf.page_count,
        failed=len(failed),
        noise=len(noise),
        warnings=tuple(_warnings(len(laid), pdf.page_count, cut, failed, noise)),
    )


def count(pages: int) -> str:
    """The number with its noun."""
    return f"{pages} page" if pages == 1 else f"{pages} pages"


def _read_page(pdf: OpenPdf, number: int, failed: list[int], noise: list[int]) -> LaidPage:
    try:
        page = pdf.read_page(number)
    except MemoryError:
        raise
    except Exception:  # noqa: BLE001  one bad page does not cost the others
        failed.append(number)
        return _EMPTY
    if page is None:
        noise.append(number)
        return _EMPTY
    return page


def _warnings(
    read: int, total: int, cut: str, failed: list[int], noise: list[int]
) -> Iterator[str]:
    if len(failed) == 1:
        yield f"page {failed[0] + 1} cannot be read"
    elif failed:
        yield f"{len(failed)} of {count(total)} cannot be read"
    if noise:
        verb = "is" if len(noise) == 1 else "are"
        yield (
            f"{len(noise)} of {count(total)} {verb} left out, since the letters make no words: "
            "run OCR (for example ocrmypdf --force-ocr) and add the result"
        )
    if cut:
        yield f"cut after {count(read)} of {total}: {cut}"
    elif read < total:
        yield f"only the first {read} of {count(total)} were read"


def _text(page: LaidPage) -> str:
    return "\n".join(page.lines)


def _joined(lines: list[Line]) -> list[Line]:
    return [Line(tuple(map(with_letters_joined, line.cells)), ()) for line in lines]
