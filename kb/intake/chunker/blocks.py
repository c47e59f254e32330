"""Which blocks does a markdown have? One pass over its lines, each line looked at a few times."""

import re
from itertools import accumulate
from typing import Literal

from msgspec import Struct

from kb.intake.chunker import lines as line

BlockKind = Literal["heading", "fence", "code", "table", "list", "quote", "html", "rule", "para"]

# A longer paragraph over a row of dashes is more often a paragraph over a rule.
_SETEXT_LINES_MAX = 2
_SETEXT_CHARS_MAX = 200
_FRONT_MATTER_LINES_MAX = 200
_TITLE_CHARS_MAX = 160


class ListItem(Struct, frozen=True, gc=False):
    """A list item: where its line starts, and how many columns its marker is indented."""

    start: int
    indent: int


class Block(Struct, frozen=True, kw_only=True, gc=False):
    """A run of whole lines, from the start of the first to the end of the last, newline excluded.

    Every non-blank line of a markdown is in exactly one block.
    """

    kind: BlockKind
    start: int
    end: int
    level: int = 0
    """1 to 6 for a heading, else 0."""
    title: str = ""
    items: tuple[ListItem, ...] = ()
    """Of a list: its items of every depth, in order."""
    fences: tuple[tuple[int, int], ...] = ()
    """Of a list: the fenced blocks inside its items."""


