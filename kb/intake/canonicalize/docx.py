"""What does a word processor's document say? Headings, lists, tables, notes and comments."""

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from kb.intake.canonicalize.archive import ZippedDocument, attribute, local
from kb.intake.canonicalize.blocks import (
    core_properties,
    escaped,
    finish,
    heading,
    table,
    without_text,
)
from kb.intake.canonicalize.charts import drawn
from kb.intake.canonicalize.omml import formula
from kb.model.text import Canonical

if TYPE_CHECKING:
    from lxml.etree import _Element

MIME: Final = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
_HEADING_NAME: Final = re.compile(r"heading ([1-9])$", re.IGNORECASE)
# What was deleted or moved away, formatting, and the second form of what stands there already.
_SKIPPED: Final = frozenset(
    (
        *("del", "moveFrom", "instrText", "delText", "Fallback", "txbxContent"),
        *("pPr", "rPr", "tblPr", "tblGrid", "sectPr", "sdtPr"),
    )
)
_LITERALS: Final = {"tab": "\t", "br": "\n", "cr": "\n", "noBreakHyphen": "-"}
_SPAN_MAX: Final = 64


def read(data: bytes, name: str, charset: str | None = None) -> Canonical:  # noqa: ARG001
    """The text in order; insertions that are tracked are kept, deletions are not.

    Charts, footnotes and comments stand at the end, notes marked in the text. Headers and footers
    of pages are left out. A document without text is known by its name.

    Raises:
        Encrypted: it needs a password.
        Unparsable: it is damaged, or unpacks to far more than its size.
    """
    archive = ZippedDocument(data, name)
    main = next(
        (part for kind, part in archive.relations("").values() if kind == "officeDocument"),
        "word/document.xml",
    )
    root = archive.need_xml(main)
    related = dict(archive.relations(main).values())
    document = _Document(archive, related)
    blocks = [text for body in root for text in document.blocks(body)]
    blocks += drawn(archive, main)
    for kind, mark in (("footnotes", ""), ("endnotes", "e"), ("comments", "c")):
        part = archive.xml(related[kind]) if kind in related else None
        blocks += () if part is None else document.notes(part, mark)
    title, date = core_properties(archive)
    wordless = without_text("Document", archive)
    return finish(blocks, name, MIME, title=title, date=date, wordless=wordless)


class _Document:
    """How the document's styles and lists make markdown of its parts."""

    def __init__(self, archive: ZippedDocument, related: dict[str, str]) -> None:
        styles = archive.xml(related.get("styles", ""))
        numbering = archive.xml(related.get("numbering", ""))
        self._levels = {} if styles is None else _heading_levels(styles)
        self._ordered = set() if numbering is None else _ordered_lists(numbering)

    def blocks(self, parent: "_Element", *, is_line: bool = False) -> Iterator[str]:
        """Markdown of each block below `parent`, at any depth, in order.

        `is_line` where all become one line, as of a table.
        """
        for child in parent:
            kind = local(child)
            if kind == "p":
                yield self._paragraph(child, is_line=is_line)
                for box in child.iter("{*}txbxContent"):
                    if _is_shown(box, child):
                        yield from self.blocks(box, is_line=is_line)
            elif kind == "tbl":
                yield table(self._rows(child))
            elif kind not in _SKIPPED:
                yield from self.blocks(child, is_line=is_line)

    def notes(self, root: "_Element", mark: str) -> Iterator[str]:
        """Each note as a markdown footnote."""
        for note in root:
            text = " ".join(" ".join(self.blocks(note, is_line=True)).split())
            author = attribute(note, "author")
            if text:
                said = f"{author}: {text}" if author else text
                yield f"[^{mark}{attribute(note, 'id')}]: {said}"

    def _rows(self, tbl: "_Element") -> list[list[str]]:
        rows: list[list[str]] = []
        for row in tbl.iter("{*}tr"):
            if next(row.iterancestors("{*}tbl"), None) is not tbl:
                continue
            cells: list[str] = []
            for cell in row.iter("{*}tc"):
                if next(cell.iterancestors("{*}tr"), None) is row:
                    cells.append(" ".join(self.blocks(cell, is_line=True)))
                    cells += [""] * (_span(cell) - 1)
            rows.append(cells)
        return rows

    def _paragraph(self, paragraph: "_Element", *, is_line: bool) -> str:
        text = "".join(_inline(paragraph)).strip()
        plain = text if is_line else escaped(text)
        properties = paragraph.find("{*}pPr")
        if not text or properties is None:
            return plain
        style = properties.find("{*}pStyle")
        level = self._levels.get(attribute(style, "val")) if style is not None else None
        outline = properties.find("{*}outlineLvl")
        if level is None and outline is not None and attribute(outline, "val") in set("012345"):
            level = int(attribute(outline, "val")) + 1
        if level:
            return heading(level, text)
        number = properties.find("{*}numPr")
        return plain if number is None else self._item(number, text)

    def _item(self, number: "_Element", text: str) -> str:
        values = {local(child): attribute(child, "val") for child in number}
        if values.get("numId") == "0":
            return text
        depth = values.get("ilvl", "0")
        mark = "1. " if (values.get("numId", ""), depth) in self._ordered else "- "
        return "  " * (int(depth) if depth in set("123456789") else 0) + mark + text


