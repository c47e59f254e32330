"""What does an Org file say? Its outline and text, as markdown (https://orgmode.org)."""

import re
from typing import Final

from msgspec.structs import replace

from kb.intake.canonicalize.blocks import fenced, finish, heading, table
from kb.intake.canonicalize.dates import iso_date
from kb.intake.canonicalize.decode import clean_text, decode_text
from kb.model.text import Canonical

MIME: Final = "text/x-org"
_DAY_CHARS: Final = len("2026-11-22")
_HEADLINE: Final = re.compile(r"(\*+)[ \t]+(.*)")
_TAGS: Final = re.compile(r"[ \t]+(:[\w@#%:]{1,200}:)[ \t]*$")
_STATE: Final = re.compile(r"^(?:(?:TODO|DONE|NEXT|WAITING|CANCELLED)[ \t]+)?(?:\[#\w\][ \t]*)?")
_KEYWORD: Final = re.compile(r"[ \t]*#\+([A-Za-z_]+):[ \t]*(.*)")
_BEGIN: Final = re.compile(r"[ \t]*#\+begin_(\w+)(?:[ \t]+(\S+))?.*", re.IGNORECASE)
_END: Final = re.compile(r"[ \t]*#\+end_\w+", re.IGNORECASE)
_DRAWER: Final = re.compile(r"[ \t]*:([A-Za-z_-]{1,40}):[ \t]*")
_COMMENT: Final = re.compile(r"[ \t]*#(?:[ \t].*)?$")
_LINK: Final = re.compile(r"\[\[([^\[\]\n]{1,1000})\](?:\[([^\[\]\n]{1,500})\])?\]")
_VERBATIM: Final = re.compile(r"(?<![\w=~])([=~])(\S(?:[^=~\n]{0,300}\S)?)\1(?![\w=~])")
_BOLD: Final = re.compile(r"(?<![\w*])\*(\S(?:[^*\n]{0,300}\S)?)\*(?![\w*])")
_TABLE_LINE: Final = re.compile(r"[ \t]*\|.*")
_RULE: Final = re.compile(r"[ \t]*\|[-+]+\|?[ \t]*")


def read(data: bytes, name: str, charset: str | None = None) -> Canonical:
    """Headlines as headings, without states and drawers; tags of the file and of headlines.

    Raises:
        EmptySource: there is no text in it.
    """
    text, warning = decode_text(data, (charset,) if charset else ())
    reader = _OrgReader()
    for line in clean_text(text).split("\n"):
        reader.line(line)
    reader.flush()
    canonical = finish(
        reader.blocks,
        name,
        MIME,
        title=reader.title,
        date=iso_date(reader.date.strip("<>[] ")[:_DAY_CHARS]) if reader.date else None,
        warnings=(warning,) if warning else (),
        is_titled=False,
    )
    return replace(canonical, tags=tuple(dict.fromkeys(reader.tags)))


class _OrgReader:
    """Takes lines, and has blocks."""

    def __init__(self) -> None:
        self.blocks: list[str] = []
        self.tags: list[str] = []
        self.title = ""
        self.date = ""
        self._lines: list[str] = []
        self._table: list[str] = []
        self._block: tuple[str, str] | None = None
        self._in_drawer = False

    def line(self, line: str) -> None:
        """Take one line."""
        if self._block is not None:
            self._block_line(line)
        elif self._in_drawer:
            self._in_drawer = line.strip().upper() != ":END:"
        elif match := _HEADLINE.fullmatch(line):
            self._headline(len(match[1]), match[2])
        elif match := _BEGIN.fullmatch(line):
            self.flush()
            self._block = (match[1].lower(), match[2] or "")
        elif match := _KEYWORD.fullmatch(line):
            self._keyword(match[1].lower(), match[2].strip())
        elif (match := _DRAWER.fullmatch(line)) and match[1].upper() in ("PROPERTIES", "LOGBOOK"):
            self._in_drawer = True
        elif _COMMENT.fullmatch(line):
            pass
        elif _TABLE_LINE.fullmatch(line):
            self._table.append(line)
        else:
            self._end_table()
            self._lines.append(_inline(line))

    def flush(self) -> None:
        """End the paragraph or the table that is open."""
        self._end_table()
        if any(line.strip() for line in self._lines):
            self.blocks.append("\n".join(self._lines).strip("\n"))
        self._lines = []

    def _end_table(self) -> None:
        if not self._table:
            return
        rows = [
            [_inline(cell) for cell in line.strip().strip("|").split("|")]
            for line in self._table
            if not _RULE.fullmatch(line)
        ]
        self._table = []
        self.flush()
        self.blocks.append(table(rows) if rows else "")

    def _headline(self, level: int, text: str) -> None:
        self.flush()
        if match := _TAGS.search(text):
            self.tags += filter(None, match[1].split(":"))
            text = text[: match.start()]
        self.blocks.append(heading(level, _inline(_STATE.sub("", text))))

    def _keyword(self, key: str, value: str) -> None:
        if key == "title":
            self.title = f"{self.title} {value}".strip()
        elif key == "date":
            self.date = value
        elif key == "filetags":
            self.tags += filter(None, re.split(r"[:\s]+", value))

    def _block_line(self, line: str) -> None:
        assert self._block is not None
        kind, language = self._block
        if not _END.fullmatch(line):
            self._lines.append(line)
            return
        text = "\n".join(self._lines)
        self._lines, self._block = [], None
        if kind in ("src", "example", "export", "verse"):
            self.blocks.append(fenced(text, language if kind == "src" else ""))
        elif kind == "quote":
            self.blocks.append("\n".join(f"> {_inline(row)}" for row in text.split("\n")))
        elif kind != "comment":
            self.blocks.append("\n".join(map(_inline, text.split("\n"))))


def _inline(text: str) -> str:
    """Links and marks of a line as markdown has them."""
    text = _LINK.sub(_link, text)
    text = _VERBATIM.sub(r"`\2`", text)
    return _BOLD.sub(r"**\1**", text)


def _link(match: re.Match[str]) -> str:
    target = match[1].removeprefix("file:")
    if match[2] is None:
        return f"<{target}>" if "://" in target else f"[[{target}]]"
    return f"[{match[2]}]({target.replace(' ', '%20')})"
