"""One source on its way in: named, left out with a reason, or read."""

from pathlib import Path

from msgspec import Struct

from kb.ingest.request import FileStamp
from kb.model.doc import Kind
from kb.model.ids import DocId, Lsid
from kb.sync.walk import Found, Passed


class Item(Struct, frozen=True):
    """One source to take in; `named` where the person named it itself, not its folder."""

    name: str
    path: Path | None
    named: bool
    url: str | None = None


class Left(Struct, frozen=True):
    """One source that is left out, and why."""

    name: str
    reason: str
    failed: bool


class Bytes(Struct, frozen=True, kw_only=True):
    """A source's bytes and where they came from."""

    item: Item
    lsid: Lsid
    kind: Kind
    data: bytes
    raw_sha256: str
    stamp: FileStamp | None
    mime: str | None = None
    """As the server says; None where the bytes have to tell."""
    file_name: str | None = None
    read_after: DocId | None = None
    cursor: str | None = None
    """How to ask next time whether a page has changed."""


def of_walk(seen: Found | Passed, name: str) -> Item | Left:
    """What a walk brought, as an item under this name."""
    match seen:
        case Found(path=path):
            return Item(name, path, named=False)
        case Passed(reason=reason, failed=failed):
            return Left(name, reason, failed)