class _Scanner:
    """Reads the blocks of one markdown; `at` is the index of the next line."""

    def __init__(self, markdown: str) -> None:
        self.lines = markdown.split("\n")
        self.starts = list(accumulate((len(text) + 1 for text in self.lines), initial=0))
        self.at = 0

    def scan(self) -> list[Block]:
        blocks: list[Block] = []
        if self.lines[0].rstrip() == "---":
            blocks.extend(self._front_matter())
        count = len(self.lines)
        while self.at < count:
            text = self.lines[self.at]
            body = text.lstrip()
            if body:
                blocks.append(self._block(text, body))
            else:
                self.at += 1
        return blocks

    def _span(self, first: int, last: int) -> tuple[int, int]:
        return self.starts[first], self.starts[last] + len(self.lines[last])

    def _take(self, kind: BlockKind, first: int, last: int) -> Block:
        self.at = last + 1
        start, end = self._span(first, last)
        return Block(kind=kind, start=start, end=end)

    def _block(self, text: str, body: str) -> Block:
        mark = body[0]
        if text is not body and line.indent_of(text, body) >= line.CODE_INDENT:
            return self._indented()
        if mark not in line.MAY_INTERRUPT:
            return self._paragraph()
        if mark == "#" and (level := line.atx_level(body)):
            return self._heading(self.at, self.at, level, _atx_title(body))
        if mark in "`~" and (opener := line.fence_of(body)):
            return self._take("fence", self.at, self._fence_end(self.at, opener))
        if mark == ">":
            return self._quote()
        if mark == "|":
            return self._table(self.at + 1)
        if mark in "-*_" and line.is_rule(body):
            return self._take("rule", self.at, self.at)
        if line.marker_of(body):
            return self._list()
        if mark == "<":
            return self._html(body)
        return self._paragraph()

    def _front_matter(self) -> list[Block]:
        last = min(len(self.lines), _FRONT_MATTER_LINES_MAX)
        if last < 2 or ":" not in self.lines[1]:
            return []
        for index in range(1, last):
            if self.lines[index].rstrip() in {"---", "..."}:
                return [self._take("html", 0, index)]
        return []

    def _heading(self, first: int, last: int, level: int, title: str) -> Block:
        self.at = last + 1
        start, end = self._span(first, last)
        return Block(kind="heading", start=start, end=end, level=level, title=_bounded(title))

    def _fence_end(self, first: int, opener: str, indent_min: int = 0) -> int:
        """The last line of the fence; a page mark ends it, and so does too small an indent."""
        last = first
        for index in range(first + 1, len(self.lines)):
            text = self.lines[index]
            if text == line.PAGE_MARK:
                return last
            body = text.lstrip()
            if not body:
                continue
            indent = line.indent_of(text, body)
            if indent < indent_min:
                return last
            last = index
            if indent < indent_min + line.CODE_INDENT and line.closes_fence(body, opener):
                return last
        return last

    def _indented(self) -> Block:
        first = last = self.at
        for index in range(first + 1, len(self.lines)):
            text = self.lines[index]
            if text == line.PAGE_MARK:
                break
            body = text.lstrip()
            if not body:
                continue
            if line.indent_of(text, body) < line.CODE_INDENT:
                break
            last = index
        return self._take("code", first, last)

    def _quote(self) -> Block:
        index = self.at + 1
        while index < len(self.lines):
            body = self.lines[index].lstrip()
            if not body or (body[0] != ">" and body[0] in line.MAY_INTERRUPT):
                break
            index += 1
        return self._take("quote", self.at, index - 1)

    def _table(self, index: int) -> Block:
        while index < len(self.lines):
            body = self.lines[index].lstrip()
            if not body or (body[0] != "|" and line.interrupts(body)):
                break
            index += 1
        return self._take("table", self.at, index - 1)

    def _html(self, body: str) -> Block:
        ends_at = line.html_end(body)
        if ends_at is None and not line.is_lone_tag(body):
            return self._paragraph()
        last = index = self.at
        while index < len(self.lines):
            text = self.lines[index]
            if text == line.PAGE_MARK or (not ends_at and not text.strip()):
                break
            if text.strip():
                last = index
            if ends_at and _holds(text, ends_at):
                break
            index += 1
        return self._take("html", self.at, last)

    def _paragraph(self) -> Block:
        """A paragraph, or the setext heading or table that its next line makes of it."""
        first = self.at
        index = first + 1
        while index < len(self.lines):
            body = self.lines[index].lstrip()
            if not body:
                break
            if body[0] in line.MAY_INTERRUPT:
                level = line.setext_level(body)
                if level and self._short(first, index):
                    title = " ".join(self.lines[first:index])
                    return self._heading(first, index, level, title)
                if line.is_delimiter_row(body) and "|" in self.lines[index - 1]:
                    if index - 1 == first:
                        return self._table(index + 1)
                    index -= 1
                    break
                if line.interrupts(body):
                    break
            index += 1
        return self._take("para", first, index - 1)

    def _short(self, first: int, stop: int) -> bool:
        return (
            stop - first <= _SETEXT_LINES_MAX
            and self.starts[stop] - self.starts[first] <= _SETEXT_CHARS_MAX
        )

    def _list(self) -> Block:
        first = last = index = self.at
        items: list[ListItem] = []
        fences: list[tuple[int, int]] = []
        base = content = 0
        after_blank = False
        while index < len(self.lines):
            text = self.lines[index]
            body = text.lstrip()
            if not body:
                if text == line.PAGE_MARK:
                    break
                after_blank = True
                index += 1
                continue
            indent = line.indent_of(text, body)
            marker = "" if line.is_rule(body) else line.marker_of(body)
            if marker:
                if not items or indent <= base + 1:
                    base, content = indent, indent + len(marker) + 1
                items.append(ListItem(self.starts[index], indent))
            elif indent < content and (after_blank or line.interrupts(body)):
                break
            elif indent >= content and (opener := line.fence_of(body)):
                first_line, index = index, self._fence_end(index, opener, content)
                fences.append(self._span(first_line, index))
            after_blank = False
            last = index
            index += 1
        self.at = last + 1
        start, end = self._span(first, last)
        return Block(kind="list", start=start, end=end, items=tuple(items), fences=tuple(fences))


def _holds(text: str, end_mark: str | re.Pattern[str]) -> bool:
    return end_mark in text if isinstance(end_mark, str) else end_mark.search(text) is not None


def _atx_title(body: str) -> str:
    title = body.lstrip("#").strip()
    bare = title.rstrip("#")
    return bare.rstrip() if not bare or bare[-1] in " \t" else title


def _bounded(title: str) -> str:
    # The path is stored with every chunk under it, so it must not grow with the line.
    words = " ".join(title[: 4 * _TITLE_CHARS_MAX].split())
    return words if len(words) <= _TITLE_CHARS_MAX else words[: _TITLE_CHARS_MAX - 1].rstrip() + "…"


def parse_blocks(markdown: str) -> list[Block]:
    """The blocks of a markdown, in order; in time linear in its length."""
    return _Scanner(markdown).scan()
