"""What does an AsciiDoc file say? Its sections and text, as markdown.

After the language's description (https://docs.asciidoctor.org/asciidoc/latest/). Nothing is
included, and no condition is decided.
"""

import re
from typing import Final

from msgspec.structs import replace

from kb.intake.canonicalize.blocks import fenced, finish, heading, table
from kb.intake.canonicalize.dates import iso_date
from kb.intake.canonicalize.decode import clean_text, decode_text
from kb.intake.canonicalize.title import one_line
from kb.model.text import Canonical

MIME: Final = "text/asciidoc"
_HEADING: Final = re.compile(r"(={1,6}|#{1,6})[ \t]+(\S.*)")
_ATTRIBUTE: Final = re.compile(r":!?([\w-]{1,80})!?:(?:[ \t]+(.*))?")
_BLOCK_LINE: Final = re.compile(r"\[([^\[\]\n]{0,400})\]")
_ANCHOR: Final = re.compile(r"\[\[[^\[\]\n]{1,200}\]\]")
_BLOCK_TITLE: Final = re.compile(r"\.([^\s.].*)")
_MACRO_LINE: Final = re.compile(r"(?:include|ifdef|ifndef|ifeval|endif|toc)::.*")
_MEDIA: Final = re.compile(r"(?:image|video|audio)::?([^\s\[\]]{1,500})\[([^\[\]\n]{0,400})\]")
_LIST: Final = re.compile(r"[ \t]*(\*{1,5}|-|\.{1,5})[ \t]+(\S.*)")
_LINK: Final = re.compile(
    r"(?:link:|xref:)?((?:https?://|mailto:)[^\s\[\]]{1,500}|(?<=link:)[^\s\[\]]{1,500}"
    r"|(?<=xref:)[^\s\[\]]{1,500})\[([^\[\]\n]{0,400})\]"
)
_CROSS: Final = re.compile(r"<<([^<>,\n]{1,200})(?:,[ \t]*([^<>\n]{1,300}))?>>")
_ROLE: Final = re.compile(r"\[[.#%][^\[\]\n]{0,100}\](?=[#*_`])")
_LITERALS: Final = ("----", "....", "```")
_PLAIN_FENCES: Final = ("====", "****", "--", "____", "|===", "////", "++++")


def read(data: bytes, name: str, charset: str | None = None) -> Canonical:
    """Sections as headings, listings as code, tables and lists, and text without its marks.

    Raises:
        EmptySource: there is no text in it.
    """
    text, warning = decode_text(data, (charset,) if charset else ())
    reader = _AsciidocReader()
    for line in clean_text(text).split("\n"):
        reader.line(line.rstrip())
    reader.end()
    canonical = finish(
        reader.blocks,
        name,
        MIME,
        title=reader.title,
        date=iso_date(reader.attributes.get("revdate", "")),
        warnings=(warning,) if warning else (),
        is_titled=False,
    )
    keywords = reader.attributes.get("keywords", "").split(",")
    return replace(canonical, tags=tuple(filter(None, (one_line(tag) for tag in keywords))))


