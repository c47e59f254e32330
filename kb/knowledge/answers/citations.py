"""Find citations in text: `[2]`, `[1][3]`, `[1, 3]`, also in the brackets of CJK scripts. Pure."""

import re
from typing import Final

_SPACE: Final = r"\s{0,4}"
CITATION: Final = (
    rf"[\[【]{_SPACE}\d{{1,3}}(?:{_SPACE}[,，、;]{_SPACE}\d{{1,3}}){{0,31}}{_SPACE}[\]】](?!\()"
)
"""A pattern: one pair of brackets with numbers in it, unless it is a link of markdown."""

_CITATION: Final = re.compile(CITATION)
_WITH_SPACE: Final = re.compile(rf"[ \t]{{0,4}}{CITATION}")
_CODE: Final = re.compile(
    r"^ {0,3}(```|~~~).*?(?:^ {0,3}\1[^\n]*$|\Z)|`[^`\n]{1,400}`", re.MULTILINE | re.DOTALL
)


def without_code(text: str) -> str:
    """The text with letters in place of code, fenced or between backticks; offsets stay."""
    return _CODE.sub(lambda code: re.sub(r"[^\n]", "x", code[0]), text)


def cited(text: str) -> tuple[int, ...]:
    """The numbers that a text cites, each once, in order; numbers in code do not count."""
    groups = _CITATION.findall(without_code(text))
    return tuple(dict.fromkeys(int(n) for group in groups for n in re.findall(r"\d+", group)))


def without_citations(text: str) -> str:
    """The text without its citations and the blanks before them."""
    parts: list[str] = []
    last = 0
    for mark in _WITH_SPACE.finditer(without_code(text)):
        parts.append(text[last : mark.start()])
        last = mark.end()
    return ("".join(parts) + text[last:]).strip()
