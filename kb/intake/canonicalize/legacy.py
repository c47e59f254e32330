"""What did a program make of an old Word or PowerPoint file? A newer file, or a text."""

import re
from typing import Final

from kb.errors import Unsupported
from kb.intake.canonicalize import docx, pptx
from kb.intake.canonicalize.blocks import finish
from kb.intake.canonicalize.decode import clean_text, decode_text
from kb.model.text import Canonical

DOC: Final = "application/msword"
PPT: Final = "application/vnd.ms-powerpoint"
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


def _text(data: bytes, name: str, mime: str) -> Canonical:
    if data.startswith(OLE):
        raise Unsupported(f"{mime} is read by a program that converts it first", source=name)
    lines = [line.rstrip() for line in clean_text(decode_text(data)[0]).split("\n")]
    text = _GAPS.sub("\n\n", "\n".join(line for line in lines if line.strip() not in _NO_WORDS))
    return finish((text.strip("\n"),), name, mime, is_titled=False)
