"""Which other files does a markdown file name? Links and wiki links, found and resolved. Pure."""

import posixpath
import re
import urllib.parse
from collections.abc import Iterator
from typing import Final, Literal

from msgspec import Struct

from kb.intake.chunker.blocks import parse_blocks

_CODE: Final = re.compile(r"(`{1,8})(?!`)[^`\n]{1,500}\1(?!`)")
_LINK: Final = re.compile(r"\]\([ \t]*(?:<([^<>\n]{1,500})>|([^()<>\[\]\s]{1,500}))")
_WIKI: Final = re.compile(
    r"\[\[([^\[\]|#\n]{1,200})(?:#[^\[\]|\n]{0,200})?(?:\|[^\[\]\n]{0,200})?\]\]"
)
_SCHEME: Final = re.compile(r"[A-Za-z][A-Za-z0-9+.-]{0,30}:")
_ENDINGS: Final = ("", ".md", ".markdown")
# Nothing in these is a link.
_VERBATIM: Final = frozenset(("fence", "code", "html"))

LinkKind = Literal["path", "wiki"]


class Link(Struct, frozen=True):
    """The target of a link: a path from the file's own folder, or a wiki name."""

    kind: LinkKind
    target: str


class LinkSpan(Struct, frozen=True, kw_only=True):
    """A link, and the offsets of its target as it is written, without brackets and anchor."""

    link: Link
    start: int
    end: int


def links(markdown: str) -> list[Link]:
    """All links that may lead to another file, each once, in reading order."""
    if "](" not in markdown and "[[" not in markdown:
        return []
    return list(dict.fromkeys(span.link for span in link_spans(markdown)))


def link_spans(markdown: str) -> Iterator[LinkSpan]:
    """All links that may lead to another file, with repetitions."""
    for at, text in _prose(markdown):
        plain = _CODE.sub(lambda code: " " * len(code[0]), text)
        for match in _LINK.finditer(plain):
            group = 1 if match[1] else 2
            written = re.split("[#?]", match[group])[0]
            link = Link("path", urllib.parse.unquote(written))
            if written and not _SCHEME.match(link.target):
                start = at + match.start(group)
                yield LinkSpan(link=link, start=start, end=start + len(written))
        for match in _WIKI.finditer(plain):
            if match[1].strip():
                link = Link("wiki", match[1].strip())
                yield LinkSpan(link=link, start=at + match.start(1), end=at + match.end(1))


def _prose(markdown: str) -> Iterator[tuple[int, str]]:
    """The parts of a text that may have links, each with its offset."""
    for block in parse_blocks(markdown):
        if block.kind in _VERBATIM:
            continue
        at = block.start
        for start, end in block.fences:
            yield at, markdown[at:start]
            at = end
        yield at, markdown[at : block.end]


class FileNames:
    """The files that links can lead to, by path, stem and title."""

    def __init__(self, titles: dict[str, str]) -> None:
        """Take titles by path; paths are relative to one folder, with slashes."""
        self._paths = titles
        self._by_name: dict[str, list[str]] = {}
        for path, title in titles.items():
            stem = posixpath.splitext(posixpath.basename(path))[0]
            for name in dict.fromkeys((stem.casefold(), title.casefold())):
                self._by_name.setdefault(name, []).append(path)

    def resolve(self, source: str, link: Link) -> str | None:
        """The path that a link in `source` leads to; None if there is none, or several.

        A wiki name is a path from the top or from the file's folder, or else the stem or title of
        one file. If several files have the name, the one in the same folder counts.
        """
        folder = posixpath.dirname(source)
        path = self._at(folder, link.target)
        if path is not None or link.kind == "path":
            return path
        named = self._by_name.get(link.target.casefold(), [])
        near = [path for path in named if posixpath.dirname(path) == folder]
        for candidates in (named, near):
            if len(candidates) == 1:
                return candidates[0]
        return self._at("", link.target)

    def _at(self, folder: str, target: str) -> str | None:
        joined = target.lstrip("/") if target.startswith("/") else posixpath.join(folder, target)
        path = posixpath.normpath(joined)
        return next((path + end for end in _ENDINGS if path + end in self._paths), None)


def is_markdown(path: str) -> bool:
    """Whether a link leads to a file that a pack can hold."""
    return path.lower().endswith(_ENDINGS[1:])