def _is_shown(box: "_Element", paragraph: "_Element") -> bool:
    """Whether the text box is the paragraph's own, and not the second form of another."""
    # A box inside a box is read with the outer one; reading it twice would double at each level.
    return next(box.iterancestors("{*}p"), None) is paragraph and not any(
        local(above) == "Fallback" for above in box.iterancestors()
    )


def _inline(element: "_Element") -> Iterator[str]:
    for child in element:
        kind = local(child)
        if kind == "t":
            yield child.text or ""
        elif kind in _LITERALS:
            yield _LITERALS[kind]
        elif kind in {"footnoteReference", "endnoteReference", "commentReference"}:
            mark = {"f": "", "e": "e", "c": "c"}[kind[0]]
            yield f"[^{mark}{attribute(child, 'id')}]"
        elif kind == "oMath":
            yield formula(child)
        elif kind not in _SKIPPED:
            yield from _inline(child)


def _span(cell: "_Element") -> int:
    span = cell.find("{*}tcPr/{*}gridSpan")
    value = attribute(span, "val") if span is not None else ""
    return min(int(value), _SPAN_MAX) if value.isascii() and value.isdecimal() else 1


def _heading_levels(styles: "_Element") -> dict[str, int]:
    """The heading level of each style that has one, by its name or the style it is based on."""
    levels: dict[str, int] = {}
    based: dict[str, str] = {}
    for style in styles.iterchildren("{*}style"):
        ident = attribute(style, "styleId")
        name, base = style.find("{*}name"), style.find("{*}basedOn")
        words = attribute(name, "val") if name is not None else ""
        if match := _HEADING_NAME.match(words):
            levels[ident] = int(match[1])
        elif words.lower() == "title":
            levels[ident] = 1
        elif base is not None:
            based[ident] = attribute(base, "val")
    for _ in range(8):
        levels |= {s: levels[b] for s, b in based.items() if b in levels and s not in levels}
    return levels


def _ordered_lists(numbering: "_Element") -> set[tuple[str, str]]:
    """The lists and depths that count, by id and level."""
    kinds: dict[str, list[str]] = {}
    for abstract in numbering.iterchildren("{*}abstractNum"):
        kinds[attribute(abstract, "abstractNumId")] = [
            attribute(level, "ilvl")
            for level in abstract.iterchildren("{*}lvl")
            if (kind := level.find("{*}numFmt")) is not None
            and attribute(kind, "val") not in {"bullet", "none"}
        ]
    ordered: set[tuple[str, str]] = set()
    for num in numbering.iterchildren("{*}num"):
        abstract = num.find("{*}abstractNumId")
        for depth in kinds.get(attribute(abstract, "val") if abstract is not None else "", []):
            ordered.add((attribute(num, "numId"), depth))
    return ordered
