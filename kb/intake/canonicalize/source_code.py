"""What does a file of source code say? Itself."""

import re
from typing import Final

from kb.errors import EmptySource, NotWritten
from kb.intake.canonicalize.decode import clean_text, decode_text, has_text
from kb.intake.canonicalize.title import one_line
from kb.model.code import CODE_MIMES
from kb.model.text import Canonical

_HEAD_LINES: Final = 20
_GENERATED: Final = re.compile(
    r"^\s*(?:#|//|/?\*+|--|;+|<!--|%+|\"\"\").*(?:@generated|\bdo not (?:edit|modify)\b"
    r"|\b(?:auto-?|automatically )generated\b|\bcode generated\b"
    r"|\bgenerated (?:by|from|with)\b.*\b(?:do not|tool|compiler|generator)\b)",
    re.IGNORECASE | re.MULTILINE,
)
_MINIFIED_CHARS: Final = 2_000
_MINIFIED_WIDTH: Final = 300


def read(data: bytes, name: str, charset: str | None = None) -> Canonical:
    """The text as it stands, called by its file's whole name.

    Raises:
        EmptySource: there is no text in it.
        NotWritten: a program made it, or put it on few lines for machines.
    """
    decoded, warning = decode_text(data, (charset,) if charset else ())
    text = clean_text(decoded).rstrip("\n") + "\n"
    if not has_text(text):
        raise EmptySource("there is no text in it", source=name)
    if len(text) >= _MINIFIED_CHARS and len(text) / text.count("\n") > _MINIFIED_WIDTH:
        raise NotWritten("it is minified", source=name)
    head = "\n".join(text.split("\n", _HEAD_LINES)[:_HEAD_LINES])
    if _GENERATED.search(head):
        raise NotWritten("it is generated", source=name)
    base = name.replace("\\", "/").rstrip("/").rpartition("/")[2]
    ending = base.rpartition(".")[2].lower()
    return Canonical(
        markdown=text,
        title=one_line(base) or "untitled",
        mime=CODE_MIMES.get(ending, CODE_MIMES["c"]),
        warnings=(warning,) if warning else (),
    )
