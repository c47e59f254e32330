"""What does a Rich Text file say?"""

import re
from collections.abc import Callable
from typing import Final

from kb.errors import Unparsable
from kb.intake.canonicalize.blocks import escaped, finish
from kb.intake.canonicalize.title import one_line
from kb.model.text import Canonical

MIME: Final = "application/rtf"
_TITLE: Final = re.compile(r"\{\\info.{0,2000}?\{\\title ((?:[^{}]|\\[{}]){1,500})\}", re.DOTALL)
_CODE_PAGE: Final = re.compile(r"\\ansicpg(\d{3,5})")


def read(data: bytes, name: str, charset: str | None = None) -> Canonical:  # noqa: ARG001
    """Its text; cells of a row stand between bars. Pictures and styles are left out.

    Raises:
        Unparsable: it is no Rich Text.
        EmptySource: there is no text in it.
    """
    from striprtf import striprtf

    rtf_to_text: Callable[..., str] = striprtf.rtf_to_text

    if not data.lstrip().startswith(b"{\\rtf"):
        raise Unparsable("it is no Rich Text; save it again", source=name)
    source = data.decode("latin-1")
    stated = _CODE_PAGE.search(source, 0, 4_096)
    encoding = f"cp{stated[1]}" if stated else "cp1252"
    try:
        "".encode(encoding)
    except LookupError:
        encoding = "cp1252"
    try:
        text = rtf_to_text(source, encoding=encoding, errors="replace")
        title = _TITLE.search(source, 0, 65_536)
        titled = rtf_to_text(title[1], encoding=encoding, errors="replace") if title else ""
    except (ValueError, LookupError, RecursionError, IndexError):
        raise Unparsable("it is damaged; save it again", source=name) from None
    paragraphs = (escaped(line.strip()) for line in text.split("\n"))
    return finish(paragraphs, name, MIME, title=one_line(titled), is_titled=False)
