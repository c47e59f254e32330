"""How does a page of a PDF look? A grey picture of it."""

from typing import Final

from kb.errors import Unparsable
from kb.intake.canonicalize.pdf.pdfium_file import READING

DPI: Final = 250
_POINTS_AN_INCH: Final = 72
PIXELS_MAX: Final = 40_000_000


def page_picture(data: bytes, number: int, name: str) -> bytes:
    """The page of that number, from 0 on, as a PGM; a large one has fewer dots an inch.

    Raises:
        Unparsable: pdfium cannot open the file or draw the page.
    """
    import pypdfium2

    with READING:
        try:
            pdf = pypdfium2.PdfDocument(data)
        except RuntimeError:
            raise Unparsable("pdfium cannot draw its pages", source=name) from None
        try:
            page = pdf[number]
            width, height = page.get_size()
            scale = DPI / _POINTS_AN_INCH
            pixels = max(width * height, 1) * scale**2
            if pixels > PIXELS_MAX:
                scale *= (PIXELS_MAX / pixels) ** 0.5
            bitmap = page.render(scale=scale, grayscale=True)
            head = b"P5 %d %d 255\n" % (bitmap.width, bitmap.height)
            rows = bytes(bitmap.buffer)
            if bitmap.stride != bitmap.width:
                starts = range(0, bitmap.stride * bitmap.height, bitmap.stride)
                rows = b"".join(rows[start : start + bitmap.width] for start in starts)
            return head + rows
        except (RuntimeError, IndexError, ValueError):
            raise Unparsable(f"page {number + 1} cannot be drawn", source=name) from None
        finally:
            pdf.close()
