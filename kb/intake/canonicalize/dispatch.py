"""Which reader takes it? By mime, and by nothing else."""

from collections.abc import Callable
from typing import Final

from msgspec import Struct

from kb.errors import EmptySource, SourceError, Unparsable, Unsupported
from kb.intake.canonicalize.html import read as read_html
from kb.intake.canonicalize.markdown import read as read_markdown
from kb.intake.canonicalize.pdf import read as read_pdf
from kb.intake.canonicalize.plain import read as read_plain
from kb.model.text import Canonical

FINGERPRINT: Final = "canon-1"
"""Names this room's output. Raise it by hand with every change that can alter a byte of what
`canonicalize` returns, an upgrade of pypdf, trafilatura or charset-normalizer included: docs
made under another fingerprint are read again. A constant, since asking for the versions of
installed packages costs more than reading ten notes."""


class CanonicalizeInput(Struct, frozen=True, kw_only=True):
    """The bytes of one source, and what is known of them."""

    data: bytes
    mime: str
    """As `detect_mime` names it."""
    name: str
    """File name, path or `-`; gives the title where the bytes have none, and names errors."""
    charset: str | None = None
    """As the server that it was fetched from declares it, which may be wrong."""


RISKY_MIMES: Final = frozenset({"text/html", "application/xhtml+xml", "application/pdf"})
"""Formats whose readers are large enough to deserve a process of their own."""

_TO_TEXT = "convert it to PDF, HTML, markdown or plain text and add the result"
_ADVICE: Final = (
    ("image/svg", _TO_TEXT),
    ("image/", "run OCR on it (for example tesseract) and add the text"),
    ("audio/", "transcribe it and add the text"),
    ("video/", "transcribe it and add the text"),
    ("application/vnd.openxmlformats", "convert it (for example with pandoc) and add the result"),
    ("application/vnd.oasis", "convert it (for example with pandoc) and add the result"),
    ("application/epub", "convert it (for example with pandoc) and add the result"),
    ("application/rtf", "convert it (for example with pandoc) and add the result"),
    ("application/zip", "unpack it and add the files"),
    ("application/gzip", "unpack it and add the files"),
    ("application/x-tar", "unpack it and add the files"),
    ("application/x-7z", "unpack it and add the files"),
    ("application/x-rar", "unpack it and add the files"),
    ("application/x-bzip2", "unpack it and add the files"),
    ("application/x-xz", "unpack it and add the files"),
    ("application/zstd", "unpack it and add the files"),
)


def canonicalize(source: CanonicalizeInput) -> Canonical:
    """Read the source in this process; a pure function of `source`.

    Untrusted HTML and PDF belong in a `Parser`, which bounds time and memory as well.

    Raises:
        Unsupported: no reader for the mime.
        EmptySource: no text in it.
        Encrypted: it needs a password.
        Unparsable: it is damaged, or not what it claims to be.
        MemoryError: it needs more memory than there is.
        ImportError: a library that reads the format is not installed.
    """
    read = _reader(source)
    if not source.data.strip():
        raise EmptySource("it is empty", source=source.name)
    try:
        return read(source.data, source.name, source.charset)
    except (SourceError, MemoryError, ImportError, SyntaxError):
        raise
    except RecursionError:
        raise Unparsable("it is nested too deeply to read", source=source.name) from None
    except Exception as error:
        # The readers' libraries raise anything on bad bytes.
        raise Unparsable(
            f"its reader failed ({type(error).__name__}); {_TO_TEXT}", source=source.name
        ) from error


def _reader(source: CanonicalizeInput) -> Callable[[bytes, str, str | None], Canonical]:
    match source.mime:
        case "text/markdown":
            return read_markdown
        case "text/plain":
            return read_plain
        case "text/html" | "application/xhtml+xml":
            return read_html
        case "application/pdf":
            return lambda data, name, _: read_pdf(data, name)
        case mime:
            advice = next((a for start, a in _ADVICE if mime.startswith(start)), _TO_TEXT)
            raise Unsupported(f"{mime} is not a format kb reads; {advice}", source=source.name)
