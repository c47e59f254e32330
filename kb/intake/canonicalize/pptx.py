"""What do slides say? Each below its number, with its notes."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from kb.intake.canonicalize.archive import ZippedDocument, local
from kb.intake.canonicalize.blocks import core_properties, escaped, finish, table, without_text
from kb.intake.canonicalize.charts import drawn
from kb.model.text import Canonical

if TYPE_CHECKING:
    from lxml.etree import _Element

MIME: Final = "application/vnd.openxmlformats-officedocument.presentationml.presentation"
_RELATION: Final = "{http://schemas.openxmlformats.org/officeDocument/2006/relationships}id"
_EXTRAS: Final = frozenset(("sldNum", "dt", "ftr", "hdr", "sldImg"))


def read(data: bytes, name: str, charset: str | None = None) -> Canonical:  # noqa: ARG001
    """The slides in the order of the show: "Slide 3" and its title as heading, then what it says.

    That is text, tables, charts and notes. Slides without any text are known by their file's name.

    Raises:
        Encrypted: it needs a password.
        Unparsable: it is damaged, or unpacks to far more than its size.
    """
    archive = ZippedDocument(data, name)
    main = next(
        (part for kind, part in archive.relations("").values() if kind == "officeDocument"),
        "ppt/presentation.xml",
    )
    root = archive.need_xml(main)
    related = archive.relations(main)
    blocks: list[str] = []
    first = ""
    for number, entry in enumerate(root.iter("{*}sldId"), start=1):
        part = related.get(entry.get(_RELATION, ""), ("", ""))[1]
        slide = archive.xml(part)
        if slide is None:
            continue
        title, body = _slide(slide)
        body += [*drawn(archive, part), *_notes(archive, part)]
        first = first or title
        if title or body:
            blocks += [f"# Slide {number}: {title}" if title else f"# Slide {number}", *body]
    title, date = core_properties(archive)
    return finish(
        blocks, name, MIME, title=title or first, date=date, is_titled=False,
        wordless=without_text("Slides", archive),
    )  # fmt: skip


def _slide(slide: "_Element") -> tuple[str, list[str]]:
    title = ""
    body: list[str] = []
    for kind, text in _texts(slide):
        if kind in {"title", "ctrTitle"} and not title:
            title = " ".join(text.split())
        elif text:
            body.append(escaped(text))
    return title, body


def _notes(archive: ZippedDocument, slide: str) -> list[str]:
    for kind, part in archive.relations(slide).values():
        root = archive.xml(part) if kind == "notesSlide" else None
        texts = [] if root is None else [escaped(text) for _, text in _texts(root) if text]
        if texts:
            return ["Notes:", *texts]
    return []


def _texts(parent: "_Element") -> Iterator[tuple[str, str]]:
    """The kind of placeholder and the text of each shape, groups opened, in order."""
    for child in parent:
        kind = local(child)
        if kind == "Fallback":
            continue
        if kind == "sp":
            holder = child.find("{*}nvSpPr/{*}nvPr/{*}ph")
            place = holder.get("type", "") if holder is not None else ""
            if place not in _EXTRAS:
                yield place, _paragraphs(child)
        elif kind == "tbl":
            rows = [
                [_paragraphs(cell).replace("\n\n", " ") for cell in row.iterchildren("{*}tc")]
                for row in child.iterchildren("{*}tr")
            ]
            yield "", table(rows)
        else:
            yield from _texts(child)


def _paragraphs(shape: "_Element") -> str:
    found: list[str] = []
    for paragraph in shape.iter("{*}p"):
        words = [
            "\n" if local(e) == "br" else e.text or "" for e in paragraph.iter("{*}t", "{*}br")
        ]
        if text := "".join(words).strip():
            properties = paragraph.find("{*}pPr")
            level = properties.get("lvl", "0") if properties is not None else "0"
            found.append(f"{'  ' * int(level)}- {text}" if level in set("12345678") else text)
    return "\n\n".join(found)
