"""What does a reStructuredText file say? Its sections and text, as markdown.

After the specification (https://docutils.sourceforge.io/docs/ref/rst/restructuredtext.html). What
only a build would know, such as the text of a reference, stays as it is written.
"""

import re
import textwrap
from typing import Final

from kb.intake.canonicalize.blocks import fenced, finish, heading, table
from kb.intake.canonicalize.decode import clean_text, decode_text
from kb.intake.canonicalize.title import one_line
from kb.model.text import Canonical

MIME: Final = "text/x-rst"
_ADORNMENT: Final = re.compile(r"([!-/:-@\[-`{-~])\1{1,}[ \t]*")
_DIRECTIVE: Final = re.compile(r"\.\.[ \t]+([\w:+.-]+?)::(?:[ \t]+(.*))?")
_SUBSTITUTION: Final = re.compile(r"\.\.[ \t]+\|[^|\n]{1,100}\|.*")
_TARGET: Final = re.compile(r"\.\.[ \t]+_.*")
_FOOTNOTE: Final = re.compile(r"\.\.[ \t]+\[([^\]\n]{1,60})\][ \t]*(.*)")
_OPTION: Final = re.compile(r"[ \t]*:([\w-]{1,40}):(?:[ \t]+(.*))?")
_CODE: Final = ("code-block", "code", "sourcecode", "parsed-literal", "literalinclude", "math")
_SKIPPED: Final = (
    *("toctree", "contents", "include", "raw", "index", "highlight", "role", "default-role"),
    *("currentmodule", "module", "meta", "autosummary", "automodule", "tabularcolumns", "only"),
)
_ROLE: Final = re.compile(r":[\w:+.-]{1,60}:`([^`\n]{1,400})`")
_ROLE_TEXT: Final = re.compile(r"[~!]?(.*?)(?:[ \t]*<[^<>\n]*>)?")
_LITERAL: Final = re.compile(r"``([^\n]{1,400}?)``")
_LINK: Final = re.compile(r"`([^`<\n]{1,300}?)[ \t]*<([^<>`\n]{1,500})>`__?")
_REFERENCE: Final = re.compile(r"`([^`\n]{1,200})`__?")
_BORDER: Final = re.compile(r"[ \t]*=+(?:[ \t]+=+)+[ \t]*")
_GRID_RULE: Final = re.compile(r"[ \t]*\+(?:[-=]+\+)+[ \t]*")


def read(data: bytes, name: str, charset: str | None = None) -> Canonical:
    """Sections as headings, literal blocks as code, tables, and text without marks and roles.

    Raises:
        EmptySource: there is no text in it.
    """
    text, warning = decode_text(data, (charset,) if charset else ())
    reader = _RstReader(clean_text(text).expandtabs(8).split("\n"))
    blocks = reader.blocks()
    return finish(
        blocks,
        name,
        MIME,
        title=reader.title,
        warnings=(warning,) if warning else (),
        is_titled=False,
    )


