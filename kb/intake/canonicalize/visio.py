"""What does a drawing of Visio say? The words of its shapes, page by page."""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from kb.intake.canonicalize.archive import ZippedDocument, attribute, local
from kb.intake.canonicalize.blocks import core_properties, finish, heading, without_text
from kb.model.text import Canonical

if TYPE_CHECKING:
    from lxml.etree import _Element

MIME: Final = "application/vnd.ms-visio.drawing"
_FIELDS_MAX: Final = 64


def read(data: bytes, name: str, charset: str | None = None) -> Canonical:  # noqa: ARG001
    """A heading for each page, and a paragraph for each shape with words; then its fields.

    A drawing without words is known by its name.

    Raises:
        Encrypted: it needs a password.
        Unparsable: it is damaged, or unpacks to far more than its size.
    """
    archive = ZippedDocument(data, name)
    main = next(
        (part for kind, part in archive.relations("").values() if kind == "document"),
        "visio/document.xml",
    )
    archive.need_xml(main)
    listed = next(
        (part for kind, part in archive.relations(main).values() if kind == "pages"),
        "visio/pages/pages.xml",
    )
    pages, related = archive.xml(listed), archive.relations(listed)
    blocks: list[str] = []
    for page in () if pages is None else pages.iterchildren("{*}Page"):
        rel = page.find("{*}Rel")
        target = related.get(attribute(rel, "id"), ("", ""))[1] if rel is not None else ""
        contents = archive.xml(target)
        said = [] if contents is None else [text for text in _texts(contents) if text]
        if said:
            blocks += [heading(1, page.get("Name") or page.get("NameU") or "Page"), *said]
    title, date = core_properties(archive)
    return finish(
        blocks,
        name,
        MIME,
        title=title,
        date=date,
        is_titled=False,
        wordless=without_text("Drawing", archive),
    )


def _texts(contents: "_Element") -> Iterator[str]:
    for shape in contents.iter("{*}Shape"):
        words = shape.find("{*}Text")
        lines = [] if words is None else "".join(words.itertext()).splitlines()
        yield "\n".join(filter(None, map(str.strip, lines)))
        yield "\n".join(_fields(shape))


def _fields(shape: "_Element") -> Iterator[str]:
    """What the shape's own table of data says, as `label: value`."""
    for row in shape.findall("{*}Section[@N='Property']/{*}Row")[:_FIELDS_MAX]:
        cells = {cell.get("N"): cell.get("V") or "" for cell in row if local(cell) == "Cell"}
        label, value = cells.get("Label") or row.get("N") or "", cells.get("Value", "")
        if label.strip() and value.strip() and cells.get("Invisible") != "1":
            yield f"- {' '.join(label.split())}: {' '.join(value.split())}"
