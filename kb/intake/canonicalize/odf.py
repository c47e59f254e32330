"""What does an OpenDocument file say? Text with headings, sheets as tables, slides in order."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

import msgspec

from kb.errors import Encrypted
from kb.intake.canonicalize.archive import ZippedDocument, attribute, local, parse_xml
from kb.intake.canonicalize.blocks import escaped, finish, heading, table, without_text
from kb.intake.canonicalize.dates import iso_date
from kb.intake.canonicalize.sheets import COLUMNS_MAX, Row, Sheets
from kb.intake.canonicalize.title import own_title
from kb.model.text import Canonical

if TYPE_CHECKING:
    from lxml.etree import _Element

MIME: Final = "application/vnd.oasis.opendocument."
_REPEATS_MAX: Final = 64
_REPEATED_CHARS_MAX: Final = 1_000
_SKIPPED: Final = frozenset(("tracked-changes", "sequence-decls", "forms", "settings"))


def read(data: bytes, name: str, charset: str | None = None) -> Canonical:  # noqa: ARG001
    """The document in order; tracked deletions are left out, notes stand in brackets.

    A document without text is known by its name.

    Raises:
        Encrypted: it needs a password.
        Unparsable: it is damaged, or unpacks to far more than its size.
    """
    archive = ZippedDocument(data, name)
    manifest = archive.bytes_of("META-INF/manifest.xml") or b""
    if b"encryption-data" in manifest:
        raise Encrypted("it needs a password; save it without one and add the result", source=name)
    content, meta = archive.need_xml("content.xml"), archive.xml("meta.xml")
    return _document(content, meta, name, without_text("Document", archive))


def read_flat(data: bytes, name: str, charset: str | None = None) -> Canonical:  # noqa: ARG001
    """As `read`, of a document that is one file of XML."""
    root = parse_xml(data, name)
    flat = _document(root, root.find("{*}meta"), name, "")
    return msgspec.structs.replace(flat, mime=MIME + "flat")


def _document(root: "_Element", meta: "_Element | None", name: str, wordless: str) -> Canonical:
    stated = {local(e): (e.text or "").strip() for e in (() if meta is None else meta.iter())}
    body = root.find("{*}body/{*}*")
    kind = local(body) if body is not None else "text"
    blocks: list[str] = []
    sheets = Sheets()
    number = 0
    for child in () if body is None else body:
        if local(child) == "table" and kind == "spreadsheet":
            sheets.add(attribute(child, "name"), _rows(child))
            continue
        texts = list(filter(str.strip, _blocks([child])))
        if local(child) == "page":
            number += 1
            texts = [f"# Slide {number}", *texts] if texts else []
        blocks += texts
    return finish(
        [*sheets.blocks, *blocks],
        name,
        MIME + kind,
        title=own_title(stated.get("title", "")),
        date=iso_date(stated.get("creation-date", "")),
        sheet_rows=sheets.places,
        is_titled=kind == "text",
        wordless=wordless,
    )


def _blocks(
    elements: "Iterator[_Element] | list[_Element]", depth: int = -1, *, is_line: bool = False
) -> Iterator[str]:
    """Markdown of each block, at any depth; `is_line` where all become one line of a table."""
    for element in elements:
        kind = local(element)
        if kind == "h":
            level = attribute(element, "outline-level")
            yield heading(int(level) if level in set("123456") else 1, "".join(_inline(element)))
        elif kind == "p":
            text = "".join(_inline(element)).strip()
            if depth >= 0 and text:
                yield "  " * depth + "- " + text
            else:
                yield text if is_line else escaped(text)
            for box in element.iter("{*}text-box"):
                if next(box.iterancestors("{*}p", "{*}h"), None) is element:
                    yield from _blocks(list(box), depth, is_line=is_line)
        elif kind == "table":
            yield table([cells for _, cells in _rows(element)])
        elif kind not in _SKIPPED:
            yield from _blocks(list(element), depth + (kind == "list"), is_line=is_line)


def _remark(annotation: "_Element") -> str:
    """Who remarked what at a place of the text."""
    author = annotation.find("{*}creator")
    parts = list(annotation.iterchildren("{*}p", "{*}list"))
    said = " ".join(" ".join(_blocks(parts, is_line=True)).split())
    return f"{author.text}: {said}" if author is not None and author.text else said


def _rows(sheet: "_Element") -> list[Row]:
    """Rows of the table itself; repeats of what is empty are not made."""
    rows: list[Row] = []
    number = 1
    for row in sheet.iter("{*}table-row"):
        if next(row.iterancestors("{*}table"), None) is not sheet:
            continue
        cells: list[str] = []
        for cell in row.iterchildren("{*}table-cell", "{*}covered-table-cell"):
            text = " ".join(_blocks(list(cell), is_line=True))
            times = _repeats(cell, "number-columns-repeated")
            if text:
                # Repeats of repeats in nested tables would multiply without bound.
                times = min(times, _REPEATS_MAX) if len(text) <= _REPEATED_CHARS_MAX else 1
            cells += [text] * min(times, COLUMNS_MAX - len(cells))
        while cells and not cells[-1]:
            cells.pop()
        times = _repeats(row, "number-rows-repeated")
        is_short = sum(map(len, cells)) <= _REPEATED_CHARS_MAX
        shown = (min(times, _REPEATS_MAX) if is_short else 1) if cells else 0
        rows += [(number + further, cells) for further in range(shown)]
        number += times
    return rows


def _repeats(element: "_Element", name: str) -> int:
    repeats = attribute(element, name)
    return int(repeats) if repeats.isdecimal() and len(repeats) < 8 else 1


def _inline(element: "_Element") -> Iterator[str]:
    yield element.text or ""
    for child in element:
        kind = local(child)
        if kind == "s":
            yield " "
        elif kind in {"tab", "line-break"}:
            yield "\t" if kind == "tab" else "\n"
        elif kind == "note":
            noted = " ".join(_blocks(list(child.iterchildren("{*}note-body")), is_line=True))
            yield f" [{noted}]"
        elif kind == "annotation":
            yield f" [{_remark(child)}]"
        elif kind not in {"text-box", "annotation-end"}:
            yield from _inline(child)
        yield child.tail or ""