class _RstReader:
    """Walks over lines, and makes blocks."""

    def __init__(self, lines: list[str]) -> None:
        self.title = ""
        self._lines = lines
        self._at = 0
        self._levels: list[str] = []
        self._blocks: list[str] = []
        self._paragraph: list[str] = []

    def blocks(self) -> list[str]:
        """All blocks of the text."""
        while self._at < len(self._lines):
            self._step()
        self._flush()
        return self._blocks

    def _step(self) -> None:
        line = self._lines[self._at]
        if not line.strip():
            self._flush()
            self._at += 1
        elif self._section(line) or self._explicit(line) or self._any_table(line):
            pass
        else:
            self._paragraph.append(line)
            self._at += 1
            if line.rstrip().endswith("::"):
                self._literal()

    def _flush(self) -> None:
        if self._paragraph:
            # The common indent of a quote would make it code.
            joined = textwrap.dedent("\n".join(self._paragraph))
            self._blocks.append(_inline(joined))
            self._paragraph = []

    def _line(self, offset: int) -> str:
        at = self._at + offset
        return self._lines[at].rstrip() if at < len(self._lines) else ""

    def _section(self, line: str) -> bool:
        """A title with a line of marks below it, or above and below."""
        if _ADORNMENT.fullmatch(line) and not self._paragraph:
            title, under = self._line(1).strip(), self._line(2)
            if title and under == line.rstrip() and len(under) >= len(title):
                self._heading(title, line[0] * 2)
                self._at += 3
                return True
            if not self._line(1):
                # A transition.
                self._at += 1
                return True
            return False
        under = self._line(1)
        is_title = not line.startswith(" ") and not self._paragraph
        if is_title and _ADORNMENT.fullmatch(under) and len(under) >= min(len(line.rstrip()), 4):
            self._heading(line.strip(), under[0])
            self._at += 2
            return True
        return False

    def _heading(self, title: str, style: str) -> None:
        self._flush()
        if style not in self._levels:
            self._levels.append(style)
        words = _inline(title)
        if not self._blocks:
            self.title = one_line(words.replace("`", ""))
        self._blocks.append(heading(self._levels.index(style) + 1, words))

    def _explicit(self, line: str) -> bool:
        """A directive, a target, a footnote or a comment."""
        indent = len(line) - len(line.lstrip())
        markup = line.strip()
        if markup != ".." and not markup.startswith(".. "):
            return False
        self._flush()
        self._at += 1
        directive = _DIRECTIVE.fullmatch(markup)
        body = self._indented(indent)
        if directive is not None:
            self._directive(directive[1], (directive[2] or "").strip(), body)
        elif footnote := _FOOTNOTE.fullmatch(markup):
            said = " ".join([footnote[2], *(row.strip() for row in body)]).strip()
            self._blocks.append(f"[{footnote[1]}] {_inline(said)}")
        return True

    def _indented(self, indent: int) -> list[str]:
        """The lines below that are further in, without their common indent."""
        start = self._at
        end = start
        while self._at < len(self._lines):
            line = self._lines[self._at]
            if line.strip():
                if len(line) - len(line.lstrip()) <= indent:
                    break
                end = self._at + 1
            self._at += 1
        self._at = end
        return textwrap.dedent("\n".join(self._lines[start:end])).split("\n")

    def _directive(self, kind: str, argument: str, body: list[str]) -> None:
        options: dict[str, str] = {}
        while body and (option := _OPTION.fullmatch(body[0])):
            options[option[1]] = option[2] or ""
            body = body[1:]
        if kind in _SKIPPED:
            return
        if kind in _CODE:
            self._blocks.append(fenced("\n".join(body), argument if "code" in kind else ""))
            return
        if kind in ("image", "figure"):
            self._blocks.append(_inline(options.get("alt", "")))
        elif kind == "csv-table":
            import csv

            rows = [options["header"], *body] if "header" in options else body
            self._blocks.append(table(list(csv.reader(row for row in rows if row.strip()))))
            return
        elif kind == "list-table":
            self._blocks += [argument, table(_list_rows(body))]
            return
        else:
            said = argument if kind == "rubric" else f"{kind.partition(':')[2] or kind}: {argument}"
            self._blocks.append(f"**{_inline(said).rstrip(': ')}**")
        inner = _RstReader(body)
        inner._levels = self._levels
        self._blocks += inner.blocks()

    def _literal(self) -> None:
        """A paragraph that ends in `::` has code below it, if what follows is further in."""
        last = self._paragraph[-1]
        self._paragraph[-1] = last.rstrip()[:-1] if last.strip() != "::" else ""
        indent = len(last) - len(last.lstrip())
        at = self._at
        while at < len(self._lines) and not self._lines[at].strip():
            at += 1
        if at > self._at and at < len(self._lines):
            further = len(self._lines[at]) - len(self._lines[at].lstrip()) > indent
            if further:
                self._flush()
                self._at = at
                self._blocks.append(fenced("\n".join(self._indented(indent))))

    def _any_table(self, line: str) -> bool:
        if _GRID_RULE.fullmatch(line):
            rows = self._rows_while(lambda row: row.lstrip()[:1] in "+|" and bool(row.strip()))
            self._blocks.append(table(_grid_rows(rows)))
            return True
        if _BORDER.fullmatch(line):
            borders = 0
            rows = []
            while self._at < len(self._lines):
                row = self._lines[self._at]
                is_border = _BORDER.fullmatch(row) is not None
                borders += is_border
                rows.append(row)
                self._at += 1
                if borders >= 2 and is_border and not self._line(0).strip():
                    break
            self._flush()
            self._blocks.append(table(_simple_rows(rows)))
            return True
        return False

    def _rows_while(self, belongs) -> list[str]:  # type: ignore[no-untyped-def]
        self._flush()
        start = self._at
        while self._at < len(self._lines) and belongs(self._lines[self._at]):
            self._at += 1
        return self._lines[start : self._at]


def _grid_rows(lines: list[str]) -> list[list[str]]:
    """The rows of a grid table; the lines of a cell are joined."""
    rows: list[list[str]] = []
    row: list[str] = []
    for line in lines:
        if _GRID_RULE.fullmatch(line):
            if row:
                rows.append([_inline(cell) for cell in row])
            row = []
            continue
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        row = [" ".join(filter(None, pair)) for pair in zip(row, cells, strict=False)] or cells
    return rows + ([[_inline(cell) for cell in row]] if row else [])


def _simple_rows(lines: list[str]) -> list[list[str]]:
    """The rows of a simple table, whose columns are below the runs of its border."""
    starts = [match.start() for match in re.finditer(r"=+", lines[0])]
    spans = list(zip(starts, [*starts[1:], None], strict=True))
    rows: list[list[str]] = []
    for line in lines:
        if _BORDER.fullmatch(line) or not line.strip() or not line.strip("- "):
            continue
        cells = [_inline(line[start:end].strip()) for start, end in spans]
        if rows and not cells[0]:
            rows[-1] = [" ".join(filter(None, pair)) for pair in zip(rows[-1], cells, strict=True)]
        else:
            rows.append(cells)
    return rows


def _list_rows(lines: list[str]) -> list[list[str]]:
    rows: list[list[str]] = []
    for line in lines:
        text = line.strip()
        if text.startswith("* -"):
            rows.append([_inline(text[3:].strip())])
        elif text.startswith("- ") and rows:
            rows[-1].append(_inline(text[2:].strip()))
        elif text and rows:
            rows[-1][-1] = f"{rows[-1][-1]} {_inline(text)}".strip()
    return rows


def _inline(text: str) -> str:
    """Code, links and roles as markdown has them."""
    text = _ROLE.sub(lambda role: _role_text(role[1]), text)
    text = _LINK.sub(lambda link: f"[{link[1].strip()}]({link[2].replace(' ', '%20')})", text)
    text = _LITERAL.sub(r"`\1`", text)
    return _REFERENCE.sub(r"\1", text)


def _role_text(said: str) -> str:
    match = _ROLE_TEXT.fullmatch(said)
    return match[1] if match and match[1] else said
