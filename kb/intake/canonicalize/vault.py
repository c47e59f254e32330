"""What does a note of a vault say beside its text? Tags in the text, and comments to leave out.

After Obsidian's rules: https://help.obsidian.md/tags and https://help.obsidian.md/syntax.
"""

import re
from collections.abc import Iterator
from typing import Final

TAGS_MAX: Final = 100
_TAG_CHARS_MAX: Final = 100

_FENCE: Final = re.compile(
    r"(?:[ \t]|>[ \t]?){0,12}(?:(?:[-+*]|\d{1,9}[.)])[ \t]+)?(`{3,}|~{3,})(.*)"
)
_CODE: Final = re.compile(r"(`{1,8})(?!`)[^`\n]{1,500}\1(?!`)")
_MARKUP: Final = re.compile(r"<[^<>\n]{1,500}>")
# A tag ends at white space and at punctuation, but for what may join the parts of a name.
_TAG: Final = re.compile(
    r"(?<!\S)[#＃]([^\s!-,.:-@\[-^`{-~\u00a0-\u00bf\u2000-\u206f\u2e00-\u2e7f\u3000-\u303f＃，。！？：；（）]+)"
)


def inline_tags(text: str) -> tuple[str, ...]:
    """The tags in a markdown text, `#like/this`, each once as it is first written.

    A tag has more than digits, begins after white space, and is neither in code nor in markup.
    """
    tags: dict[str, str] = {}
    if "#" not in text and "＃" not in text:
        return ()
    for line, is_code in _lines(text):
        if is_code or ("#" not in line and "＃" not in line):
            continue
        plain = _MARKUP.sub(" ", _CODE.sub(" ", line))
        for match in _TAG.finditer(plain):
            tag = match[1].strip("/")
            if tag and not tag.isdecimal() and len(tag) <= _TAG_CHARS_MAX:
                tags.setdefault(tag.casefold(), tag)
        if len(tags) >= TAGS_MAX:
            break
    return tuple(tags.values())[:TAGS_MAX]


def merged_tags(*groups: tuple[str, ...]) -> tuple[str, ...]:
    """The tags of all groups, each once however it is written; the first spelling counts."""
    tags: dict[str, str] = {}
    for group in groups:
        for tag in group:
            tags.setdefault(tag.casefold(), tag)
    return tuple(tags.values())[:TAGS_MAX]


def without_comments(text: str) -> str:
    """The text without what stands between `%%`; every line stays where it is.

    In code `%%` means nothing, and one that is never closed is text.
    """
    if text.count("%%") < 2:
        return text
    marks = list(_comment_marks(text))
    parts: list[str] = []
    end = 0
    for opening, closing in zip(marks[::2], marks[1::2], strict=False):
        parts += [text[end:opening], "\n" * text.count("\n", opening, closing)]
        end = closing + 2
    return "".join(parts) + text[end:]


def _comment_marks(text: str) -> Iterator[int]:
    """The offsets of every `%%` outside code."""
    at = 0
    for line, is_code in _lines(text):
        if not is_code and "%%" in line:
            plain = _CODE.sub(lambda code: " " * len(code[0]), line)
            yield from (at + match.start() for match in re.finditer("%%", plain))
        at += len(line) + 1


def _lines(text: str) -> Iterator[tuple[str, bool]]:
    """Each line, and whether it belongs to fenced code."""
    fence = ""
    for line in text.split("\n"):
        if fence:
            yield line, True
            bare = line.strip(" \t>")
            if bare.startswith(fence) and not bare.strip(fence[0]):
                fence = ""
        elif (opened := _FENCE.match(line)) and not (opened[1][0] == "`" and "`" in opened[2]):
            fence = opened[1]
            yield line, True
        else:
            yield line, False
