"""What does a book say? Its chapters in the order of reading."""

from typing import TYPE_CHECKING, Final

from kb.errors import Encrypted, Unparsable
from kb.intake.canonicalize.archive import ZippedDocument, inside
from kb.intake.canonicalize.blocks import finish
from kb.intake.canonicalize.dates import iso_date
from kb.intake.canonicalize.html import page_text, whole_text
from kb.model.text import Canonical

if TYPE_CHECKING:
    from lxml.etree import _Element

MIME: Final = "application/epub+zip"
_CHAPTER_MIMES: Final = frozenset(("application/xhtml+xml", "text/html", "text/x-oeb1-document"))


def read(data: bytes, name: str, charset: str | None = None) -> Canonical:  # noqa: ARG001
    """The spine's chapters with their headings; title, authors and date from the metadata.

    Raises:
        Encrypted: its chapters are locked.
        Unparsable: it is damaged, or has no list of chapters.
        EmptySource: no chapter has text.
    """
    archive = ZippedDocument(data, name)
    container = archive.need_xml("META-INF/container.xml")
    path = next((root.get("full-path", "") for root in container.iter("{*}rootfile")), "")
    package = archive.need_xml(path)
    folder = path.rpartition("/")[0]
    items = {
        item.get("id", ""): (inside(folder, item.get("href", "")), item.get("media-type", ""))
        for item in package.iter("{*}item")
    }
    locked = _locked(archive)
    blocks: list[str] = []
    seen: set[str] = set()
    for entry in package.iter("{*}itemref"):
        part, mime = items.get(entry.get("idref", ""), ("", ""))
        is_read = mime in _CHAPTER_MIMES and part not in seen and part not in locked
        page = archive.bytes_of(part) if is_read else None
        seen.add(part)
        if page is not None:
            blocks.append(whole_text(page_text(page)[0]))
    if not any(blocks) and (locked & seen or "META-INF/rights.xml" in archive.names):
        raise Encrypted("its chapters are locked; add a copy without a lock", source=name)
    if not items:
        raise Unparsable(
            "it lists no chapters; make it again, for example with Calibre", source=name
        )
    authors = _stated(package, "creator")
    if authors and any(blocks):
        blocks.insert(0, "By " + ", ".join(authors))
    titles, dates = _stated(package, "title"), _stated(package, "date")
    date = next(filter(None, map(iso_date, dates)), None)
    return finish(blocks, name, MIME, title=titles[0] if titles else "", date=date)


def _locked(archive: ZippedDocument) -> set[str]:
    """The members whose bytes are encrypted; of most books these are fonts."""
    root = archive.xml("META-INF/encryption.xml")
    found = () if root is None else root.iter("{*}CipherReference")
    return {inside("", reference.get("URI", "")) for reference in found}


def _stated(package: "_Element", kind: str) -> list[str]:
    found = (" ".join("".join(e.itertext()).split()) for e in package.iter("{*}" + kind))
    return [text for text in found if text]
