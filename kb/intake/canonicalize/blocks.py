"""How does a document become markdown? Blocks, tables and the result that readers share."""

import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from kb.errors import EmptySource
from kb.intake.canonicalize.dates import iso_date
from kb.intake.canonicalize.decode import clean_text, has_text
from kb.intake.canonicalize.markdown import first_heading
from kb.intake.canonicalize.parsers import TEXT_CHARS_MAX, TextTooLong
from kb.intake.canonicalize.title import fallback_title, one_line, own_title
from kb.model.sheet import SheetRows
from kb.model.text import Canonical

if TYPE_CHECKING:
    from kb.intake.canonicalize.archive import ZippedDocument

BLOCK_ROWS: Final = 50
# A line that markdown takes for a heading, or for the beginning or the end of code.
_MARKS: Final = re.compile(r"^ {0,3}(#{1,6}(?=[ \t]|$)|`{3,}|~{3,})", re.MULTILINE)
# As Office and OpenDocument keep them.
_PICTURE: Final = re.compile(r"(?:\w{1,20}/media|Pictures)/.")


def cell_text(text: str) -> str:
    """A cell on one line, with its bars escaped."""
    return " ".join(clean_text(text).split()).replace("|", "\\|")


def table(rows: Sequence[Sequence[str]], *, block_rows: int = 0) -> str:
    """A markdown table whose first row is its header, repeated for each `block_rows` rows.

    Empty rows, and columns that are empty in every row, are left out. Raises TextTooLong.
    """
    cells = [[cell_text(cell) for cell in row] for row in rows if any(c.strip() for c in row)]
    used = sorted({i for row in cells for i, cell in enumerate(row) if cell})
    if not used:
        return ""
    blocks = len(cells) // block_rows + 1 if block_rows else 1
    chars = sum(len(cell) for row in cells for cell in row) + 3 * len(used) * len(cells)
    if chars + blocks * (sum(map(len, cells[0])) + 6 * len(used)) > TEXT_CHARS_MAX:
        raise TextTooLong
    lines = [
        "| " + " | ".join(row[i] if i < len(row) else "" for i in used) + " |" for row in cells
    ]
    head = [lines[0], "|" + " --- |" * len(used)]
    body = lines[1:]
    step = block_rows or len(body) or 1
    parts = [[*head, *body[at : at + step]] for at in range(0, len(body), step)] or [head]
    return "\n\n".join("\n".join(part) for part in parts)


def heading(level: int, text: str) -> str:
    """An ATX heading of one line; empty for a text of blanks."""
    words = " ".join(text.split())
    return f"{'#' * min(max(level, 1), 6)} {words}" if words else ""


def escaped(text: str) -> str:
    r"""A text without markup, so that no line of it begins a heading or a block of code.

    Code between two fences stays as people wrote it.
    """
    if _MARKS.search(text) is None:
        return text
    lines: list[str] = []
    fence = ""
    for line in text.split("\n"):
        match = _MARKS.match(line)
        is_heading = match is not None and match[1][0] == "#"
        if fence:
            is_end = line.strip().startswith(fence) and not line.strip().strip(fence[0])
            fence = "" if is_end else fence
        elif match is not None and not is_heading:
            fence = match[1]
        elif is_heading:
            lines.append(_MARKS.sub(r"\\\1", line))
            continue
        lines.append(line)
    # Of a fence that nothing closes all below it would be code.
    return _MARKS.sub(r"\\\1", text) if fence else "\n".join(lines)


def fenced(text: str, language: str = "") -> str:
    """A code block whose fence is longer than any run of backticks in it."""
    mark = "```"
    while mark in text:
        mark += "`"
    body = text.strip("\n")
    return f"{mark}{language}\n{body}\n{mark}"


def finish(
    blocks: Iterable[str],
    name: str,
    mime: str,
    *,
    title: str = "",
    date: str | None = None,
    warnings: Iterable[str] = (),
    sheet_rows: Iterable[SheetRows] = (),
    is_titled: bool = True,
    wordless: str = "",
) -> Canonical:
    """The blocks as one source, titled by itself, its first heading or its file's name.

    Without `is_titled`, its headings name parts of it, never the whole. `wordless` says what a
    source is that has no text: it is known by its name.

    Raises:
        EmptySource: no block has text.
    """
    markdown = (
        clean_text("\n\n".join(block for block in blocks if block.strip())).strip("\n") + "\n"
    )
    by_name = bool(wordless) and not has_text(markdown)
    if by_name:
        markdown = wordless + "\n"
    if not has_text(markdown):
        raise EmptySource("there is no text in it; if it holds images, run OCR first", source=name)
    opening = first_heading(markdown) if is_titled and markdown.startswith("#") else ""
    return Canonical(
        markdown=markdown,
        title=one_line(title) or opening or fallback_title(name, markdown),
        mime=mime,
        date=date,
        warnings=tuple(warnings),
        sheet_rows=tuple(sheet_rows),
        by_name=by_name,
    )


def without_text(what: str, archive: "ZippedDocument") -> str:
    """What a document is that has no text: of which kind, and how many pictures are in it."""
    pictures = sum(1 for name in archive.names if _PICTURE.match(name))
    noun = "picture" if pictures == 1 else "pictures"
    return f"{what} without text, {pictures} {noun}" if pictures else f"{what} without text"


def core_properties(archive: "ZippedDocument") -> tuple[str, str | None]:
    """Title and date of an Office Open XML document, as it states them."""
    from kb.intake.canonicalize.archive import local

    root = archive.xml("docProps/core.xml")
    stated = {local(e): (e.text or "").strip() for e in (() if root is None else root)}
    return own_title(stated.get("title", "")), iso_date(stated.get("created", ""))
