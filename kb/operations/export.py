"""The text or the source of a doc of an open home, as a file."""

from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from kb.home.app import App


class ExportRequest(Struct, frozen=True, kw_only=True):
    """The doc that is meant, by an id, whole or short, or an entry's, or by its path."""

    ident: str
    raw: bool = False
    """The source's own bytes instead of the markdown."""


class ExportResult(Struct, frozen=True, kw_only=True):
    """The bytes, and what a file of them is called."""

    data: bytes
    file_name: str


def run(app: "App", request: ExportRequest) -> ExportResult:
    """Read what a doc says. Raises NotFound, AmbiguousId, StoreDamaged, Unreadable."""
    from kb.operations.entries import doc_meant
    from kb.store.content.layout import slug
    from kb.store.content.originals import read_original

    with app.store.read() as txn:
        doc = doc_meant(txn, request.ident, app.caller, app.store.machine)
    if request.raw:
        data, suffix = read_original(app.content, doc), Path(doc.raw_path or doc.source).suffix
    else:
        data, suffix = app.content.read(doc.md_path, doc.md_sha256), ".md"
    return ExportResult(data=data, file_name=f"{slug(doc.title)}{suffix}")
