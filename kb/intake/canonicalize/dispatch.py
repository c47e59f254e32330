"""Which reader takes it? By mime, and by nothing else."""

import functools
from collections.abc import Callable
from typing import Final

import msgspec
from msgspec import Struct

from kb.errors import EmptySource, SourceError, Unparsable, Unsupported
from kb.intake.canonicalize.parsers import (
    TEXT_CHARS_MAX,
    ParserPlugin,
    TextTooLong,
    parser_table,
    reader,
)
from kb.model.doc import Doc
from kb.model.source import ending_of
from kb.model.text import Canonical

_ENDINGS_MAX: Final = 256


class CanonicalizeInput(Struct, frozen=True, kw_only=True, tag="read"):
    """The bytes of one source, and what is known of them."""

    data: bytes
    mime: str
    """As `detect_mime` names it."""
    name: str
    """File name, path or `-`; gives the title where the bytes have none, and names errors."""
    charset: str | None = None
    """As the server that it was fetched from declares it, which may be wrong."""
    is_second: bool = False
    """Whether its parser brought a child down: its parser's fallback reads it."""


class PictureInput(Struct, frozen=True, kw_only=True, tag="draw"):
    """A page of a PDF that is to be drawn."""

    data: bytes
    name: str
    page: int
    """From 0 on."""


_TO_TEXT = "convert it to PDF, HTML, markdown or plain text and add the result"
_ADVICE: Final = (
    ("image/svg", _TO_TEXT),
    ("image/", "save it as PNG or JPEG and add that"),
    ("application/vnd.openxmlformats", "convert it (for example with pandoc) and add the result"),
    ("application/vnd.oasis", "convert it (for example with pandoc) and add the result"),
    ("application/epub", "convert it (for example with pandoc) and add the result"),
    ("application/rtf", "convert it (for example with pandoc) and add the result"),
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
    parser = _parser(source)
    if not source.data.strip():
        raise EmptySource("it is empty", source=source.name)
    try:
        read = reader(parser, is_second=source.is_second)
        canonical = read(source.data, source.name, source.charset)
    except TextTooLong:
        raise _too_long(source) from None
    except (SourceError, MemoryError, ImportError, SyntaxError):
        raise
    except RecursionError:
        raise Unparsable("it is nested too deeply to read", source=source.name) from None
    except Exception as error:
        # The readers' libraries raise anything on bad bytes.
        raise Unparsable(
            f"its reader failed ({type(error).__name__}); {_TO_TEXT}", source=source.name
        ) from error
    if len(canonical.markdown) > TEXT_CHARS_MAX:
        raise _too_long(source)
    # A doc keeps the format that its parser is looked up by.
    is_known = canonical.mime in parser.mimes
    return canonical if is_known else msgspec.structs.replace(canonical, mime=source.mime)


def _too_long(source: CanonicalizeInput) -> Unparsable:
    detail = f"it makes more than {TEXT_CHARS_MAX:,} characters of text; split it"
    return Unparsable(detail, source=source.name)


def is_risky(mime: str) -> bool:
    """Whether a format's parser is large enough, or foreign, and so gets a process of its own."""
    parser = parser_table().by_mime.get(mime)
    return parser is not None and parser.is_risky


def has_fallback(mime: str) -> bool:
    """Whether a format's parser has another one for what brings it down."""
    parser = parser_table().by_mime.get(mime)
    return parser is not None and bool(parser.fallback)


def fingerprint_of(mime: str) -> str:
    """Names what the parser of a format writes, which is "" where there is none."""
    parser = parser_table().by_mime.get(mime)
    return parser.fingerprint if parser else ""


def keeps_raw(mime: str) -> bool:
    """Whether the home keeps a copy of the bytes of a file of this format."""
    parser = parser_table().by_mime.get(mime)
    return parser is None or parser.keeps_raw


def may_read_ends(name: str) -> bool:
    """Whether the first and last bytes of a file of this name are all that its parser wants."""
    table = parser_table()
    parser = table.by_mime.get(table.mime_of.get(ending_of(name), ""))
    return parser is not None and parser.by_ends


def reads_ends(mime: str) -> bool:
    """Whether the parser of a format wants no more than the first and last bytes of a file."""
    parser = parser_table().by_mime.get(mime)
    return parser is not None and parser.by_ends


def reads_as_before(file: str | None = None) -> Callable[[Doc], bool]:
    """Whether a doc, of this file if it is of one, would be read in the same way now."""
    return _reads_as_before(ending_of(file) if file else "")


@functools.lru_cache(_ENDINGS_MAX)
def _reads_as_before(ending: str) -> Callable[[Doc], bool]:
    return lambda doc: parser_table().is_current(doc, ending)


def _parser(source: CanonicalizeInput) -> ParserPlugin:
    parser = parser_table().by_mime.get(source.mime)
    if parser is None:
        advice = next((a for start, a in _ADVICE if source.mime.startswith(start)), _TO_TEXT)
        detail = f"{source.mime} is not a format kb reads; {advice}"
        raise Unsupported(detail, source=source.name)
    return parser
