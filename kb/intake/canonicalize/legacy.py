"""What did a program make of an old Office file or of a DjVu? A newer file, or a text."""

import re
from typing import Final

from kb.errors import EmptySource, Unsupported
from kb.intake.canonicalize import docx, pptx
from kb.intake.canonicalize.blocks import escaped, finish
from kb.intake.canonicalize.decode import clean_text, decode_text, has_text
from kb.intake.canonicalize.title import fallback_title
from kb.model.doc import Coverage
from kb.model.text import Canonical

DOC: Final = "application/msword"
PPT: Final = "application/vnd.ms-powerpoint"
DJVU: Final = "application/x-djvu"
DJVU_START: Final = b"AT&TFORM"
OLE: Final = b"\xd0\xcf\x11\xe0"
_ZIP: Final = b"PK"
_GAPS: Final = re.compile(r"\n{3,}")
# What antiword writes in the place of a picture, and catppt where it finds no slide.
_NO_WORDS: Final = frozenset(("[pic]", "Office Theme"))


def read_doc(data: bytes, name: str, charset: str | None = None) -> Canonical:
    """A docx, or the text of the document. Raises as `docx.read`; Unsupported if not converted."""
    return docx.read(data, name, charset) if data.startswith(_ZIP) else _text(data, name, DOC)


def read_ppt(data: bytes, name: str, charset: str | None = None) -> Canonical:
    """A pptx, or the text of the slides. Raises as `pptx.read`; Unsupported if not converted."""
    return pptx.read(data, name, charset) if data.startswith(_ZIP) else _text(data, name, PPT)


def read_djvu(data: bytes, name: str, charset: str | None = None) -> Canonical:  # noqa: ARG001
    """The layer of text of scanned pages, a page after a form feed, as of a PDF.

    Raises:
        Unsupported: no program took the text out of it.
        EmptySource: it has no layer of text.
    """
    if data.startswith(DJVU_START):
        raise Unsupported(f"{DJVU} is read by a program that takes its text out", source=name)
    text = decode_text(data, ("utf-8",))[0].removesuffix("\f")
    pages = ["\n".join(map(str.rstrip, page.split("\n"))).strip("\n") for page in text.split("\f")]
    markdown = clean_text("\f".join(pages), keep_pages=True).rstrip("\n") + "\n"
    if not has_text(markdown):
        raise EmptySource("it has no layer of text; convert it to PDF", source=name)
    return Canonical(
        markdown=markdown,
        title=fallback_title(name, markdown),
        mime=DJVU,
        # Nothing can draw its other pages for OCR.
        coverage=Coverage(pages=len(pages), pages_with_text=len(pages)),
    )


def _text(data: bytes, name: str, mime: str) -> Canonical:
    if data.startswith(OLE):
        raise Unsupported(f"{mime} is read by a program that converts it first", source=name)
    lines = [line.rstrip() for line in clean_text(decode_text(data)[0]).split("\n")]
    text = _GAPS.sub("\n\n", "\n".join(line for line in lines if line.strip() not in _NO_WORDS))
    return finish((escaped(text.strip("\n")),), name, mime, is_titled=False)
