"""One source on its way in: named, left out with a reason, or read."""

from pathlib import Path

from msgspec import Struct

from kb.ingest.request import FileStamp, Wishes
from kb.model.doc import Kind
from kb.model.ids import DocId, Lsid
from kb.sync.walk import Found, Passed


class Member(Struct, frozen=True, kw_only=True):
    """A file as a collection names it: a subject of a topic, say, or a doc of a pack."""

    lsid: Lsid
    kind: Kind
    path: Path
    wishes: Wishes
    remark: str | None = None
    """What is to be said of it, although it is taken in."""


class Item(Struct, frozen=True):
    """One source to take in; `named` where the person named it itself, not its folder."""

    name: str
    path: Path | None
    named: bool
    url: str | None = None
    member: Member | None = None
    """What it is to a collection, where it is of one."""


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
    charset: str | None = None
    """As the server says; None where it does not, or there is none."""
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