class _AsciidocReader:
    """Takes lines, and has blocks."""

    def __init__(self) -> None:
        self.blocks: list[str] = []
        self.attributes: dict[str, str] = {}
        self.title = ""
        self._lines: list[str] = []
        self._fence = ""
        self._language = ""
        self._in_header = True

    def line(self, line: str) -> None:
        """Take one line."""
        if self._fence:
            self._fenced_line(line)
        elif (fence := _fence_of(line)) is not None:
            if fence in ("====", "****", "--"):
                self._flush()
            else:
                self._flush()
                self._fence = line.rstrip()
        elif not line:
            self._flush()
            self._in_header = self._in_header and not self.title
        else:
            self._text_line(line)

    def end(self) -> None:
        """End what is open."""
        if self._fence:
            self._fenced_line(self._fence)
        self._flush()

    def _text_line(self, line: str) -> None:
        if line.startswith("//") or _MACRO_LINE.fullmatch(line) or _ANCHOR.fullmatch(line):
            return
        if match := _ATTRIBUTE.fullmatch(line):
            self.attributes[match[1].lower()] = match[2] or ""
        elif match := _HEADING.fullmatch(line):
            self._heading(len(match[1]), _inline(match[2]))
        elif self._in_header and self.title and not self._lines:
            # The line of authors, or that of the revision.
            self.blocks.append(_inline(line))
        elif match := _BLOCK_LINE.fullmatch(line):
            self._flush()
            parts = [part.strip() for part in match[1].split(",")]
            self._language = parts[1] if parts[0] in ("source", "") and len(parts) > 1 else ""
        elif (match := _BLOCK_TITLE.fullmatch(line)) and not self._lines:
            self.blocks.append(f"**{_inline(match[1])}**")
        elif match := _LIST.fullmatch(line):
            marks = match[1]
            mark = "1." if marks.startswith(".") else "-"
            indent = "  " * (len(marks) - 1) if marks != "-" else ""
            self._lines.append(f"{indent}{mark} {_inline(match[2])}")
        elif line != "+":
            self._lines.append(_inline(line))

    def _heading(self, level: int, words: str) -> None:
        self._flush()
        if level == 1 and not self.title and not self.blocks:
            self.title = one_line(words.replace("`", ""))
        else:
            self._in_header = False
        self.blocks.append(heading(level, words))

    def _flush(self) -> None:
        if any(line.strip() for line in self._lines):
            self.blocks.append("\n".join(self._lines))
        self._lines = []

    def _fenced_line(self, line: str) -> None:
        fence = self._fence
        closes = line == fence or (fence.startswith("```") and line == "```")
        if not closes:
            self._lines.append(line)
            return
        lines, self._lines, self._fence = self._lines, [], ""
        language, self._language = self._language, ""
        if fence.startswith(_LITERALS):
            self.blocks.append(
                fenced("\n".join(lines), fence.strip("`") if "`" in fence else language)
            )
        elif fence.startswith("|==="):
            self.blocks.append(table(_rows(lines)))
        elif fence.startswith("____"):
            self.blocks.append("\n".join(f"> {_inline(row)}" for row in lines))


def _fence_of(line: str) -> str | None:
    """The mark that opens or closes a block, if the line is one."""
    if line.startswith("```"):
        return "```"
    for mark in ("----", "....", *_PLAIN_FENCES):
        is_long = len(mark) == 4 and mark != "|===" and line and not line.strip(mark[0])
        if line == mark or (is_long and len(line) > len(mark)):
            return mark
    return None


def _rows(lines: list[str]) -> list[list[str]]:
    """The rows of a table: a line each, or as many cells as its first line has."""
    cells_by_line: list[list[str]] = []
    for line in lines:
        if "|" not in line:
            if line.strip() and cells_by_line:
                cells_by_line[-1][-1] += f" {_inline(line.strip())}"
            continue
        before, *cells = re.split(r"(?<!\\)(?:\d{0,3}[.<^>+*aehlms]{0,4})?\|", line)
        if before.strip() and cells_by_line:
            cells_by_line[-1][-1] += f" {_inline(before.strip())}"
        cells_by_line.append([_inline(cell.strip()) for cell in cells])
    if not cells_by_line:
        return []
    width = len(cells_by_line[0])
    if any(len(cells) != width for cells in cells_by_line) and width > 1:
        cells = [cell for row in cells_by_line for cell in row]
        return [cells[at : at + width] for at in range(0, len(cells), width)]
    return cells_by_line


def _inline(text: str) -> str:
    """Links, pictures and roles as markdown has them."""
    text = _MEDIA.sub(lambda media: media[2].split(",")[0].strip(' "'), text)
    text = _LINK.sub(lambda link: f"[{link[2].rstrip('^') or link[1]}]({link[1]})", text)
    text = text.replace("link:[", "[").replace("xref:[", "[")
    text = _CROSS.sub(lambda cross: cross[2] or cross[1], text)
    return _ROLE.sub("", text)
