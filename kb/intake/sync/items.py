"""One source on its way in: named, left out with a reason, or read."""

from collections.abc import Callable
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from kb.intake.ingest.request import FileStamp, IngestOptions
from kb.intake.passages import PrecomputedChunks
from kb.intake.sync.walk import SkippedFile, WalkedFile
from kb.model.doc import Kind
from kb.model.ids import DocId, Lsid, sha256_hex
from kb.model.source import owned_lsid

_EXTENSIONS: Final = {"text/html": "html", "application/pdf": "pdf", "text/markdown": "md"}


class CollectionMember(Struct, frozen=True, kw_only=True):
    """A file as a collection names it: a subject of a topic, say, or a doc of a pack."""

    lsid: Lsid
    kind: Kind
    path: Path
    wishes: IngestOptions
    remark: str | None = None
    """What is to be said of it, although it is taken in."""
    ready: PrecomputedChunks | None = None
    """Its passages, where they came with it."""


class SourceItem(Struct, frozen=True):
    """One source to take in; `named` where the person named it itself, not its folder."""

    name: str
    path: Path | None
    is_explicit: bool
    url: str | None = None
    member: CollectionMember | None = None
    """What it is to a collection, where it is of one."""
    is_walked: bool = False
    """A walk found it, behind no link."""


class SkippedItem(Struct, frozen=True):
    """One source that is left out, and why."""

    name: str
    reason: str
    failed: bool


class SourceBytes(Struct, frozen=True, kw_only=True):
    """A source's bytes and where they came from."""

    item: SourceItem
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


def as_member(
    item: SourceItem, member_at: Callable[[Path], CollectionMember | None], wishes: IngestOptions
) -> SourceItem:
    """A file by what it is to a collection, if `member_at` says so of its path.

    Who may see it is as is wished for here; its title and tags are what the collection says.
    """
    if item.path is None or item.member is not None:
        return item
    member = member_at(item.path)
    if member is None:
        return item
    said = msgspec.structs.replace(member.wishes, visibility=wishes.visibility, owner=wishes.owner)
    return msgspec.structs.replace(item, member=msgspec.structs.replace(member, wishes=said))


def extension_of(path: Path | None, mime: str) -> str:
    """The extension under which the bytes of a source are kept."""
    return path.suffix.lstrip(".") if path else _EXTENSIONS.get(mime, "txt")


def stdin_bytes(
    item: SourceItem, data: bytes, wishes: IngestOptions, file_name: str | None
) -> SourceBytes:
    """What came on standard input: a file's bytes, where it has a name, and else a text.

    A file of a name is one thing across edits, and so is a text with a title; one without is what
    it says.
    """
    digest = sha256_hex(data)
    named = f"upload:{item.name}" if file_name else f"stdin:{wishes.title or digest}"
    return SourceBytes(
        item=item,
        lsid=owned_lsid(wishes.owner, named),
        kind="file" if file_name else "stdin",
        data=data,
        raw_sha256=digest,
        stamp=None,
        file_name=file_name,
    )


def walked_item(seen: WalkedFile | SkippedFile, name: str) -> SourceItem | SkippedItem:
    """What a walk brought, as an item under this name."""
    match seen:
        case WalkedFile(path=path):
            return SourceItem(name, path, is_explicit=False, is_walked=True)
        case SkippedFile(reason=reason, failed=failed):
            return SkippedItem(name, reason, failed)
