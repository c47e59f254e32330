"""What is it called? Titles from names and from lines."""

import re
from typing import Final

from kb.intake.canonicalize.decode import clean_text

TITLE_CHARS_MAX: Final = 200
LINE_TITLE_CHARS_MAX: Final = 80

_LINK: Final = re.compile(r"!?\[([^\[\]\n]{1,200})\](?:\([^()\n]{0,1000}\)|\[[^\[\]\n]{0,200}\])")
# Notion writes the id of a page behind its name.
_EXPORTED_ID: Final = re.compile(r"(?<=\S) [0-9a-f]{32}(?:_all)?\Z")
# What programs write where nobody gave a title: the file's name, or what they call a new one, as
# PowerPoint does in each language.
_OF_A_PROGRAM: Final = re.compile(
    r"\.(?:docx?|odt|rtf|pdf|tex|dvi|indd|qxd|pptx?|xlsx?|txt|html?|pages|md)$"
    r"|^(?:microsoft (?:word|powerpoint|excel)\b|presentation\d*$|slide \d+$|layout \d+$"
    r"|document\d*$|untitled|\(?anonymous\)?$|no title$|title$|unknown$)"
    r"|^(?=.*powerpoint)(?=.*(?:pr[eéäæ][sz]|apresent|презент|esitys|プレゼン|演示|簡報|프레젠))"
    r"\S+(?:\s\S+){0,3}$",
    re.IGNORECASE,
)
_MARKS: Final = re.compile(r"\*\*|__(?=\S)|(?<=\S)__|`+")


def one_line(text: str, *, chars_max: int = TITLE_CHARS_MAX) -> str:
    """White space folded to single spaces, cut to `chars_max` with an ellipsis."""
    line = " ".join(clean_text(text[: chars_max * 8]).split())
    return line if len(line) <= chars_max else line[: chars_max - 1].rstrip() + "\u2026"


def own_title(stated: str) -> str:
    """The title that a document states of itself; empty for a file's name or a program's words."""
    title = one_line(stated)
    return "" if _OF_A_PROGRAM.search(title) else title


def plain_heading(text: str, *, chars_max: int = TITLE_CHARS_MAX) -> str:
    """A heading's words: links by their text, no emphasis or code marks."""
    plain = _MARKS.sub("", _LINK.sub(r"\1", text[: chars_max * 8]))
    return one_line(plain, chars_max=chars_max)


def has_name(name: str) -> bool:
    """Whether a source has a file's name, as standard input has not."""
    return _base(name) not in {"", "-"}


def _base(name: str) -> str:
    return name.replace("\\", "/").rstrip("/").rpartition("/")[2]


def fallback_title(name: str, text: str) -> str:
    """The file name's stem; the first line of `text` where the source has no name."""
    base = _base(name)
    if not has_name(name):
        return first_line(text) or "untitled"
    stem, dot, _ = base.rpartition(".")
    stem = stem if dot and stem.strip(".") else base
    return one_line(_EXPORTED_ID.sub("", stem)) or "untitled"


def first_line(text: str) -> str:
    """The first line that is not blank, cut to 80 characters; empty if there is none."""
    head = text[:65_536].lstrip()
    return one_line(head.partition("\n")[0], chars_max=LINE_TITLE_CHARS_MAX)
