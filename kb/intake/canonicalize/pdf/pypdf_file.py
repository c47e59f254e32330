"""How does pypdf read a PDF? Slowly, and some files and pages that pdfium cannot."""

import io
import logging
from typing import TYPE_CHECKING, Self

from kb.errors import Encrypted, Unparsable
from kb.intake.canonicalize.pdf.page import Line, PdfFacts, PdfPage, clean_line

if TYPE_CHECKING:
    import pypdf


class PypdfFile:
    """A PDF as pypdf opens it; lines have no places."""

    def __init__(self, data: bytes, name: str) -> None:
        """Open it; the empty password is tried.

        Raises:
            Encrypted: it needs a password, or a cipher that is not installed.
            Unparsable: its pages cannot even be counted.
        """
        self._reader = _open(data, name)
        self.page_count = len(self._reader.pages)

    def read_page(self, number: int) -> PdfPage:
        """The page's lines."""
        text = self._reader.pages[number].extract_text()
        lines = [Line((line,), ()) for line in map(clean_line, text.split("\n"))]
        return PdfPage(lines=lines)

    def facts(self) -> PdfFacts:
        """What the document says of itself; its files are not looked for."""
        stated = self._reader.metadata
        if stated is None:
            return PdfFacts()
        return PdfFacts(
            title=_text(stated.get("/Title")),
            date=_text(stated.get("/CreationDate") or stated.get("/ModDate")),
        )

    def close(self) -> None:
        """Forget the file."""
        self._reader.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _open(data: bytes, name: str) -> "pypdf.PdfReader":
    """A reader whose pages can be counted; the empty password has been tried."""
    import pypdf
    from pypdf.errors import DependencyError, FileNotDecryptedError

    logging.getLogger("pypdf").setLevel(logging.CRITICAL + 1)
    try:
        reader = pypdf.PdfReader(io.BytesIO(data), strict=False)
        len(reader.pages)
    except DependencyError:
        raise Encrypted(
            "it is encrypted with AES; install `cryptography` to read it", source=name
        ) from None
    except FileNotDecryptedError:
        raise Encrypted(
            "it needs a password; remove it (for example with qpdf) and add the result", source=name
        ) from None
    except MemoryError:
        raise
    except Exception as error:
        raise Unparsable(
            "it is damaged, or not a PDF; try to repair it (for example with qpdf)", source=name
        ) from error
    return reader


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
