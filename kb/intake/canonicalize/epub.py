"""What does a book say? Its chapters in the order of reading."""

from typing import TYPE_CHECKING, Final

from kb.errors import Encrypted, Unparsable
from kb.intake.canonicalize.archive import ZippedDocument, inside, local
from kb.intake.canonicalize.blocks import finish, heading
from kb.intake.canonicalize.dates import iso_date
from kb.intake.canonicalize.html import page_text, whole_text
from kb.model.text import Canonical

if TYPE_CHECKING:
    from lxml.etree import _Element

MIME: Final = "application/epub+zip"
_NCX: Final = "application/x-dtbncx+xml"
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
    labels = _labels(archive, package, items)
    blocks: list[str] = []
    seen: set[str] = set()
    for entry in package.iter("{*}itemref"):
        part, mime = items.get(entry.get("idref", ""), ("", ""))
        is_read = mime in _CHAPTER_MIMES and part not in seen and part not in locked
        page = archive.bytes_of(part) if is_read else None
        seen.add(part)
        if page is not None:
            text = whole_text(page_text(page)[0])
            blocks += [heading(1, labels.get(part, "")) if _has_no_heading(text) else "", text]
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


def _has_no_heading(text: str) -> bool:
    return bool(text) and not any(line.startswith("#") for line in text.split("\n"))


def _labels(
    archive: ZippedDocument, package: "_Element", items: dict[str, tuple[str, str]]
) -> dict[str, str]:
    """What the book's list of contents calls each of its files; the first name of each counts."""
    found: dict[str, str] = {}
    listed = [
        items[item.get("id", "")][0]
        for item in package.iter("{*}item")
        if "nav" in item.get("properties", "").split() or item.get("media-type") == _NCX
    ]
    for part in listed:
        try:
            root = archive.xml(part)
        except Unparsable:
            # Only a list of names is lost, which a program may have written badly.
            continue
        folder = part.rpartition("/")[0]
        for entry in () if root is None else root.iter("{*}a", "{*}navPoint"):
            is_point = local(entry) == "navPoint"
            content = entry.find("{*}content") if is_point else entry
            words = entry.find("{*}navLabel") if is_point else entry
            if content is None or words is None:
                continue
            target = content.get("src" if is_point else "href") or ""
            label = " ".join("".join(words.itertext()).split())
            if target and label:
                found.setdefault(inside(folder, target), label)
    return found


def _locked(archive: ZippedDocument) -> set[str]:
    """The members whose bytes are encrypted; of most books these are fonts."""
    root = archive.xml("META-INF/encryption.xml")
    found = () if root is None else root.iter("{*}CipherReference")
    return {inside("", reference.get("URI", "")) for reference in found}


def _stated(package: "_Element", kind: str) -> list[str]:
    found = (" ".join("".join(e.itertext()).split()) for e in package.iter("{*}" + kind))
    return [text for text in found if text]
